// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
)

// What is not spent stays as it is, whatever is read on into other memory; what
// is spent is as it was written until the next call.
func TestSpentMemoryIsUsedAgain(t *testing.T) {
	const n, size = 4000, 300
	s := newStream(1<<20, created)
	for i := range n {
		key := fmt.Sprintf("orders%d", i%3)
		s.add(key, payload(key, s.seqs[key]+1, size))
	}
	path := pathOf(t)
	s.write(t, path)
	for _, cursors := range []int{1, 3} {
		t.Run(fmt.Sprint(cursors), func(t *testing.T) {
			r := open(t, path, Options{Chunk: 20 << 10, Cache: 100 << 10})
			for range 3 {
				var tasks sync.WaitGroup
				for k := range cursors {
					tasks.Go(func() { spend(t, r, n, size, k) })
				}
				tasks.Wait()
			}
			if n := r.reading.Load(); n != 0 {
				t.Errorf("%d cursors are counted after all were closed", n)
			}
			if cursors == 1 && len(r.cache.spare) == 0 {
				t.Error("no memory is used again")
			}
		})
	}
}

// spend replays the file and keeps every kind-th batch.
func spend(t *testing.T, r *Reader, n, size, kind int) {
	c := cursor(t, r, "orders*", Start{}, true)
	defer c.Close()
	var kept []Record
	total := 0
	for i := 0; ; i++ {
		b, err := c.Next(t.Context(), 20, 0)
		if err != nil {
			t.Error(err)
			return
		}
		verify(t, b.Records, size)
		total += len(b.Records)
		switch {
		case i%(kind+40) == 0:
			kept = append(kept, b.Records...)
		case i%30 == 3 && len(b.Records) > 0: // one is read again, and kept
			rec, err := c.Read(t.Context(), b.Records[0].At)
			if err != nil {
				t.Error(err)
				return
			}
			kept = append(kept, rec)
			c.Spent()
		default:
			c.Spent()
		}
		if b.CaughtUp {
			break
		}
	}
	verify(t, kept, size)
	if total != n {
		t.Errorf("%d records, want %d", total, n)
	}
}

func verify(t *testing.T, rs []Record, size int) {
	t.Helper()
	for i := range rs {
		if want := payload(rs[i].Key, rs[i].Sequence, size); !bytes.Equal(rs[i].Payload, want) {
			t.Errorf("%s %d reads %q, want %q", rs[i].Key, rs[i].Sequence, rs[i].Payload, want)
			return
		}
	}
}

// A batch goes on over the end of a chunk as far as it is known that there is
// more.
func TestBatchGoesOnOverChunks(t *testing.T) {
	const n, size = 1000, 300
	s := newStream(1<<20, created)
	for range n {
		s.add("orders", payload("orders", s.seqs["orders"]+1, size))
	}
	path := pathOf(t)
	s.write(t, path)
	for _, limit := range []struct {
		most  int
		bytes int64
		want  int
	}{{64, 0, 64}, {1000, 0, 1000}, {0, 0, 1}, {1000, 40 * size, 40}} {
		r := open(t, path, Options{Chunk: 4 << 10})
		c := cursor(t, r, "orders", Start{}, true)
		b, err := c.Next(t.Context(), limit.most, limit.bytes)
		if err != nil {
			t.Fatal(err)
		}
		verify(t, b.Records, size)
		if got := len(b.Records); got < limit.want || limit.most > 0 && got != limit.want {
			t.Errorf("%d records with limits of %d and %d bytes, want %d", got, limit.most, limit.bytes, limit.want)
		}
		c.Close()
	}
}
