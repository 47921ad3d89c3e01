// SPDX-License-Identifier: Apache-2.0

// Command longshore-transport-redis is a transport over Redis Streams and their
// consumer groups.
//
//   - transport.go: what it is and what it can do
//   - endpoint.go, conn.go, link.go: configured, connected, and the state of that
//   - publish.go, entry.go: from a message to an entry of a stream, and back
//   - subscription.go, wait.go, lease.go: deliveries, and how long they are held
//   - settle.go: verdicts
//   - script.go and the Lua files: what has to be done at once on the server
//   - fault.go: what went wrong, in the host's words
package main

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-go/longshore/pluginapi"
)

func main() {
	redis.SetLogger(quiet{})
	pluginapi.Serve(transport{})
}

// quiet drops what the client logs: the same comes back as an error, and standard
// error belongs to the plugin's own log.
type quiet struct{}

// Printf does nothing.
func (quiet) Printf(context.Context, string, ...any) {}
