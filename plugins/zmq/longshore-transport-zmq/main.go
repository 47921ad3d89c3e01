// SPDX-License-Identifier: Apache-2.0

// Command longshore-transport-zmq is the ZeroMQ transport as a plugin: queues,
// fan-out and requests between peers, without a broker.
package main

import (
	"runtime/debug"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq"
)

// collectAt is for a process in which little is alive and all that is read
// becomes garbage: with the default the collector would hardly stop.
const collectAt = 400 // percent

func main() {
	debug.SetGCPercent(collectAt)
	pluginapi.Serve(zmq.New())
}
