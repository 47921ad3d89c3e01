// SPDX-License-Identifier: Apache-2.0

// Command longshore-transport-mqtt is the MQTT 5 transport as a plugin.
package main

import (
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/collector"
	"github.com/longshore-go/longshore/plugins/mqtt"
)

func main() {
	defer collector.Relax()()
	pluginapi.Serve(mqtt.New())
}
