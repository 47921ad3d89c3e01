// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

func TestEnumsPrintAsWords(t *testing.T) {
	for v, want := range map[fmt.Stringer]string{
		host.FailFast: "FailFast", host.AsAck: "AsAck", host.AsRetry: "AsRetry", host.AsDrop: "AsDrop",
		host.AsDeadLetter: "AsDeadLetter", host.NeverRetry: "NeverRetry", host.AsRetryAfter(time.Second): "AsRetryAfter(1s)",
		host.Reaction(-9): "Reaction(-9)", hosttest.StoredUnanswered: "stored, unanswered",
	} {
		if got := v.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
