// SPDX-License-Identifier: Apache-2.0

package position

import (
	"os"
	"strconv"
	"testing"
)

func pid() string { return strconv.Itoa(os.Getpid()) }

// With more holes than it can hold a position stays where it is.
func TestHolesAreBounded(t *testing.T) {
	const more = 500
	s, d := stream(MaxUnsettled+more+1), &memory{}
	tr := mustOpen(t, d)
	if err := tr.Begin(s[0].Place); err != nil {
		t.Fatal(err)
	}
	var es []*Entry
	for i := 0; i+1 < len(s); i += more {
		n := min(i+more, len(s)-1)
		es = tr.Deliver(es, s[i:n], s[n].Place)
		if err := tr.Save(); err != nil {
			t.Fatal(err)
		}
	}
	if !tr.Full() || tr.Unsettled() != MaxUnsettled || len(es) != MaxUnsettled+more {
		t.Fatalf("full %v, %d unsettled, %d entries", tr.Full(), tr.Unsettled(), len(es))
	}
	if got, want := tr.Next(), s[MaxUnsettled].Place; got != want {
		t.Errorf("next is %v, want the first record without a place, %v", got, want)
	}
	// What has no place is handed out again and settled all the same.
	beyond := es[MaxUnsettled:]
	if err := tr.Settle([]Verdict{{Entry: beyond[0], Requeue: true}}); err != nil {
		t.Fatal(err)
	}
	if e := tr.Waiting(); e == nil || e.Place != beyond[0].Place {
		t.Fatalf("waiting: %v", e)
	}
	if e := tr.Again(); e.Attempt != 2 {
		t.Errorf("attempt %d, want 2", e.Attempt)
	} else if err := tr.Settle(acks(append(beyond[1:], e)...)); err != nil {
		t.Fatal(err)
	}
	tr.Moved(s[MaxUnsettled+more].Place)
	if err := tr.Settle(acks(es[1:MaxUnsettled]...)); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, d.again())
	if again.Unsettled() != 1 || again.Next() != s[MaxUnsettled].Place || again.Full() {
		t.Errorf("%d unsettled, next %v, full %v", again.Unsettled(), again.Next(), again.Full())
	}
	if n := len(d.bytes); n > slotsAt+2*slotSize {
		t.Errorf("%d bytes", n)
	}
}

// The widest state has its place in a slot.
func TestWidestState(t *testing.T) {
	tr := mustOpen(t, &memory{})
	tr.stored.next = Place{Created: 1 << 62, Offset: 1 << 62}
	for i := range MaxUnsettled {
		tr.list.push(&Entry{Place: Place{Created: int64(i%2) << 62, Offset: int64(i%2) << 62}, Attempt: 1<<32 - 1})
	}
	if n := len(tr.encode()); n > slotSize {
		t.Errorf("%d bytes, a slot has %d", n, slotSize)
	}
}

// A position does not grow with what is settled.
func TestSizeIsBounded(t *testing.T) {
	s, d := stream(2001), &memory{}
	tr := mustOpen(t, d)
	if err := tr.Begin(s[0].Place); err != nil {
		t.Fatal(err)
	}
	used := 0
	for round := range 500 {
		i := round * 4
		es := tr.Deliver(nil, s[i:i+4], s[i+4].Place)
		if err := tr.Save(); err != nil {
			t.Fatal(err)
		}
		for range 20 { // many changes
			if err := tr.Settle([]Verdict{{Entry: es[0], Requeue: true}}); err != nil {
				t.Fatal(err)
			}
			es[0] = tr.Again()
			if err := tr.Save(); err != nil {
				t.Fatal(err)
			}
		}
		if err := tr.Settle(acks(es...)); err != nil {
			t.Fatal(err)
		}
		used = max(used, tr.store.end)
	}
	if used > minLog+4096 {
		t.Errorf("a slot took %d bytes, with %d for changes", used, minLog)
	}
	if again := mustOpen(t, d.again()); again.Unsettled() != 0 || again.Next() != s[2000].Place {
		t.Errorf("%d unsettled, next %v", again.Unsettled(), again.Next())
	}
}

// benchmarkTracker hands out and settles batches beside so many holes.
func benchmarkTracker(b *testing.B, holes int) {
	const batch = 256
	s := stream(batch + 1)
	tr, err := Open(b.TempDir(), "bench", "orders", "")
	if err != nil {
		b.Fatal(err)
	}
	defer tr.Close()
	if err := tr.Begin(s[0].Place); err != nil {
		b.Fatal(err)
	}
	for range holes {
		tr.Release(tr.Deliver(nil, s[:1], s[1].Place)...)
	}
	var es []*Entry
	vs := make([]Verdict, batch)
	b.ReportAllocs()
	for b.Loop() {
		es = tr.Deliver(es[:0], s[:batch], s[batch].Place)
		if err := tr.Save(); err != nil {
			b.Fatal(err)
		}
		for i, e := range es {
			vs[i] = Verdict{Entry: e}
		}
		if err := tr.Settle(vs); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/record")
}

func BenchmarkTracker(b *testing.B) {
	for _, holes := range []int{0, 1000, MaxUnsettled - 1000} {
		b.Run(strconv.Itoa(holes)+"holes", func(b *testing.B) { benchmarkTracker(b, holes) })
	}
}
