// SPDX-License-Identifier: Apache-2.0

package mqtt

import (
	"fmt"
	"testing"

	"github.com/longshore-go/longshore/pluginapi"
)

// Options are what they are, however many kinds take turns in the same memory.
func TestPublishOptionsOf(t *testing.T) {
	var p publishOptions
	var memory []byte
	for kinds := 1; kinds <= 7; kinds++ {
		for i := range 50 {
			expiry := i % kinds
			memory = fmt.Appendf(memory[:0], `{"qos":%d,"expiry":"%ds"}`, i%3, expiry)
			o, err := p.of(pluginapi.NewOptions(memory))
			if err != nil || *o.QoS != i%3 || o.Expiry.String() != fmt.Sprintf("%ds", expiry) {
				t.Fatalf("%s is read as QoS %d, expiry %v, %v", memory, *o.QoS, o.Expiry, err)
			}
		}
	}
	if o, err := p.of(pluginapi.Options{}); err != nil || *o.QoS != 1 || o.Retain {
		t.Errorf("none are read as %+v, %v", o, err)
	}
	if _, err := p.of(pluginapi.NewOptions([]byte(`{"qos":3}`))); err == nil {
		t.Error("QoS 3 is taken")
	}
	two, other := pluginapi.NewOptions([]byte(`{"qos":2}`)), pluginapi.NewOptions([]byte(`{"qos":0}`))
	if n := testing.AllocsPerRun(100, func() {
		_, _ = p.of(two)
		_, _ = p.of(other)
	}); n > 0 {
		t.Errorf("%v allocations where two kinds take turns", n)
	}
}
