// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/interop"
	"github.com/longshore-go/longshore/plugins/file/internal/reader"
	"github.com/longshore-go/longshore/plugins/file/internal/writer"
)

// A position is the same place for both: by sequence and by time, in files of
// either writer.
func TestPositionsAreTheClients(t *testing.T) {
	t.Parallel()
	entries := plain(scattered(9, 120, 1, 300))
	for name, write := range map[string]func(path string){
		"client":    func(path string) { interop.Write(t, path, interop.WriteOptions{Interval: 1024}, asRecords(entries)...) },
		"longshore": func(path string) { ours(t, path, writer.Options{Interval: 1024}, entries...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "orders.ss")
			write(path)
			key := entries[0].Key
			all, _ := oursReads(t, path, key, reader.Start{Kind: reader.Beginning})
			for n := uint64(1); n <= uint64(len(entries)); n += 7 {
				ours, _ := oursReads(t, path, key, reader.Start{Kind: reader.Sequence, Sequence: n})
				theirs, end := interop.Replay(t, path, "--key", key, "--sequence", fmt.Sprint(n))
				if diff := cmp.Diff(theirs, ours); diff != "" || len(ours) != len(entries)+1-int(n) {
					t.Errorf("from sequence %d the client ends by %+v, records (-client +longshore):\n%s", n, end, diff)
				}
				ms := all[n-1].Time
				ours, _ = oursReads(t, path, key, reader.Start{Kind: reader.Time, Time: ms})
				if len(ours) == 0 {
					continue // the client cannot seek to where nothing is yet
				}
				theirs, end = interop.Replay(t, path, "--key", key, "--time", fmt.Sprint(ms))
				if diff := cmp.Diff(theirs, ours); diff != "" {
					t.Errorf("later than %d the client ends by %+v, records (-client +longshore):\n%s", ms, end, diff)
				}
			}
		})
	}
}
