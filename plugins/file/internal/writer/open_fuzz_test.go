// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/index"
)

// Whatever a file holds, it is refused as it is, or nothing but its torn end
// goes and the next record is found again.
func FuzzOpen(f *testing.F) {
	file := worn()
	body := file.Bytes[format.HeaderSize:]
	for _, cut := range []int{0, 30, 52, 300, 900, 1100, 2000, 3000, len(body)} {
		f.Add(body[:cut])
	}
	f.Add(format.AppendEnd(bytes.Clone(body[:52]), born))
	f.Add(append(bytes.Clone(body[:300]), make([]byte, 100)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(folder(t), "orders.ss")
		before := append(file.Header.Append(nil), b...)
		writeFile(t, path, before)
		w, err := Open(t.Context(), path, Options{})
		if err != nil {
			same(t, contents(t, path), before)
			return
		}
		found, err := index.FindTail(bytes.NewReader(before), int64(len(before)), w.file.Header)
		if err != nil || found.Damage != nil {
			t.Fatalf("it was opened with %+v, %v", found, err)
		}
		same(t, contents(t, path)[:found.End], before[:found.End])
		sequences := put(t, w, plain("fuzz", "the next record")...)
		off, size, h := w.block.off, w.size, w.file.Header
		tail, err := index.FindTail(w.file, size, h)
		if err != nil || tail.Damage != nil || tail.Torn != 0 || tail.End != off || off != size {
			t.Fatalf("behind the next record: %+v, %v; want the end at %d of %d", tail, err, off, size)
		}
		if tail.Keys["fuzz"].Sequence != sequences[0] {
			t.Fatalf("got sequence %d, want %d", tail.Keys["fuzz"].Sequence, sequences[0])
		}
		closed(t, w)
	})
}
