// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/interop"
	"github.com/longshore-go/longshore/plugins/file/internal/reader"
	"github.com/longshore-go/longshore/plugins/file/internal/writer"
)

// asRecords are entries without headers as the client takes them.
func asRecords(entries []writer.Entry) []interop.Record {
	records := make([]interop.Record, len(entries))
	for i, e := range entries {
		records[i] = interop.Record{Key: e.Key, Payload: e.Payload}
	}
	return records
}

// plain takes the headers off.
func plain(entries []writer.Entry) []writer.Entry {
	for i := range entries {
		entries[i].Headers = nil
	}
	return entries
}

// What the client writes is read and written on by longshore, and so in turns.
func TestWritersTakeTurns(t *testing.T) {
	t.Parallel()
	for _, interval := range []uint32{1024, 3 << 10, 1 << 20} {
		for _, endMark := range []bool{false, true} {
			for seed := range uint64(2) {
				t.Run(fmt.Sprintf("%d %s %d", interval, ends(endMark), seed), func(t *testing.T) {
					t.Parallel()
					r := rand.New(rand.NewPCG(seed, uint64(interval)))
					path := filepath.Join(t.TempDir(), "orders.ss")
					var all []writer.Entry
					for turn := range 6 {
						entries := plain(scattered(r.Uint64(), 1+r.IntN(25), 1+r.IntN(8), 1+r.IntN(2500)))
						all = append(all, entries...)
						if turn%2 == 0 {
							// Behind an end mark in a file without a beacon the client's reader stops,
							// so the client's writer leaves none there.
							mark := endMark && interval == 1024 && len(content(t, path)) > int(interval)
							interop.Write(t, path, interop.WriteOptions{Interval: interval, EndMark: mark}, asRecords(entries)...)
							holds(t, both(t, path, ends(mark)), all)
						} else {
							ours(t, path, writer.Options{}, entries...)
							holds(t, both(t, path, "eof"), all)
						}
					}
				})
			}
		}
	}
}

// both is what both readers see of a file, which may end with remains of an end
// mark that the client has written over.
func both(t *testing.T, path string, ends ...string) []interop.Record {
	t.Helper()
	theirs, why := interop.Replay(t, path)
	if !slices.Contains(ends, why.Why) {
		t.Errorf("the client's reader ends by %+v, want one of %q", why, ends)
	}
	if len(theirs) > 0 && theirs[0].Key == primer.Key {
		theirs = theirs[1:]
	}
	records, _ := oursReads(t, path, "*", reader.Start{Kind: reader.Beginning})
	if diff := cmp.Diff(theirs, records); diff != "" {
		t.Errorf("the records (-client +longshore):\n%s", diff)
	}
	return records
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return b
}

// The client's writer leaves its end mark where it appends in a file without a
// beacon, and its reader stops there. Longshore's reader goes on.
func TestBehindAnEndMarkOfTheClient(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "orders.ss")
	entries := plain(scattered(1, 6, 2, 50))
	interop.Write(t, path, interop.WriteOptions{EndMark: true}, asRecords(entries[:2])...)
	interop.Write(t, path, interop.WriteOptions{EndMark: true}, asRecords(entries[2:4])...)
	records, problems := oursReads(t, path, "*", reader.Start{Kind: reader.Beginning})
	if len(problems) > 0 {
		t.Errorf("longshore's reader complains: %v", problems)
	}
	holds(t, records, entries[:4])
	ours(t, path, writer.Options{EndMark: true}, entries[4:]...)
	records, _ = oursReads(t, path, "*", reader.Start{Kind: reader.Beginning})
	holds(t, records, entries)
	if theirs, end := interop.Replay(t, path); len(theirs) != 2 || end.Why != "eos" {
		t.Errorf("the client's reader has %d records and ends by %+v", len(theirs), end)
	}
}

// Where the client has written a short record over its end mark, the rest of the
// mark stands behind it: longshore goes on there.
func TestRestOfAnEndMarkOfTheClient(t *testing.T) {
	t.Parallel()
	for n := range 30 {
		path := filepath.Join(t.TempDir(), fmt.Sprint(n, ".ss"))
		first := writer.Entry{Key: "k", Payload: random(1, 1200)}
		short := writer.Entry{Key: "k", Payload: random(2, n)}
		interop.Write(t, path, interop.WriteOptions{Interval: 1024, EndMark: true}, asRecords([]writer.Entry{first})...)
		interop.Write(t, path, interop.WriteOptions{}, asRecords([]writer.Entry{short})...)
		// The client's own reader takes the rest for a damaged record, sometimes.
		holds(t, both(t, path, "eof", "error"), []writer.Entry{first, short})
		ours(t, path, writer.Options{}, first)
		holds(t, everything(t, path, "eof"), []writer.Entry{first, short, first})
	}
}

// The same records at the same times are the same file, byte for byte.
func TestFilesAreTheClients(t *testing.T) {
	t.Parallel()
	for _, interval := range []uint32{1024, 2048, 7 << 10, 1 << 20} {
		for _, endMark := range []bool{false, true} {
			for seed := range uint64(3) {
				t.Run(fmt.Sprintf("%d %s %d", interval, ends(endMark), seed), func(t *testing.T) {
					t.Parallel()
					r := rand.New(rand.NewPCG(seed, uint64(interval)))
					entries := plain(scattered(seed, 1+r.IntN(150), 1+r.IntN(40), 1+r.IntN(4000)))
					if seed == 0 { // ends at a beacon's place
						entries = append(entries[:0], writer.Entry{Key: "k", Payload: make([]byte, 1024-128-52-33)})
					}
					same(t, interval, endMark, entries)
				})
			}
		}
	}
}

// same writes entries by the client and, with its clock, by longshore.
func same(t *testing.T, interval uint32, endMark bool, entries []writer.Entry) {
	t.Helper()
	var theirs string
	var c interop.Content
	for { // until the client has made the file and its first record in one millisecond
		theirs = filepath.Join(t.TempDir(), "orders.ss")
		interop.Write(t, theirs, interop.WriteOptions{Interval: interval, EndMark: endMark}, append([]interop.Record{primer}, asRecords(entries)...)...)
		if c = interop.Dump(t, theirs); c.Records[0].Time == c.Header.Created {
			break
		}
	}
	at := &clock{ms: c.Header.Created}
	path := filepath.Join(t.TempDir(), "orders.ss")
	w, err := writer.Open(t.Context(), path, writer.Options{Interval: interval, EndMark: endMark, Now: at.now})
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		at.ms = c.Records[i+1].Time
		w.Append(entries[i:i+1], func(_ int, _ uint64, err error) {
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	at.ms = c.Records[len(c.Records)-1].Time
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, b := content(t, theirs), content(t, path)
	if !bytes.Equal(a, b) {
		n := 0
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		t.Errorf("the client's file has %d bytes, longshore's %d, the same up to offset %d:\n% x\n% x",
			len(a), len(b), n, a[n:min(n+60, len(a))], b[n:min(n+60, len(b))])
	}
}

// The client's live reader follows longshore's writer.
func TestClientFollowsOurWriter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "orders.ss")
	entries := scattered(10, 60, 3, 5000)
	w, err := writer.Open(t.Context(), path, writer.Options{Interval: 2048, EndMark: true})
	if err != nil {
		t.Fatal(err)
	}
	follower := interop.Follow(t, path, "--beginning")
	if r, end := follower.Next(); end != nil || r.Key != primer.Key {
		t.Fatalf("first comes %+v, %+v", r, end)
	}
	var got []interop.Record
	for i := range 6 {
		w.Append(entries[10*i:10*i+10], func(_ int, _ uint64, err error) {
			if err != nil {
				t.Error(err)
			}
		})
		for range 10 {
			r, end := follower.Next()
			if end != nil {
				t.Fatalf("the client's reader ends by %+v behind %d records", end, len(got))
			}
			got = append(got, r)
		}
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, end := follower.Next(); end == nil || end.Why != "eos" {
		t.Errorf("at the end mark the client has %+v, %+v", r, end)
	}
	holds(t, got, entries)
}

// Longshore's live reader follows the client's writer, which comes back behind its
// end mark.
func TestOurReaderFollowsTheClient(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "orders.ss")
	entries := plain(scattered(11, 80, 3, 3000))
	interop.Write(t, path, interop.WriteOptions{Interval: 2048}, primer)
	r, err := reader.New(path, reader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Cursor(reader.Pattern("*"), reader.Start{Kind: reader.End}, false)
	if err != nil {
		t.Fatal(err)
	}
	var got []interop.Record
	for i := range 4 {
		interop.Write(t, path, interop.WriteOptions{EndMark: true}, asRecords(entries[20*i:20*i+20])...)
		for ended := false; !ended; {
			b, err := c.Next(t.Context(), 0, 0)
			if err != nil || len(b.Problems) > 0 {
				t.Fatalf("problems %v, %v", b.Problems, err)
			}
			for _, r := range b.Records {
				got = append(got, interop.Record{Key: r.Key, Sequence: r.Sequence, Time: r.Time, Payload: r.Payload})
			}
			ended = b.Ended
		}
		holds(t, got, entries[:20*i+20])
	}
	c.Close()
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
