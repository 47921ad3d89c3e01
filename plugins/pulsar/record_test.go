// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"testing"

	"github.com/longshore-go/longshore/internal/servicetest"
)

// The table of ADR 0120 names tests that are there, at least one for each promise.
func TestRecordOfPromises(t *testing.T) {
	servicetest.Record(t, "0120-a-client-of-pulsars-protocol.md", "| what a client of ours keeps |", 20)
}
