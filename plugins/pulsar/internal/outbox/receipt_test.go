// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"errors"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/outbox"
)

// What the library had begun to send may have been stored, whatever its error; only
// what it had not is refused.
func TestReceiptsOfErrors(t *testing.T) {
	for _, tt := range []struct {
		name      string
		err       error
		status    pluginapi.ReceiptStatus
		code      core.FaultCode
		transient bool
	}{
		{"closed", pulsar.ErrProducerClosed, pluginapi.ReceiptUnknown, core.FaultClosed, true},
		{"no answer", pulsar.ErrSendTimeout, pluginapi.ReceiptUnknown, core.FaultTimeout, true},
		{"terminated", errors.Join(pulsar.ErrTopicTerminated, errors.New("server error: TopicTerminatedError: over")), pluginapi.ReceiptUnknown, core.FaultClosed, false},
		{"quota", errors.Join(pulsar.ErrProducerBlockedQuotaExceeded, errors.New("server error: ProducerBlockedQuotaExceededException: full")), pluginapi.ReceiptUnknown, core.FaultExhausted, true},
		{"too large", pulsar.ErrMessageTooLarge, pluginapi.ReceiptRefused, core.FaultTooLarge, false},
		{"no type", errors.New("encryption size"), pluginapi.ReceiptRefused, core.FaultTooLarge, false},
	} {
		r := outbox.ReceiptFor(tt.err)
		if r.Status != tt.status || r.Fault.Code != tt.code || r.Fault.Transient != tt.transient {
			t.Errorf("%s: %v, %+v; want %v, %v, transient %t", tt.name, r.Status, r.Fault, tt.status, tt.code, tt.transient)
		}
	}
}
