// SPDX-License-Identifier: Apache-2.0

// Command longshore-transport-zmq is the ZeroMQ transport as a plugin: queues,
// fan-out and requests between peers, without a broker.
package main

import (
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/collector"
	"github.com/longshore-go/longshore/plugins/zmq"
)

func main() {
	defer collector.Relax()()
	pluginapi.Serve(zmq.New())
}
