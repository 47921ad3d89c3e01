// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"bytes"
	"testing"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/format/formattest"
	"github.com/longshore-go/longshore/plugins/file/internal/index"
)

// TestSixteenGiB reads little of a large file.
func TestSixteenGiB(t *testing.T) {
	const most = 8 << 20
	s, h, at := formattest.Large(256)
	if s.Size() < 16<<30 {
		t.Fatalf("%d bytes", s.Size())
	}
	tail, err := index.FindTail(s, s.Size(), h)
	if err != nil {
		t.Fatal(err)
	}
	if tail.End != s.Size() || !tail.Complete || tail.Keys["orders"].Sequence != 128 || tail.Keys["other"].Sequence != 128 || tail.Read > most {
		t.Errorf("got %+v, want the end %d", *tail, s.Size())
	}
	t.Logf("the end: %d bytes read", tail.Read)

	torn := s.Size() - 1000
	if tail, err = index.FindTail(s, torn, h); err != nil {
		t.Fatal(err)
	}
	if tail.End != at[255] || tail.Torn != torn-at[255] || tail.Keys["other"].Sequence != 127 || tail.Read > most {
		t.Errorf("a torn record: got %+v, want the end %d", *tail, at[255])
	}
	t.Logf("the end, torn: %d bytes read", tail.Read)

	from := &counting{ReaderAt: s}
	got, err := index.Sequence(from, s.Size(), h, "other", 50)
	if want := (index.Found{Offset: at[99], OK: true, Sequence: 50}); got != want || err != nil || from.n > most {
		t.Errorf("a sequence: got %+v and error %v, %d bytes read, want %+v", got, err, from.n, want)
	}
	t.Logf("a sequence: %d bytes read", from.n)

	from = &counting{ReaderAt: s}
	got, err = index.Time(from, s.Size(), h, nil, formattest.Born+200)
	if want := (index.Found{Offset: at[201], OK: true, Sequence: 101}); got != want || err != nil || from.n > most {
		t.Errorf("a time: got %+v and error %v, %d bytes read, want %+v", got, err, from.n, want)
	}
	t.Logf("a time: %d bytes read", from.n)

	all, err := index.ReadAll(s, s.Size(), h, format.HeaderSize, nil)
	if err != nil || all.End != s.Size() || all.Keys["other"].Sequence != 128 || all.Read > 16*most {
		t.Errorf("all heads: got %+v and error %v", *all, err)
	}
	t.Logf("all heads: %d bytes read", all.Read)
}

// BenchmarkFindTail is the first thing that opening a file costs.
func BenchmarkFindTail(b *testing.B) {
	build := formattest.New(format.DefaultInterval)
	build.Prime()
	for range 100_000 {
		build.Add("orders", "a payload of some sixty bytes, as small messages tend to be.")
	}
	s := bytes.NewReader(build.Bytes)
	for b.Loop() {
		if _, err := index.FindTail(s, s.Size(), build.Header); err != nil {
			b.Fatal(err)
		}
	}
}
