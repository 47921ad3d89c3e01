// SPDX-License-Identifier: Apache-2.0

package reader

import "math"

// take moves the cursor over a chunk, or as far in it as the limits allow. A
// problem ends the batch: what comes behind it is for the next one.
func (c *Cursor) take(ch *chunk, l limits, b *Batch) {
	if l.records <= 0 {
		l.records = math.MaxInt
	}
	if l.bytes <= 0 {
		l.bytes = math.MaxInt64
	}
	at := uint32(c.off - ch.off)
	flaw, until := ch.flaw(at)
	before := len(b.Records)
	defer func() { c.took(ch, len(b.Records)-before) }()
	walk := c.walk(ch, at, until)
	for i, ok := walk.next(); ok; i, ok = walk.next() {
		e := &ch.entries[i]
		if !c.from.passes(ch.src, ch.off, e) {
			continue
		}
		b.Records = append(b.Records, ch.record(e))
		l.records--
		l.bytes -= int64(e.size)
		if l.records <= 0 || l.bytes <= 0 {
			c.off = ch.off + int64(e.end)
			return
		}
	}
	if flaw == nil {
		c.off = ch.next
		return
	}
	c.off = ch.off + int64(flaw.end)
	if flaw.end == 0 {
		c.off = ch.next
	}
	if p := flaw.problem; c.told != ch.off+int64(flaw.at) && (flaw.end == 0 || p.Key == "" || c.match.Has(p.Key)) {
		b.Problems = append(b.Problems, p)
	}
}

// took takes note of a chunk that a batch has n records of.
func (c *Cursor) took(ch *chunk, n int) {
	if n > 0 {
		ch.holds.Add(1)
		c.given = append(c.given, ch)
	}
	if c.off == ch.next {
		c.passed = append(c.passed, ch)
	}
}

// flaw returns the first flaw at or behind a place, and where it begins: the
// entries before come first.
func (c *chunk) flaw(at uint32) (*flaw, uint32) {
	for i := range c.flaws {
		if f := &c.flaws[i]; f.at >= at {
			return f, f.at
		}
	}
	return nil, math.MaxUint32
}

// walk visits the entries of a chunk that match.
type walk struct {
	ch    *chunk
	index int
	until uint32 // place of the first entry not visited
	exact bool   // by the links of one key
	done  bool
	keys  []bool // that match; nil = all
}

// walk begins at the first entry at or behind a place.
func (c *Cursor) walk(ch *chunk, at, until uint32) walk {
	w := walk{ch: ch, until: until}
	if c.match.Exact() {
		key, ok := ch.key(c.match.text)
		if w.exact, w.done = true, !ok; ok {
			w.begin(key, at)
		}
		return w
	}
	if at > 0 {
		w.index = ch.search(at)
	}
	all := true
	c.keys = c.keys[:0]
	for _, key := range ch.keys {
		has := c.match.Has(key)
		all = all && has
		c.keys = append(c.keys, has)
	}
	if !all {
		w.keys = c.keys
	}
	return w
}

// begin goes to the first entry of a key at or behind a place.
func (w *walk) begin(key, at uint32) {
	entries := w.ch.entries
	w.index = int(w.ch.firsts[key])
	if entries[w.index].at >= at {
		return
	}
	for w.index = w.ch.search(at); w.index < len(entries); w.index++ {
		if entries[w.index].key == key {
			return
		}
	}
	w.done = true
}

// follow goes to the next entry of the key.
func (w *walk) follow() {
	next := w.ch.entries[w.index].next
	w.index, w.done = int(next), next == 0
}

// next returns the index of the next entry.
func (w *walk) next() (int, bool) {
	if w.exact {
		if w.done || w.ch.entries[w.index].at >= w.until {
			return 0, false
		}
		i := w.index
		w.follow()
		return i, true
	}
	for ; w.index < len(w.ch.entries); w.index++ {
		e := &w.ch.entries[w.index]
		if e.at >= w.until {
			return 0, false
		}
		if w.keys == nil || w.keys[e.key] {
			w.index++
			return w.index - 1, true
		}
	}
	return 0, false
}
