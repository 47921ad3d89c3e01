// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"testing"

	"github.com/longshore-go/longshore/internal/mosquitto"
)

func TestExamplesOverMQTT(t *testing.T) {
	b := mosquitto.Start(t, mosquitto.Config{})
	for _, name := range []string{"telemetry", "shared-workers", "request-reply"} {
		t.Run(name, func(t *testing.T) {
			out, log := run(t, "..", "", name, b.URL())
			compare(t, name, out, log)
		})
	}
}
