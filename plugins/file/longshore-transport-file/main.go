// SPDX-License-Identifier: Apache-2.0

// Command longshore-transport-file is the stream file transport as a plugin:
// `.ss` files that are read and written.
package main

import (
	"runtime/debug"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file"
)

// collectAt is for a process in which little is alive and all that is read
// becomes garbage: with the default the collector would hardly stop.
const collectAt = 400 // percent

func main() {
	debug.SetGCPercent(collectAt)
	pluginapi.Serve(file.New())
}
