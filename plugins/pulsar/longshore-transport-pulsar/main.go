// SPDX-License-Identifier: Apache-2.0

// Command longshore-transport-pulsar is the Pulsar transport as a plugin.
package main

import (
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/collector"
	"github.com/longshore-go/longshore/plugins/pulsar"
)

func main() {
	defer collector.Relax()()
	pluginapi.Serve(pulsar.New())
}
