// SPDX-License-Identifier: Apache-2.0

package position

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A position as it stands on disk.
func TestFormat(t *testing.T) {
	d := &memory{}
	tr := mustOpen(t, d)
	s := stream(4)
	if err := tr.Begin(s[0].Place); err != nil {
		t.Fatal(err)
	}
	es := tr.Deliver(nil, s[:3], s[3].Place)
	if err := tr.Save(); err != nil {
		t.Fatal(err)
	}
	if err := tr.Settle([]Verdict{{Entry: es[0]}, {Entry: es[2]}, {Entry: es[1], Requeue: true}}); err != nil {
		t.Fatal(err)
	}
	tr.Again()
	tr.Moved(Place{Created: s[3].Created, Offset: 1000})
	if err := tr.Save(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ part, want, got string }{
		{"head", "6c73706f73000001" + "000167" + "00066f7264657273" + "e2bcd341", hex.EncodeToString(appendHead(nil, "g", "orders"))},
		{"slot", "6c737073" + "0000000000000001" + "0000000a" + "74888c02" +
			"80b083c59868" + "8002" + "00" + "00" + // state
			"00000011" + "e27aca0d" + "01" + "03" + "0200" + "0250" + "0252" + "03" + "84b083c59868" + "0058" + // deliver
			"00000006" + "4facfab5" + "03" + "02" + "0001" + "0101" + // 0 and 2 are settled
			"00000004" + "385fc5b0" + "02" + "01" + "0101" + // 1 is handed out again
			"00000004" + "0152aea2" + "04" + "00" + "ae0c", // moved
			hex.EncodeToString(d.bytes[slotsAt:])},
	} {
		if tt.got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.part, tt.got, tt.want)
		}
	}
}

func TestRuns(t *testing.T) {
	for _, ids := range [][]uint32{{}, {0}, {5, 3, 4}, {0, 2, 4, 6}, {900, 1, 0, 901, 17}} {
		b := appendRuns(nil, slices.Clone(ids))
		d := decoder{rest: b}
		d.to.unsettled = make([]saved, 1000)
		d.settled = make([]bool, 1000)
		var got []uint32
		d.runs(func(i uint64) { got = append(got, uint32(i)) })
		d.end()
		slices.Sort(ids)
		if !slices.Equal(got, ids) || d.reason != "" {
			t.Errorf("%v became %v (%s)", ids, got, d.reason)
		}
	}
}

// FuzzDecode reads any slot, with checksums that fit. What is understood says
// the same when it is written anew.
func FuzzDecode(f *testing.F) {
	d := &memory{}
	tr := mustOpen(f, d)
	s := stream(300)
	if err := tr.Begin(s[0].Place); err != nil {
		f.Fatal(err)
	}
	es := tr.Deliver(nil, s[:250], s[250].Place)
	tr.Settle(acks(es[3:200]...))
	tr.Settle([]Verdict{{Entry: es[0], Requeue: true}})
	tr.Again()
	tr.Moved(s[260].Place)
	if err := tr.Save(); err != nil {
		f.Fatal(err)
	}
	f.Add(d.bytes[slotsAt:], true)
	f.Add(d.bytes[slotsAt:], false)
	f.Add([]byte("lsps"), false)
	f.Fuzz(func(t *testing.T, b []byte, mend bool) {
		if mend {
			b = mended(b)
		}
		got, err := decodeSlot(b)
		if err != nil || got == nil {
			return
		}
		if got.end > len(b) || len(got.state.unsettled) > MaxUnsettled {
			t.Fatalf("end %d of %d, %d unsettled", got.end, len(b), len(got.state.unsettled))
		}
		disk := &memory{bytes: append(make([]byte, slotsAt), b...)}
		tr, err := open(disk, "fuzz.pos")
		if err != nil {
			t.Fatal(err)
		}
		tr.dirty = true
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := open(disk, "fuzz.pos")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tr.stored, again.stored, cmp.AllowUnexported(state{}, saved{})); diff != "" {
			t.Fatalf("state (-first +second):\n%s", diff)
		}
		if diff := cmp.Diff(pending(tr), pending(again), cmp.AllowUnexported(saved{})); diff != "" {
			t.Fatalf("unsettled (-first +second):\n%s", diff)
		}
	})
}

// mended gives a slot and its changes checksums that fit.
func mended(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) < slotHead {
		return b
	}
	n := min(int(binary.BigEndian.Uint32(b[12:])), len(b)-slotHead)
	end := slotHead + n
	sum := sealSlot(b[:end], 1)
	for len(b)-end > changeHead {
		n := min(int(binary.BigEndian.Uint32(b[end:])), len(b)-end-changeHead)
		sum = sealChange(b[end:end+changeHead+n], sum)
		end += changeHead + n
	}
	return b
}
