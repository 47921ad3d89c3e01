// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"strings"
	"testing"
)

// A transport that stands in for others takes the options that those take, and
// shows none of them.
func TestAnySchemaTakesAnyObject(t *testing.T) {
	o, wrong := AnySchema().options([]byte(`{"qos":1,"token":"s3cret"}`))
	if len(wrong) > 0 || string(o.JSON()) != `{"qos":1,"token":"s3cret"}` {
		t.Errorf("got %s, %v", o.JSON(), wrong)
	}
	if text := o.String(); strings.Contains(text, "s3cret") {
		t.Errorf("shows %s", text)
	}
	for _, raw := range []string{`[]`, `1`, `{"a":1,"a":2}`, `{`} {
		if _, wrong := AnySchema().options([]byte(raw)); len(wrong) != 1 {
			t.Errorf("%s: %v", raw, wrong)
		}
	}
}
