// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/poison"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/intake"
)

// Little that waits keeps little memory, though it came with much that was
// handled, in reads of any size.
func TestLittleKeepsLittle(t *testing.T) {
	const size, rounds = 500, 100
	for _, each := range []int{1, 8, 100, 400} {
		t.Run(fmt.Sprintf("one of %d", each), func(t *testing.T) {
			b := newBench(t)
			busy, idle := b.open("busy", 0), b.open("idle", 0)
			b.up(intake.Session{})
			text := strings.Repeat("x", size)
			for range rounds {
				list := []sent{q0("idle", text, "idle")}
				for range each - 1 {
					list = append(list, q0("busy", text, "busy"))
				}
				b.send(list...)
				busy.all()
			}
			items, bytes := idle.Held()
			want(t, "waiting", items, rounds)
			if most := int64(4*rounds*(size+20) + 64<<10); bytes > most {
				t.Errorf("%d messages of %d bytes keep %d bytes, want at most %d", items, size, bytes, most)
			}
		})
	}
}

// A receiver that is behind owns what waits for it.
func TestBehindKeepsItsOwn(t *testing.T) {
	b := newBench(t)
	x, y := b.open("x", 0), b.open("y", 0)
	b.up(intake.Session{})
	text := strings.Repeat("x", 1000)
	sum := int64(0)
	for range 100 { // half of each read is for y, which does not receive
		var list []sent
		for range 50 {
			list = append(list, q0("x", text, "x"), q0("y", text, "y"))
			sum += 1005
		}
		b.send(list...)
		x.all()
	}
	items, bytes := y.Held()
	want(t, "waiting", items, 5000)
	if most := sum + 4<<20; bytes > most {
		t.Errorf("%d bytes that wait keep %d, want at most %d", sum, bytes, most)
	}
	// Large ones stay where they are: they fill what they lie in.
	large := strings.Repeat("y", 200<<10)
	before := bytes
	b.send(q0("y", large, "y"))
	if _, after := y.Held(); after-before > 250<<10 {
		t.Errorf("a message of 200 KiB keeps %d bytes", after-before)
	}
	list := y.all()
	want(t, "the last", list[len(list)-1].text, "y "+large)
}

// A queue that was long once gives its memory back.
func TestQueueShrinks(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 0)
	b.up(intake.Session{})
	for range 5000 {
		b.send(q0("a", "x", "a"))
	}
	if rc.Ring() < 5000 {
		t.Fatalf("a queue of %d items holds 5,000", rc.Ring())
	}
	rc.all()
	if n := rc.Ring(); n > 2048 {
		t.Errorf("an empty queue has room for %d items", n)
	}
}

// Receivers that are quiet keep a small chunk each, and none of those of a rush.
func TestQuietReceiversKeepLittle(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 0)
	b.up(intake.Session{})
	for range 3 {
		for range 100 {
			b.send(q0("a", strings.Repeat("x", 1000), "a"))
		}
		rc.all()
		if n := rc.Chunk(); n > 4<<10 {
			t.Errorf("it keeps a chunk of %d bytes", n)
		}
		b.send(q0("a", "x", "a"))
		rc.all()
		want(t, "chunk of a quiet one", rc.Chunk(), 4<<10)
	}
}

// telling is a text all of which tells which one it is.
func telling(n, size int) string {
	head := fmt.Sprintf("%d:%d:", n, size)
	piece := fmt.Sprintf("%016x", rand.NewPCG(uint64(n), 7).Uint64())
	return head + strings.Repeat(piece, max(size-len(head), 0)/len(piece)+1)
}

// What is delivered stays as it is until its memory is released, however late,
// whether it was copied or not.
func TestMessagesStayUntilTheirMemoryIsReleased(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := newBench(t, func(c *intake.Config) { c.ReceiveMaximum = 0 })
	wires := []string{"a", "b", "+"}
	var rcs []*receiver
	for _, w := range wires {
		rcs = append(rcs, b.open(w, 1))
	}
	b.up(intake.Session{})
	type batch struct {
		pluginapi.Batch
		rc *receiver
	}
	var kept []batch
	end := func(i int) {
		k := kept[i]
		kept = append(kept[:i], kept[i+1:]...)
		var vs []pluginapi.Verdict
		for _, d := range k.Deliveries {
			var n, size int
			if _, err := fmt.Sscanf(string(d.Message.Payload), "%d:%d:", &n, &size); err != nil || telling(n, size) != string(d.Message.Payload) {
				t.Fatalf("a payload of %d bytes is not what was sent: %.60q", len(d.Message.Payload), d.Message.Payload)
			}
			vs = append(vs, pluginapi.Verdict{Handle: d.Handle, Kind: core.VerdictAck})
		}
		k.rc.Settle(t.Context(), vs)
		if k.Memory != nil {
			k.Memory.Release()
		}
	}
	n := 0
	id := uint16(0)
	for range 120 {
		var list []sent
		for range 1 + r.IntN(30) {
			n, id = n+1, id%60000+1
			size := []int{70000, 5000, 1000, 100, 10}[min(r.IntN(12), 4)]
			w := wires[:1+r.IntN(2)]
			if r.IntN(3) == 0 {
				w = wires
			}
			list = append(list, q1(id, "a", telling(n, size), w...))
		}
		b.send(list...)
		for range r.IntN(4) {
			rc := rcs[r.IntN(len(rcs))]
			got, _, err := rc.Take(pluginapi.Room{Messages: 1 + r.IntN(40), Bytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			got.Deliveries = append([]pluginapi.Delivery(nil), got.Deliveries...)
			kept = append(kept, batch{got, rc})
		}
		for len(kept) > 20 {
			end(r.IntN(len(kept)))
		}
		b.answers()
	}
	for len(kept) > 0 {
		end(0)
	}
	if !poison.On {
		t.Log("memory that is given back is not overwritten in this build")
	}
}

// A handle is not handed out again before the host can have forgotten it.
func TestHandlesAreOthersUntilTheNextSettle(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 1)
	b.up(intake.Session{})
	seen := map[any]int{}
	for id := range uint16(20) {
		b.send(q1(id+1, "a", "x", "a"))
		d := rc.one()
		if at, ok := seen[d.handle]; ok && at+1 >= int(id) {
			t.Errorf("the handle of delivery %d is that of %d as well", id, at)
		}
		seen[d.handle] = int(id)
		rc.done(d)
	}
	if len(seen) > 3 {
		t.Errorf("%d handles for deliveries one by one", len(seen))
	}
}

func TestNoAllocations(t *testing.T) {
	if poison.On {
		t.Skip("the race detector allocates")
	}
	for _, qos := range []byte{0, 1, 2} {
		const each = 64
		p := newPump(t, qos, 512, each)
		if per := testing.AllocsPerRun(500, p.round) / each; per > 0.05 {
			t.Errorf("QoS %d: %.3f allocations a message", qos, per)
		}
		p.end()
	}
}
