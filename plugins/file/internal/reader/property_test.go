// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestLiveProperty has writers do what writers do to the files of a path while
// cursors look at any moment: each cursor gets every record once, in order, and
// nothing is a problem.
func TestLiveProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		path := pathOf(t)
		interval := uint32(rapid.SampledFrom([]int{1024, 4096}).Draw(rt, "interval"))
		s := newStream(interval, created)
		s.write(t, path)
		r := open(t, path, Options{NoNotify: true, Poll: time.Hour, Chunk: 2 << 10, Cache: int64(rapid.SampledFrom([]int{1, 8 << 10, 1 << 20}).Draw(rt, "cache"))})
		var cursors []*follower
		for _, name := range []string{"orders", "*", "k1", "k*"} {
			cursors = append(cursors, &follower{c: cursor(t, r, name, Start{}, false), last: map[string]uint64{}})
		}
		keys := rapid.SampledFrom([]string{"orders", "k1", "k2"})
		size := rapid.IntRange(0, 3000)
		write := func(from int) {
			appendTo(t, path, s.b[from:])
		}
		number := uint64(0)
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(rt *rapid.T) {
				from := len(s.b)
				for range rapid.IntRange(1, 5).Draw(rt, "records") {
					key := keys.Draw(rt, "key")
					s.add(key, payload(key, s.seqs[key]+1, size.Draw(rt, "size")))
				}
				write(from)
			},
			"append in pieces": func(rt *rapid.T) {
				from := len(s.b)
				key := keys.Draw(rt, "key")
				s.add(key, payload(key, s.seqs[key]+1, size.Draw(rt, "size")))
				cut := rapid.IntRange(from, len(s.b)).Draw(rt, "cut")
				appendTo(t, path, s.b[from:cut])
				lookAll(rt, r, cursors)
				write(cut)
			},
			"crash and repair": func(rt *rapid.T) {
				from, now := len(s.b), s.now
				key := keys.Draw(rt, "key")
				s.add(key, payload(key, s.seqs[key]+1, size.Draw(rt, "size")))
				cut := rapid.IntRange(from, len(s.b)-1).Draw(rt, "cut")
				appendTo(t, path, s.b[from:cut])
				lookAll(rt, r, cursors)
				s.b, s.now = s.b[:from], now+1
				s.seqs[key]--
				if err := os.Truncate(path, int64(from)); err != nil {
					rt.Fatal(err)
				}
			},
			"mark and append over it": func(rt *rapid.T) {
				from := len(s.b)
				s.mark()
				write(from)
				lookAll(rt, r, cursors)
				s.b = s.b[:from]
				key := keys.Draw(rt, "key")
				rec := s.add(key, payload(key, s.seqs[key]+1, size.Draw(rt, "size")))
				f, err := os.OpenFile(path, os.O_WRONLY, 0)
				if err != nil {
					rt.Fatal(err)
				}
				defer f.Close()
				if rapid.Bool().Draw(rt, "truncate") || len(rec) < 100 {
					if err := f.Truncate(int64(from)); err != nil {
						rt.Fatal(err)
					}
				}
				if _, err := f.WriteAt(rec, int64(from)); err != nil {
					rt.Fatal(err)
				}
			},
			"rotate": func(rt *rapid.T) {
				number++
				s = rotate(t, s, path, number)
			},
			"begin": func(rt *rapid.T) {
				name := rapid.SampledFrom([]string{"orders", "*", "k1"}).Draw(rt, "name")
				f := &follower{c: cursor(t, r, name, Start{Kind: End}, false), last: map[string]uint64{}}
				for key, n := range s.seqs {
					f.last[key] = n
				}
				cursors = append(cursors, f)
			},
			"look": func(rt *rapid.T) { lookAll(rt, r, cursors) },
			"": func(rt *rapid.T) {
				if !rapid.Bool().Draw(rt, "all look") {
					return
				}
				lookAll(rt, r, cursors)
				for _, f := range cursors {
					for key, n := range s.seqs {
						if f.c.match.Has(key) && f.last[key] != n {
							rt.Fatalf("%v has %d records of %s, want %d", f.c.match, f.last[key], key, n)
						}
					}
				}
			},
		})
		for _, f := range cursors {
			f.c.Close()
		}
	})
}

// follower is a cursor and what it got.
type follower struct {
	c    *Cursor
	last map[string]uint64 // the last sequence of each key
}

// lookAll has every cursor see what there is.
func lookAll(t *rapid.T, r *Reader, all []*follower) {
	r.watch.wake()
	for _, f := range all {
		for f.step(t) {
		}
	}
}

// step takes one batch, if there is one without waiting.
func (f *follower) step(t *rapid.T) bool {
	b, err := f.c.Next(&impatient{Context: context.Background()}, 3, 0)
	if errors.Is(err, context.Canceled) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range b.Problems {
		t.Errorf("problem: %v", p)
	}
	for _, rec := range b.Records {
		f.last[rec.Key]++
		if want := f.last[rec.Key]; rec.Sequence != want || !bytes.HasPrefix(rec.Payload, payload(rec.Key, want, 0)) {
			t.Fatalf("%v: got %s %d, want %d", f.c.match, rec.Key, rec.Sequence, want)
		}
	}
	return true
}

// impatient is done as soon as somebody waits for it to be.
type impatient struct {
	context.Context
	done chan struct{}
}

func (c *impatient) Done() <-chan struct{} {
	if c.done == nil {
		c.done = make(chan struct{})
		close(c.done)
	}
	return c.done
}

func (c *impatient) Err() error {
	if c.done == nil {
		return nil
	}
	return context.Canceled
}
