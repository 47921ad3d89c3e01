// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// lentBatch is what a host holds for a while.
type lentBatch struct {
	deliveries []pluginapi.Delivery // their list is the transport's
	first      int
	memory     pluginapi.Memory
}

// Deliveries stay as they are until their memory is released, whatever is read on
// meanwhile, and for good where it is not.
func TestDeliveriesStayUntilReleased(t *testing.T) {
	const n = 6000
	text := func(i int) string { return fmt.Sprint(i, " ", strings.Repeat(string(rune('a'+i%26)), i*7%900)) }
	b := open(t, settings.Settings{Path: newPath(t)}, writes("k"))
	out := make([]pluginapi.Outgoing, n)
	for i := range out {
		if out[i] = servicetest.Message("k", text(i)); i%3 > 0 { // with headers: enveloped
			out[i] = servicetest.Message("k", text(i), "number", fmt.Sprint(i), "same", "yes")
		}
	}
	b.publish(out...)
	for name, o := range map[string]settings.Subscription{
		"alone": {Replay: true},
		"group": {Replay: true, Group: "g"},
	} {
		t.Run(name, func(t *testing.T) {
			s := b.subscribe("k", o)
			defer closeSub(t, s)
			var held, kept []lentBatch
			check := func(l lentBatch) {
				for i := range l.deliveries {
					d := &l.deliveries[i]
					id := l.first + i
					number, _ := d.Message.Headers.Get("stream-sequence")
					own, has := d.Message.Headers.Get("number")
					if string(d.Message.Payload) != text(id) || string(number) != fmt.Sprint(id+1) ||
						has != (id%3 > 0) || has && string(own) != fmt.Sprint(id) || len(d.Position) == 0 {
						t.Fatalf("delivery %d is %q with %v", id, d.Message.Payload, d.Message.Headers)
					}
				}
			}
			for got, k := 0, 0; got < n; k++ {
				batch, err := s.Receive(b.ctx, pluginapi.Room{Messages: 1 + k*37%90, Bytes: 8 << 20})
				if err != nil {
					t.Fatal(err)
				}
				l := lentBatch{slices.Clone(batch.Deliveries), got, batch.Memory}
				got += len(l.deliveries)
				if l.memory == nil || k%11 == 0 {
					kept = append(kept, l)
					continue
				}
				if held = append(held, l); len(held) > k%4 {
					check(held[0])
					held[0].memory.Release()
					held = held[1:]
				}
			}
			for _, l := range append(held, kept...) {
				check(l)
			}
		})
	}
}
