// SPDX-License-Identifier: Apache-2.0

package pluginapi_test

import (
	"fmt"
	"testing"

	"github.com/longshore-go/longshore/pluginapi"
)

func TestValuesInWords(t *testing.T) {
	got := fmt.Sprint(pluginapi.PurposeUnspecified, pluginapi.PurposeReply, pluginapi.Purpose(9), pluginapi.ReceiptUnknown,
		pluginapi.ResultFailed, pluginapi.ResultStatus(255), pluginapi.PositionExact)
	if want := "unspecified reply purpose 9 unknown failed result status 255 exact"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
