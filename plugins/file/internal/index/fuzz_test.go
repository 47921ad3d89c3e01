// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"bytes"
	"io"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/format/formattest"
	"github.com/longshore-go/longshore/plugins/file/internal/index"
)

// linear reads a file from its beginning, record by record: it is sound where
// nothing is left over.
func linear(h format.Header, file []byte) (keys map[string]index.KeyState, mark int64, sound bool) {
	p := format.Parser{Interval: h.Interval}
	keys, mark = map[string]index.KeyState{}, -1
	for at := int64(format.HeaderSize); at < int64(len(file)); {
		var rec format.Record
		n, err := p.Next(file[at:], at, &rec)
		if err != nil {
			// A beacon at the very end is none of a record.
			size, left, err := p.Beacon(file[at:])
			return keys, mark, err == nil && left == 0 && at%int64(h.Interval) == 0 && at+int64(size) == int64(len(file))
		}
		if mark = -1; rec.IsEnd() {
			mark = at + int64(n) // of its end, which tells as much
		} else if known, ok := keys[string(rec.Key)]; string(rec.Key) != format.EndKey && (!ok || rec.Sequence >= known.Sequence) {
			keys[string(rec.Key)] = index.KeyState{Sequence: rec.Sequence, Time: rec.Time, Checksum: rec.Checksum}
		}
		at += int64(n)
	}
	return keys, mark, true
}

// FuzzFindTail looks for the end of any bytes behind a header.
func FuzzFindTail(f *testing.F) {
	for _, name := range []string{"with-beacons.ss", "eos-then-append.ss"} {
		_, file := sample(f, name)
		f.Add(file[format.HeaderSize:])
	}
	b := several(1024, 5, 200, "orders", "other")
	b.End()
	f.Add(b.Bytes[format.HeaderSize:])
	f.Add(append(bytes.Clone(b.Bytes[format.HeaderSize:]), make([]byte, 3000)...))
	h := formattest.New(1024).Header
	f.Fuzz(func(t *testing.T, in []byte) {
		file := append(h.Append(nil), in...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		tail := findTail(t, h, file)
		all, err := index.ReadAll(bytes.NewReader(file), int64(len(file)), h, format.HeaderSize, nil)
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
			t.Errorf("%d bytes made it allocate %d", len(file), grown)
		}
		for _, key := range []string{"orders", "other"} {
			for _, n := range []int64{0, 3, formattest.Born} {
				search(t, h, file, key, n)
			}
		}
		keys, mark, sound := linear(h, file)
		if !sound {
			return
		}
		if all.Damage != nil || all.Torn != 0 || (all.Mark >= 0) != (mark >= 0) || mark < 0 && all.End != int64(len(file)) {
			t.Errorf("all of a sound file: got %+v", *all)
		}
		if diff := cmp.Diff(all.Keys, keys); diff != "" {
			t.Errorf("all of a sound file: got -, want +:\n%s", diff)
		}
		if tail.Damage != nil || tail.Torn != 0 || tail.End != all.End || tail.Mark != all.Mark {
			t.Errorf("the end of a sound file: got %+v, want %+v", *tail, *all)
		}
	})
}

func search(t *testing.T, h format.Header, file []byte, key string, n int64) {
	from := bytes.NewReader(file)
	got, err := index.Sequence(from, int64(len(file)), h, key, uint64(n))
	if err != nil || got.Offset < format.HeaderSize || got.Offset > int64(len(file)) {
		t.Errorf("sequence %d of %s: got %+v and error %v", n, key, got, err)
	}
	if got.OK {
		p := format.Parser{Interval: h.Interval}
		var rec format.Record
		b, _ := io.ReadAll(io.NewSectionReader(from, got.Offset, int64(len(file))))
		if _, _, err := p.Head(b, got.Offset, &rec); err != nil || string(rec.Key) != key || rec.Sequence < uint64(n) {
			t.Errorf("sequence %d of %s: at %d stands record %d of %s, error %v", n, key, got.Offset, rec.Sequence, rec.Key, err)
		}
	}
	if got, err = index.Time(from, int64(len(file)), h, nil, n); err != nil || got.Offset < format.HeaderSize || got.Offset > int64(len(file)) {
		t.Errorf("later than %d: got %+v and error %v", n, got, err)
	}
}
