// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/interop"
	"github.com/longshore-go/longshore/plugins/file/internal/reader"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
	"github.com/longshore-go/longshore/plugins/file/internal/writer"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
)

// primer is the record that longshore's files begin with, as services of the
// reference have it.
var primer = interop.Record{Key: "ruststream-internal", Payload: interop.Bytes("1")}

// clock is a time that a test sets.
type clock struct{ ms int64 }

func (c *clock) now() time.Time { return time.UnixMilli(c.ms) }

// ours writes entries by longshore's writer, each a millisecond after the one
// before, and returns the sequences.
func ours(t *testing.T, path string, o writer.Options, entries ...writer.Entry) []uint64 {
	t.Helper()
	c := &clock{ms: time.Now().UnixMilli()}
	if o.Now == nil {
		o.Now = c.now
	}
	w, err := writer.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	var sequences []uint64
	for i := range entries {
		c.ms++
		w.Append(entries[i:i+1], func(_ int, sequence uint64, err error) {
			if err != nil {
				t.Fatalf("append entry %d to %s: %v", i, path, err)
			}
			sequences = append(sequences, sequence)
		})
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return sequences
}

// oursReads reads by longshore's reader from a start to the end of the file.
func oursReads(t *testing.T, path, pattern string, start reader.Start) ([]interop.Record, []*reader.Problem) {
	t.Helper()
	r, err := reader.New(path, reader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	c, err := r.Cursor(reader.Pattern(pattern), start, true)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	records := []interop.Record{} // as interop has it
	var problems []*reader.Problem
	for {
		b, err := c.Next(t.Context(), 100, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range b.Records {
			records = append(records, interop.Record{Key: r.Key, Sequence: r.Sequence, Time: r.Time, Payload: r.Payload})
		}
		problems = append(problems, b.Problems...)
		if b.CaughtUp || b.Ended {
			return records, problems
		}
	}
}

// everything is what both readers see of a file: the same records, laid out as
// they must be, without the primer. end is why the client's ends.
func everything(t *testing.T, path, end string) []interop.Record {
	t.Helper()
	theirs, why := interop.Replay(t, path)
	if why.Why != end {
		t.Errorf("the client's reader ends by %+v, want %q", why, end)
	}
	if len(theirs) > 0 && theirs[0].Key == primer.Key {
		theirs = theirs[1:]
	}
	records, problems := oursReads(t, path, "*", reader.Start{Kind: reader.Beginning})
	if len(problems) > 0 {
		t.Errorf("longshore's reader complains: %v", problems)
	}
	if diff := cmp.Diff(theirs, records); diff != "" {
		t.Errorf("the records (-client +longshore):\n%s", diff)
	}
	laidOut(t, path)
	return records
}

// laidOut checks that a file has its beacons where they must be and ends with its
// last record.
func laidOut(t *testing.T, path string) []int64 {
	t.Helper()
	c := interop.Dump(t, path)
	at, err := c.Layout()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if c.End.Why != "eof" {
		t.Errorf("the client's parser ends by %+v", c.End)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != at[len(at)-1] {
		t.Errorf("%s has %d bytes (%v), %d by its records", path, info.Size(), err, at[len(at)-1])
	}
	return at
}

// holds checks that records are what the entries came to, in this order.
func holds(t *testing.T, records []interop.Record, entries []writer.Entry) {
	t.Helper()
	if len(records) != len(entries) {
		t.Fatalf("%d records, want %d", len(records), len(entries))
	}
	next := map[string]uint64{}
	for i, r := range records {
		e := entries[i]
		next[e.Key]++
		headers, payload, err := envelope.Decode(r.Payload)
		if r.Key != e.Key || r.Sequence != next[e.Key] || r.Shard != 0 || err != nil || !bytes.Equal(payload, e.Payload) || !cmp.Equal(headers, e.Headers) {
			t.Fatalf("record %d is %d of %s with %v and %d bytes, %v; want %d of %s with %v and %d bytes",
				i, r.Sequence, r.Key, headers, len(payload), err, next[e.Key], e.Key, e.Headers, len(e.Payload))
		}
	}
}

// random is bytes that follow from a seed.
func random(seed uint64, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b) // it does not fail
	return b
}

// scattered are entries of several keys, some long, some with headers.
func scattered(seed uint64, n, keys, longest int) []writer.Entry {
	r := rand.New(rand.NewPCG(seed, 78))
	entries := make([]writer.Entry, n)
	for i := range entries {
		entries[i] = writer.Entry{Key: fmt.Sprint("key.", r.IntN(keys)), Payload: random(seed+uint64(i), r.IntN(1+r.IntN(longest)))}
		switch r.IntN(4) {
		case 0:
			entries[i].Headers = core.Headers{{Name: "x-number", Value: fmt.Append(nil, i)}}
		case 1:
			entries[i].Headers = core.Headers{{Name: "x-bytes", Value: random(uint64(i), 9)}}
		}
	}
	return entries
}

// ends is what the client's reader ends by.
func ends(endMark bool) string {
	if endMark {
		return "eos"
	}
	return "eof"
}

// What longshore writes is read by the client, record by record.
func TestClientReadsOurFiles(t *testing.T) {
	t.Parallel()
	large := []writer.Entry{
		{Key: "large", Payload: random(1, 300<<10)}, {Key: "empty"},
		{Key: "large", Payload: random(2, 100<<10), Headers: core.Headers{{Name: "x", Value: []byte("y")}}},
	}
	for name, entries := range map[string][]writer.Entry{
		"nothing":   nil,
		"one":       {{Key: "orders", Payload: []byte(`{"id":7}`)}},
		"headers":   {{Key: "orders", Payload: []byte(`{"id":7}`), Headers: core.Headers{{Name: "x-tenant", Value: []byte("acme")}}}, {Key: "orders", Headers: core.Headers{{Name: "x-pad", Value: []byte(" v")}}}},
		"empty":     {{Key: "orders"}, {Key: "orders"}},
		"large":     large,
		"one key":   scattered(1, 100, 1, 2000),
		"some keys": scattered(2, 150, 5, 2500),
		"many keys": scattered(3, 400, 200, 400),
	} {
		for _, interval := range []uint32{1024, 5 << 10, 1 << 20} {
			for _, endMark := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %d %s", name, interval, ends(endMark)), func(t *testing.T) {
					t.Parallel()
					path := filepath.Join(t.TempDir(), "orders.ss")
					o := writer.Options{Interval: interval, EndMark: endMark}
					ours(t, path, o, entries...)
					holds(t, everything(t, path, ends(endMark)), entries)
					// Opened again, with fewer keys.
					more := entries[:len(entries)/2]
					ours(t, path, o, more...)
					holds(t, everything(t, path, ends(endMark)), append(entries[:len(entries):len(entries)], more...))
				})
			}
		}
	}
}

// The files of a rotation are each a file for the client, sequences go on.
func TestClientReadsRotatedFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "orders.ss")
	entries := scattered(4, 300, 6, 900)
	ours(t, path, writer.Options{Interval: 1024, RotateBytes: 16 << 10, EndMark: true}, entries...)
	segments, err := segment.List(path)
	if err != nil || len(segments) < 5 {
		t.Fatalf("%d files, %v", len(segments), err)
	}
	var theirs []interop.Record
	for i, s := range segments {
		laidOut(t, s.Path)
		records, end := interop.Replay(t, s.Path)
		if last := i == len(segments)-1; end.Why != ends(last) || len(records) < 2 {
			t.Errorf("%s: %d records, it ends by %+v", s.Path, len(records), end)
		}
		theirs = append(theirs, records[1:]...) // without the primer
	}
	holds(t, theirs, entries)
	records, problems := oursReads(t, path, "*", reader.Start{Kind: reader.Beginning})
	if diff := cmp.Diff(theirs, records); diff != "" || len(problems) > 0 {
		t.Errorf("problems %v, records (-client +longshore):\n%s", problems, diff)
	}
}

// F-08: payloads that look like an envelope, or like nothing, are the same bytes
// for either reader, and nobody makes headers of them.
func TestPayloadsThatLookLikeEnvelopes_F_08(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "orders.ss")
	var entries []writer.Entry
	for _, p := range []string{"rs1:", "rs2:", "rs1:AAAA", "rs1:AAAAAA==", "rs2:3q2+796tvu8=", "rs1:3q2+796tvu8=", "", "\xff", string(random(5, 2<<20))} {
		entries = append(entries, writer.Entry{Key: "orders", Payload: []byte(p)})
	}
	ours(t, path, writer.Options{}, entries...)
	records := everything(t, path, "eof")
	holds(t, records, entries)
	for i, r := range records {
		if plain := bytes.Equal(r.Payload, entries[i].Payload); plain == bytes.HasPrefix(entries[i].Payload, []byte("rs")) {
			t.Errorf("payload %.20q stands in the file as %.20q", entries[i].Payload, r.Payload)
		}
	}
}

// F-02: whatever is missing of the last bytes of a file, longshore's writer takes
// up behind the last whole record, and both readers read on without complaint.
func TestAppendAfterATornTail_F_02(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(at []int64) int64{
		"in the first record":      func(at []int64) int64 { return at[0] + 5 },
		"in the head":              func(at []int64) int64 { return at[len(at)-2] + 9 },
		"in the payload":           func(at []int64) int64 { return at[len(at)-2] + 60 },
		"in the checksum":          func(at []int64) int64 { return at[len(at)-1] - 2 },
		"before the closing byte":  func(at []int64) int64 { return at[len(at)-1] - 1 },
		"at a beacon":              func([]int64) int64 { return 2048 },
		"in a beacon":              func([]int64) int64 { return 2048 + 20 },
		"behind a beacon":          func([]int64) int64 { return 2048 + 7 + 27 + int64(len("orders")) },
		"behind the beacon's head": func([]int64) int64 { return 2048 + 6 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "orders.ss")
			var entries []writer.Entry
			for i := range 10 {
				entries = append(entries, writer.Entry{Key: "orders", Payload: random(uint64(i), 201)})
			}
			ours(t, path, writer.Options{Interval: 1024}, entries...)
			at := laidOut(t, path)
			if err := os.Truncate(path, cut(at)); err != nil {
				t.Fatal(err)
			}
			whole := 0
			for _, end := range at[2:] { // at[1] is behind the primer
				if end <= cut(at) {
					whole++
				}
			}
			more := scattered(6, 3, 1, 300)
			for i := range more {
				more[i].Key = "orders"
			}
			ours(t, path, writer.Options{}, more...)
			holds(t, everything(t, path, "eof"), append(entries[:whole:whole], more...))
		})
	}
}

// F-02: cut anywhere. Each run takes other offsets.
func TestAppendAfterAnyTornTail_F_02(t *testing.T) {
	t.Parallel()
	const step = 53
	var entries []writer.Entry
	for i := range 12 {
		entries = append(entries, writer.Entry{Key: fmt.Sprint("key.", i%3), Payload: random(uint64(i), 37*i)})
	}
	for _, endMark := range []bool{false, true} {
		dir := t.TempDir()
		made := filepath.Join(dir, "made.ss")
		ours(t, made, writer.Options{Interval: 1024, EndMark: endMark}, entries...)
		text := content(t, made)
		for cut := 129 + rand.IntN(step); cut <= len(text); cut += step {
			path := filepath.Join(dir, fmt.Sprint(cut, ".ss"))
			if err := os.WriteFile(path, text[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			whole := min(max(len(interop.Whole(text[:cut]))-2, 0), len(entries)) // without primer and mark
			more := []writer.Entry{{Key: "key.1", Payload: random(99, cut%50)}, {Key: "new"}}
			ours(t, path, writer.Options{}, more...)
			holds(t, everything(t, path, "eof"), append(entries[:whole:whole], more...))
			if t.Failed() {
				t.Fatalf("of %d bytes %d were left", len(text), cut)
			}
		}
	}
}

// F-02: without a whole header there is nothing to append to.
func TestTornHeader_F_02(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "orders.ss")
	ours(t, path, writer.Options{}, scattered(7, 3, 1, 30)...)
	if err := os.Truncate(path, 60); err != nil {
		t.Fatal(err)
	}
	var kind *segment.KindError
	if _, err := writer.Open(t.Context(), path, writer.Options{}); !errors.As(err, &kind) || kind.Path != path {
		t.Errorf("got %v, want a *segment.KindError", err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 60 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
}
