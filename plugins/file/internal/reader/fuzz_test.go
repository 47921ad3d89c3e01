// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// linear reads what stands in a file as the rules say, all at once.
func linear(b []byte, interval uint32) (out []Record) {
	p := format.Parser{Interval: interval}
	size := int64(len(b))
	for off := int64(format.HeaderSize); off < size; {
		var rec format.Record
		n, err := p.Next(b[off:], off, &rec)
		damage, _ := errors.AsType[*format.DamageError](err)
		switch {
		case err == nil:
			if string(rec.Key) != format.EndKey {
				out = append(out, Record{Key: string(rec.Key), Sequence: rec.Sequence, Time: rec.Time, Payload: slices.Clone(rec.Payload)})
			}
			off += int64(n)
			continue
		case damage == nil:
			return out
		case damage.Resume > 0 && off+int64(damage.Resume) < size:
			off += int64(damage.Resume)
			continue
		}
		next := int64(0)
		for place := format.NextPlace(damage.Offset+1, interval); place < size && next == 0; place += int64(interval) {
			to, ok, err := p.Boundary(b[place:], place)
			if err == nil && ok && to <= size {
				next = to
			} else if err == nil && ok || errors.Is(err, io.ErrUnexpectedEOF) && size-place < min(int64(interval), mostBeacon) {
				break
			}
		}
		if next == 0 {
			return out
		}
		off = next
	}
	return out
}

// FuzzReplay replays arbitrary content behind a good header.
func FuzzReplay(f *testing.F) {
	s := newStream(1024, created)
	s.fill("orders", 5, 100)
	s.fill("k", 1, 3000)
	s.mark()
	s.fill("orders", 2, 10)
	f.Add(s.b[format.HeaderSize:], uint16(0), uint16(600))
	f.Add(s.b[format.HeaderSize:len(s.b)-20], uint16(200), uint16(3))
	s.mark()
	f.Add(s.b[format.HeaderSize:], uint16(1400), uint16(0x0d00))
	f.Fuzz(func(t *testing.T, content []byte, at, flip uint16) {
		h := format.Header{Name: "f.ss", Created: created, Interval: 1024}
		b := append(h.Append(nil), content...)
		if i := format.HeaderSize + int(at); i+2 <= len(b) {
			binary.BigEndian.PutUint16(b[i:], binary.BigEndian.Uint16(b[i:])^flip)
		}
		path := pathOf(t)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		r := open(t, path, Options{Chunk: 1 << 10, Cache: 4 << 10, NoNotify: true})
		r.settle = time.Microsecond
		want := linear(b, 1024)
		for name, wanted := range map[string][]Record{
			"*":      slices.DeleteFunc(slices.Clone(want), func(r Record) bool { return r.Key == format.PrimeKey }),
			"orders": slices.DeleteFunc(slices.Clone(want), func(r Record) bool { return r.Key != "orders" }),
		} {
			g := replayed(t, cursor(t, r, name, Start{}, true))
			if !slices.EqualFunc(g.records, wanted, func(a, b Record) bool {
				return a.Key == b.Key && a.Sequence == b.Sequence && a.Time == b.Time && string(a.Payload) == string(b.Payload)
			}) {
				t.Errorf("%s: got %d records, problems %v; a linear look finds %d", name, len(g.records), g.problems, len(wanted))
			}
		}
	})
}

// FuzzFile opens and replays arbitrary files.
func FuzzFile(f *testing.F) {
	s := newStream(1024, created)
	s.fill("orders", 20, 100)
	f.Add(s.b)
	f.Add(s.b[:100])
	f.Fuzz(func(t *testing.T, b []byte) {
		path := pathOf(t)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := New(path, Options{NoNotify: true})
		if err != nil {
			return
		}
		r.settle = time.Microsecond
		defer r.Close(t.Context())
		for _, start := range []Start{{}, {Kind: End}, {Kind: Time, Time: created + 5}, {Kind: Sequence, Sequence: 3}, {Kind: At, At: Place{created, 300}}} {
			c, err := r.Cursor(Pattern("orders"), start, true)
			if err == nil {
				replayed(t, c)
			}
		}
	})
}
