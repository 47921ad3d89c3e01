// SPDX-License-Identifier: Apache-2.0

// Command longshore-transport-file is the stream file transport as a plugin:
// `.ss` files that are read and written.
package main

import (
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file"
	"github.com/longshore-go/longshore/plugins/internal/collector"
)

func main() {
	defer collector.Relax()()
	pluginapi.Serve(file.New())
}
