// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/rows"
)

// What is packed comes back, in as much memory as it needs.
func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SliceOfN(rapid.Byte(), 0, 300)
		o := frame.Outgoing{
			Carry:   value.Draw(t, "carry"),
			DedupID: rapid.StringN(0, 40, 160).Draw(t, "id"),
			Message: core.Message{Name: rapid.String().Draw(t, "name"), Payload: value.Draw(t, "payload")},
		}
		for i := range rapid.IntRange(0, 200).Draw(t, "headers") {
			o.Message.Headers = append(o.Message.Headers, core.Header{
				Name: rapid.String().Draw(t, fmt.Sprint("name", i)), Value: value.Draw(t, fmt.Sprint("value", i)),
			})
		}
		got := unpack(pack(&o))
		if diff := cmp.Diff(o, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// What is taken out may be changed, and may grow, without a trace in the rest.
func TestUnpackedIsOnesOwn(t *testing.T) {
	o := frame.Outgoing{Carry: []byte("c"), Message: core.Message{Payload: []byte("p"), Headers: core.Headers{{Name: "n", Value: []byte("v")}}}}
	text := pack(&o)
	a, b := unpack(text), unpack(text)
	_ = append(a.Carry, "xxx"...)
	_ = append(a.Message.Headers[0].Value, "xxx"...)
	a.Message.Payload[0], a.Carry[0] = 'x', 'x'
	if a.Message.Headers[0].Name != "n" || string(a.Message.Headers[0].Value) != "v" {
		t.Errorf("got %+v", a)
	}
	if diff := cmp.Diff(o, b); diff != "" {
		t.Error(diff)
	}
}

// A copy that is taken up has the plan that it had, at the same step: of every
// row in which one waits.
func TestTakenUpAsItWas(t *testing.T) {
	all, err := rows.Read("../../../core/testdata/rows.tsv")
	if err != nil {
		t.Fatal(err)
	}
	w := NewWaiting(WaitingOptions{})
	defer w.Close()
	n := 0
	for _, r := range all {
		if rows.Others()[r.ID] != "" || r.Outcome == "start" {
			continue
		}
		trials, err := r.Trials()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range trials {
			l := &Lane{o: LaneOptions{Policy: x.Policy, Waiting: w}}
			l.spare.New = func() any { return newSettlement(l) }
			s := l.settlement()
			s.c = x.Case
			s.c.Held, s.c.Attempt.Copies = 7*time.Second, s.c.Attempt.Copies+3
			core.Decide(&l.o.Policy, &s.c, &s.plan)
			s.cur = s.plan.Start()
			var ok bool
			for s.step, ok = s.cur.Next(core.ResultDone); ok && s.step.Do != core.ActPublishLater; {
				s.step, ok = s.cur.Next(core.ResultDone)
			}
			if !ok {
				continue
			}
			n++
			p, c := s.layBy()
			w.mu.Lock()
			p.scene = w.scene(c)
			got := w.takeUp(p)
			w.mu.Unlock()
			if got.c != s.c || got.plan != s.plan || got.step != s.step || got.cur != s.cur.On(&got.plan) {
				t.Errorf("%s, %s: taken up as %+v, was %+v", r.ID, x.Name, got.c, s.c)
			}
			w.mu.Lock()
			w.open = nil
			w.mu.Unlock()
		}
	}
	if n < 20 {
		t.Errorf("%d rows have a copy that waits", n)
	}
	if len(w.scenes) != 0 {
		t.Errorf("%d scenes are left", len(w.scenes))
	}
}

// Who adds a field to what a copy is made of says here whether it outlives the
// wait; layBy and takeUp keep those that do.
func TestParcelsKnowEveryField(t *testing.T) {
	tests := map[reflect.Type]string{
		reflect.TypeFor[settlement](): "l f left index key over stray putOff handling hush probe decided clone generation id d said reason failed row bad " +
			"c of plan cur step trace did final fault out stored released marked reserved waiting " +
			"tries deadline resend keeping acking wait",
		reflect.TypeFor[Delivery]():       "Message Attempt Number Last Scope Identity Position Published Received Undecodable Unkeyed Snoozes Returned Value",
		reflect.TypeFor[frame.Outgoing](): "ID Message Purpose Carry DeliverAfter DedupID Options",
	}
	for typ, known := range tests {
		names := strings.Fields(known)
		for i := range typ.NumField() {
			if name := typ.Field(i).Name; !slices.Contains(names, name) {
				t.Errorf("%v.%s: does it outlive the wait of a copy?", typ, name)
			}
		}
	}
}

// However many copies are due at once, no more are taken up than there is room
// for, and all of them leave, in the order of their times.
func TestDueCopiesWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 2000
		n := 0
		b := newBench(t, kindA, func(*Delivery) Said {
			n++
			return Said{Outcome: later(time.Hour - time.Duration(n)*time.Millisecond)}
		}, func(s *setup) {
			s.blind = true
			s.waiting.Bytes = all * 400
			s.plugin = func(p *plugin) { p.receipt = none }
		})
		synctest.Wait()
		for i := range all {
			b.p.deliver(message(fmt.Sprint(i)))
			synctest.Wait()
		}
		if got := b.waiting.Len(); got != all {
			t.Fatalf("%d copies wait", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		b.waiting.mu.Lock()
		open, taken := len(b.waiting.open), b.waiting.room
		b.waiting.mu.Unlock()
		if open != openLeast || b.waiting.Len() != all {
			t.Errorf("%d of %d copies are being published, %+v is taken", open, b.waiting.Len(), taken)
		}
		for id := range uint64(all) {
			b.p.receipts <- frame.Receipt{ID: id + 1, Status: frame.ReceiptConfirmed}
			synctest.Wait()
		}
		if b.waiting.Len() != 0 || b.waiting.room != (room{}) {
			t.Errorf("%d copies are left, %+v is taken", b.waiting.Len(), b.waiting.room)
		}
		for i, o := range b.p.outgoing() {
			if string(o.Payload) != fmt.Sprint(all-1-i) {
				t.Fatalf("copy %d is %s", i, o.Payload)
			}
		}
	})
}

// A delay that nobody lives to see is no overflow.
func TestLongestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, says(later(1<<63-1)))
		synctest.Wait()
		time.Sleep(time.Second)
		b.p.deliver(message("x"))
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(b.p.outgoing()); n != 0 || b.waiting.Len() != 1 {
			t.Errorf("%d left, %d wait", n, b.waiting.Len())
		}
	})
}

// A stop that cuts waiting copies counts them alike, whether or not somebody is
// told of each (D16, S-GEN-42).
func TestStopCutsWaitingCopies(t *testing.T) {
	for name, blind := range map[string]bool{"told": false, "not told": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, kindA, says(later(time.Hour)), func(s *setup) { s.blind = blind })
				synctest.Wait()
				for range 5 {
					b.p.deliver(message("x"))
				}
				b.p.deliver(message(strings.Repeat("x", 2*packMost)))
				synctest.Wait()
				left, lost, missing := b.stop(limited(t, time.Second))
				if !left.Empty() || missing != 0 {
					t.Errorf("left %+v, %d missing", left, missing)
				}
				if diff := cmp.Diff([]WaitingCopies{{Endpoint: "in", Subscription: "jobs", Count: 6}}, lost); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(Counters{Received: 6, Dropped: 6, Lost: 6}, b.lane.Counters()); diff != "" {
					t.Error(diff)
				}
				if lines := b.logs.lines("L-ABND"); len(lines) != 1 || lines[0]["count"] != 6.0 {
					t.Errorf("lines %v", lines)
				}
				if b.waiting.room != (room{}) || b.waiting.Len() != 0 || len(b.waiting.scenes) != 0 {
					t.Errorf("room is still taken: %+v", b.waiting.room)
				}
			})
		})
	}
}
