// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"strings"
	"testing"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/outbox"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// What was written may have been stored, whatever the reason that nothing more comes
// of it; only what was not is refused.
func TestReceiptsOfErrors(t *testing.T) {
	for _, code := range []wire.ServerError{wire.TopicTerminatedError, wire.ProducerBlockedQuotaExceededError, wire.AuthorizationError} {
		why := client.Explain("open", &client.ServerError{Code: code, Message: "over"})
		for tries, want := range []pluginapi.ReceiptStatus{pluginapi.ReceiptRefused, pluginapi.ReceiptUnknown, pluginapi.ReceiptUnknown} {
			r := outbox.ReceiptFor(why, tries)
			if r.Status != want || r.Fault.Code != why.Code || r.Fault.Transient != why.Transient {
				t.Errorf("%v, written %d times: %v, %+v", code, tries, r.Status, r.Fault)
			}
			if unsure := strings.Contains(r.Fault.Message, "may have been stored"); unsure != (tries > 0) {
				t.Errorf("%v, written %d times: %s", code, tries, r.Fault.Message)
			}
		}
	}
}
