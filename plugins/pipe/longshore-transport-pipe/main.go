// SPDX-License-Identifier: Apache-2.0

// Command longshore-transport-pipe is the pipe transport as a plugin: the
// host's standard input and output.
package main

import (
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pipe"
)

func main() { pluginapi.Serve(pipe.New()) }
