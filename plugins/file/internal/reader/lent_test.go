// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/longshore-go/longshore/plugins/internal/poison"
)

// lentBatch is a batch in the hands of a host.
type lentBatch struct {
	records []Record
	loan    *Loan
}

// sizeOf makes records small as a rule, some longer than a chunk, all of them
// told by their numbers.
func sizeOf(seq uint64) int {
	if seq%61 == 0 {
		return int(seq * 41 % 50_000)
	}
	return int(seq * 7 % 700)
}

// telling is a payload every byte of which tells of its record.
func telling(key string, seq uint64) []byte {
	p := payload(key, seq, sizeOf(seq))
	for i := range p[len(key)+2:] {
		p[len(key)+2+i] = byte(seq*uint64(i+1)*2654435761>>13) ^ key[len(key)-1]
	}
	return p
}

// mixed writes a file with records of all sizes under three keys.
func mixed(t *testing.T, n int) (path string, starts []int64) {
	t.Helper()
	s := newStream(16<<10, created)
	for i := range n {
		key := fmt.Sprint("orders", i%3)
		seq := s.seqs[key] + 1
		s.add(key, telling(key, seq))
	}
	path = pathOf(t)
	s.write(t, path)
	return path, s.starts
}

// intact reports whether records are what was written.
func intact(t *testing.T, what string, rs []Record) bool {
	t.Helper()
	for i := range rs {
		if r := &rs[i]; !bytes.Equal(r.Payload, telling(r.Key, r.Sequence)) {
			t.Errorf("%s: %s %d reads %.60q", what, r.Key, r.Sequence, r.Payload)
			return false
		}
	}
	return true
}

// Whatever cursors do beside one another, what they lent stays as it is until it
// is spent, and what they did not lend for good: they come and go, move, read
// single records again, stand in the same chunks, which leave the cache.
func TestLentMemoryUnderLoad(t *testing.T) {
	const n, cursors, rounds = 2000, 4, 12
	path, starts := mixed(t, n)
	r := open(t, path, Options{Chunk: 20 << 10, Cache: 150 << 10})
	back := make(chan lentBatch, 64) // spent on a goroutine of its own
	var spending, reading sync.WaitGroup
	spending.Go(func() {
		var held []lentBatch
		for l := range back {
			if held = append(held, l); len(held) > 40 {
				k := rand.IntN(len(held))
				intact(t, "lent", held[k].records)
				held[k].loan.Spent()
				held[k] = held[len(held)-1]
				held = held[:len(held)-1]
			}
		}
		for _, l := range held {
			intact(t, "lent at the end", l.records)
			l.loan.Spent()
		}
	})
	for k := range cursors {
		reading.Go(func() {
			for round := range rounds {
				if k == 0 || round%cursors != k { // at times alone
					wander(t, r, []string{"orders*", "orders1"}[(k+round)%2], starts, back)
				}
			}
		})
	}
	reading.Wait()
	for range 2 { // alone for sure
		wander(t, r, "orders*", starts, back)
	}
	close(back)
	spending.Wait()
	if len(r.cache.spare) == 0 {
		t.Error("no memory is used again")
	}
}

// wander reads a replay on and about, and lends, spends or keeps what it reads.
func wander(t *testing.T, r *Reader, name string, starts []int64, back chan<- lentBatch) {
	c := cursor(t, r, name, Start{}, true)
	defer c.Close()
	var kept []Record
	for seeks := 0; ; {
		b, err := c.Next(t.Context(), 1+rand.IntN(80), int64(1+rand.IntN(60_000)))
		if err != nil {
			t.Error(err)
			return
		}
		if !intact(t, "read", b.Records) {
			return
		}
		switch rand.IntN(12) {
		case 0:
			kept = append(kept, b.Records...)
		case 1, 2:
			c.Spent()
		default:
			l := lentBatch{slices.Clone(b.Records), new(Loan)}
			c.Lend(l.loan)
			back <- l
		}
		if rand.IntN(10) == 0 {
			rec, err := c.Read(t.Context(), Place{created, starts[rand.IntN(len(starts))]})
			if err != nil {
				t.Error(err)
				return
			}
			kept = append(kept, rec)
		}
		if rand.IntN(30) == 0 && seeks < 4 {
			seeks++
			at := Place{created, starts[rand.IntN(len(starts))]}
			if err := c.Seek(t.Context(), Start{Kind: At, At: at}); err != nil {
				t.Error(err)
				return
			}
			continue
		}
		if b.CaughtUp {
			break
		}
	}
	intact(t, "kept", kept)
}

// What is spent is overwritten at once where the build says so: else tests show
// nothing.
func TestSpentMemoryIsOverwritten(t *testing.T) {
	if !poison.On {
		t.Skip("needs the race detector or the tag poison")
	}
	path, _ := mixed(t, 400)
	r := open(t, path, Options{Chunk: 20 << 10})
	c := cursor(t, r, "orders*", Start{}, true)
	defer c.Close()
	var loan Loan
	var first []byte
	for range 2 { // the second one passes the chunk of the first
		b, err := c.Next(t.Context(), 200, 0)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			for _, rec := range b.Records {
				if len(rec.Payload) > 100 {
					first = rec.Payload
					break
				}
			}
			c.Lend(&loan)
		}
	}
	if bytes.Count(first, []byte{poison.Byte}) == len(first) {
		t.Fatal("overwritten while lent")
	}
	loan.Spent()
	if bytes.Count(first, []byte{poison.Byte}) != len(first) {
		t.Errorf("not overwritten once spent: %.40q", first)
	}
}

// A cursor that was closed counts no more: it takes nothing out of the cache,
// where another one may be about to read.
func TestNextOfAClosedCursorLetsNothingGo(t *testing.T) {
	path, _ := mixed(t, 400)
	r := open(t, path, Options{Chunk: 20 << 10})
	a, b := cursor(t, r, "orders*", Start{}, true), cursor(t, r, "orders*", Start{}, true)
	defer b.Close()
	if _, err := a.Next(t.Context(), 400, 0); err != nil {
		t.Fatal(err)
	}
	a.Spent()
	if len(a.passed) == 0 {
		t.Fatal("no chunk was passed")
	}
	before := len(b.src.chunks)
	a.Close()
	if _, err := a.Next(t.Context(), 400, 0); !errors.Is(err, ErrClosed) {
		t.Errorf("Next of a closed cursor: %v", err)
	}
	if n := len(b.src.chunks); n != before || len(r.cache.spare) > 0 {
		t.Errorf("%d of %d chunks are left, %d are to be written over", n, before, len(r.cache.spare))
	}
}
