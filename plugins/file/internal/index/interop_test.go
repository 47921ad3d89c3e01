// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/longshore-go/longshore/internal/interop"
	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/index"
)

// TestClientsFiles finds the end of files that the SeaStreamer client writes and
// opens again, with end marks that it writes over, and what it wrote by sequence
// and time.
func TestClientsFiles(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			path := filepath.Join(t.TempDir(), "client.ss")
			interval := []uint32{1024, 4096}[r.IntN(2)]
			beacons := false
			for run := range 1 + r.IntN(5) {
				var records []interop.Record
				if run == 0 {
					records = append(records, interop.Record{Key: format.PrimeKey, Payload: interop.Bytes("1")})
				}
				for range 1 + r.IntN(12) {
					size := []int{0, 1, 10, 100, 700, 3000}[r.IntN(6)]
					payload := bytes.Repeat([]byte{byte(r.Uint32())}, size)
					records = append(records, interop.Record{Key: fmt.Sprintf("key-%d", r.IntN(5)), Payload: payload})
				}
				// A mark before the first beacon stays where it is, and makes the client lose
				// what stands behind it when it opens the file a second time.
				mark := beacons && r.IntN(2) == 0
				interop.Write(t, path, interop.WriteOptions{Interval: interval, EndMark: mark}, records...)
				size := checkClientsFile(t, path)
				if size%int64(interval) < 200 {
					break // the client does not open every file that ends with a beacon
				}
				beacons = size > int64(interval)
			}
		})
	}
}

func checkClientsFile(t *testing.T, path string) int64 {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := format.ParseHeader(file)
	if err != nil {
		t.Fatal(err)
	}
	from, size := bytes.NewReader(file), int64(len(file))
	var written []interop.Record
	for _, r := range interop.Dump(t, path).Records {
		if r.Key != format.EndKey {
			written = append(written, r)
		}
	}
	var seen int
	places := map[string]int64{}
	all, err := index.ReadAll(from, size, h, format.HeaderSize, func(at int64, rec *format.Record) {
		if rec.IsEnd() {
			return
		}
		w := written[min(seen, len(written)-1)]
		if string(rec.Key) != w.Key || rec.Sequence != w.Sequence || rec.Time != w.Time {
			t.Fatalf("record %d at %d is %d of %s, want %d of %s", seen, at, rec.Sequence, rec.Key, w.Sequence, w.Key)
		}
		places[fmt.Sprint(w.Key, w.Sequence)] = at
		seen++
	})
	if err != nil || all.Damage != nil || seen != len(written) {
		t.Fatalf("got %+v and error %v after %d records, want %d", all, err, seen, len(written))
	}
	tail := findTail(t, h, file)
	if tail.Damage != nil || tail.End != all.End || tail.Mark != all.Mark || tail.Torn != all.Torn {
		t.Fatalf("got %+v, want %+v", *tail, *all)
	}
	for k, s := range tail.Keys {
		if s.Sequence != all.Keys[k].Sequence {
			t.Errorf("key %s: got %+v, want %+v", k, s, all.Keys[k])
		}
	}
	if tail.Complete && len(tail.Keys) != len(all.Keys) {
		t.Errorf("all keys are said to be %v, want %v", tail.Keys, all.Keys)
	}
	for _, w := range written {
		got, err := index.Sequence(from, size, h, w.Key, w.Sequence)
		if want := (index.Found{Offset: places[fmt.Sprint(w.Key, w.Sequence)], OK: true, Sequence: w.Sequence}); got != want || err != nil {
			t.Errorf("record %d of %s: got %+v and error %v, want %+v", w.Sequence, w.Key, got, err, want)
		}
	}
	return size
}
