// SPDX-License-Identifier: Apache-2.0

package position

import (
	"errors"
	"fmt"
	"testing"
)

// With any one bit of a position flipped it is refused, or stands where it stood
// at some time before: nothing unsettled is left out, and no count is invented.
func TestFlippedBits(t *testing.T) {
	d := &memory{}
	tr := mustOpen(t, d)
	all := stream(40)
	shown := func(tr *Tracker) string {
		last, ok := tr.Last()
		return fmt.Sprint(tr.Fresh(), tr.Next(), last, ok, pending(tr))
	}
	known := map[string]bool{}
	note := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
		known[shown(mustOpen(t, d.again()))] = true
	}
	note(tr.Begin(all[0].Place))
	es := tr.Deliver(nil, all[:10], all[10].Place)
	note(tr.Save())
	note(tr.Settle(acks(es[1], es[2], es[9])))
	note(tr.Settle([]Verdict{{Entry: es[0], Requeue: true}, {Entry: es[4], Requeue: true}}))
	for range 2 {
		tr.Waiting()
		tr.Again()
	}
	note(tr.Save())
	tr.Moved(all[20].Place)
	note(tr.Save())
	es = append(es, tr.Deliver(nil, all[20:30], all[30].Place)...)
	note(tr.Save())
	note(tr.Settle(acks(es[3], es[12])))
	refused := 0
	for at := range d.bytes {
		if d.bytes[at] == 0 && at > holderAt && at%64 != 0 { // most of the file is empty
			continue
		}
		for bit := range 8 {
			broken := d.again()
			broken.bytes[at] ^= 1 << bit
			again, err := open(broken, "test.pos")
			var corrupt *CorruptError
			switch {
			case errors.As(err, &corrupt):
				refused++
			case err != nil:
				t.Fatalf("byte %d, bit %d: %v", at, bit, err)
			case !known[shown(again)]:
				t.Fatalf("byte %d, bit %d: %s", at, bit, shown(again))
			}
		}
	}
	if refused == 0 {
		t.Error("no flipped bit was refused")
	}
}
