// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
)

// Names, scopes, header names and dedup ids may be kept: a map keyed by them must
// find them again when the frame's memory is used for another one.
func TestStringsOutliveTheirFrame(t *testing.T) {
	long := strings.Repeat("n", wordMost+1)
	kept := map[string]bool{}
	for i := range 3 * wordSlots {
		name := fmt.Sprintf("orders-%d", i)
		m := core.Message{Name: name, Headers: core.Headers{{Name: "x-" + name, Value: []byte("v")}, {Name: long}}}
		var e PublishEncoder
		if f := e.Reset([]Outgoing{{ID: 1, Message: m, DedupID: "id-" + name}}); f != nil || !e.Next() {
			t.Fatal(f)
		}
		slab := Pool{}.Get(e.Size())
		*slab = e.Append((*slab)[:0])
		p, err := DecodePublishes(slab)
		if err != nil {
			t.Fatal(err)
		}
		got := &p.Items[0]
		for _, s := range []string{got.Message.Name, got.Message.Headers[0].Name, got.Message.Headers[1].Name, got.DedupID} {
			kept[s] = true
		}
		bytes := *slab
		p.Release()
		clear(bytes[:cap(bytes)])
		for _, s := range []string{name, "x-" + name, long, "id-" + name} {
			if !kept[s] {
				t.Fatalf("message %d: %q is not kept", i, s)
			}
		}
	}
}

func TestStringsOfDeliveriesOutliveTheirFrame(t *testing.T) {
	out := SubscribeResponse{Deliveries: DeliveriesOf(1)}
	out.Deliveries.Items = append(out.Deliveries.Items, Delivery{ID: 1, Scope: "partition-7", Message: core.Message{Name: "orders", Headers: core.Headers{{Name: "x-a"}}}})
	var e SubscribeResponseEncoder
	if f := e.Reset(&out); f != nil || !e.Next() {
		t.Fatal(f)
	}
	slab := Pool{}.Get(e.Size())
	*slab = e.Append((*slab)[:0])
	out.Deliveries.Release()
	var in SubscribeResponse
	if err := DecodeSubscribeResponse(slab, &in); err != nil {
		t.Fatal(err)
	}
	d := in.Deliveries.Items[0]
	name, scope, header := d.Message.Name, d.Scope, d.Message.Headers[0].Name
	bytes := *slab
	in.Deliveries.Release()
	clear(bytes[:cap(bytes)])
	if name != "orders" || scope != "partition-7" || header != "x-a" {
		t.Errorf("kept %q, %q, %q", name, scope, header)
	}
}

// Words are found whatever stood in their place in the message before.
func TestWordsOfMessagesThatDiffer(t *testing.T) {
	var w words
	for i := range 200 {
		w.begin()
		for k := range 2*wordOrder + i%3 {
			want := strings.Repeat("w", k*i%(wordMost+3)) + fmt.Sprint(i%5*k)
			b := []byte(want)
			got := w.of(b)
			clear(b)
			if got != want {
				t.Fatalf("message %d, word %d: %q, want %q", i, k, got, want)
			}
		}
	}
}
