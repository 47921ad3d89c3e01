// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"testing"

	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
)

func TestExamplesOverPulsar(t *testing.T) {
	b := pulsarbroker.Start(t, pulsarbroker.Config{})
	sea := mosquitto.Start(t, mosquitto.Config{})
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"counted-jobs", []string{b.URL()}},
		{"keyed-order", []string{b.URL()}},
		{"bridge", []string{sea.URL(), b.URL()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, log := run(t, "..", "", append([]string{tt.name}, tt.args...)...)
			compare(t, tt.name, out, log)
		})
	}
}
