// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"encoding/json"
	"testing"
)

// A card shows no secret, and no password of a URL.
func TestShownHidesSecrets(t *testing.T) {
	schema := []byte(`{"properties":{"url":{"type":"string"},"token":{"type":"string","writeOnly":true},
		"peers":{"items":{"type":"string"}},"tls":{"properties":{"key":{"type":"string","writeOnly":true}}}}}`)
	got, err := shown(json.RawMessage(`{"url":"mqtt://ann:s3cret@host","token":"s3cret","peers":["tcp://a:s3cret@b","c"],"tls":{"key":"s3cret","ca":"f"},"n":1}`), schema)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"n":1,"peers":["tcp://a:[redacted]@b","c"],"tls":{"ca":"f","key":""},"token":"","url":"mqtt://ann:[redacted]@host"}`; string(text) != want {
		t.Errorf("shown as %s, want %s", text, want)
	}
}
