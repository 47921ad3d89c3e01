// SPDX-License-Identifier: Apache-2.0

package position

import (
	"encoding/binary"
	"slices"
)

// flush writes what is not written yet: changes, or the whole state where the
// slot is full, the last write failed or the file is a new one. t.mu is held.
func (t *Tracker) flush() error {
	if !t.dirty {
		return nil
	}
	renewed, err := t.renew()
	if err != nil {
		return err
	}
	t.prepare()
	if t.moved {
		t.change(changeMoved, func(b []byte) []byte { return appendDistance(b, t.from, t.stored.next) })
	}
	if !t.whole && t.store.fits(len(t.pending)) {
		err = t.store.append(t.pending)
	} else {
		t.sum, err = t.store.replace(t.encode())
	}
	t.pending, t.moved = t.pending[:0], false
	t.whole, t.dirty = err != nil, err != nil
	if err == nil && renewed {
		err = &RenewedError{Path: t.store.path}
	}
	return err
}

// prepare makes changes of what is gathered.
func (t *Tracker) prepare() {
	if len(t.settled) > 0 {
		t.change(changeSettled, func(b []byte) []byte { return appendRuns(b, t.settled) })
		t.settled = t.settled[:0]
	}
	if len(t.again) > 0 {
		t.change(changeAgain, func(b []byte) []byte { return appendRuns(b, t.again) })
		t.again = t.again[:0]
	}
}

// change adds a change, unless the next write is a whole state.
func (t *Tracker) change(kind byte, body func(b []byte) []byte) {
	if t.whole {
		return
	}
	at := len(t.pending)
	t.pending = append(t.pending, make([]byte, changeHead)...)
	t.pending = body(append(t.pending, kind))
	t.sum = sealChange(t.pending[at:], t.sum)
}

func (t *Tracker) changeDeliver(records []Mark) {
	t.change(changeDeliver, func(b []byte) []byte {
		b = binary.AppendUvarint(b, uint64(len(records)))
		for _, r := range records {
			b = appendEntry(b, t.from, r.Place, 1)
			t.from = r.Place
		}
		last := records[len(records)-1]
		b = binary.AppendUvarint(b, last.Sequence)
		b = binary.AppendVarint(b, last.Time)
		return appendDistance(b, t.from, t.stored.next)
	})
}

// encode writes the whole state behind the place of a slot's head, and numbers
// the entries anew.
func (t *Tracker) encode() []byte {
	b := append(t.pending[:0], make([]byte, slotHead)...)
	b = appendState(b, &t.stored, t.list.n)
	t.from, t.ids = t.stored.next, 0
	b = slices.Grow(b, 4*t.list.n)
	for e := t.list.first; e != nil; e = e.next {
		if e.untracked {
			continue
		}
		b = appendEntry(b, t.from, e.Place, e.Attempt)
		t.from = e.Place
		e.id = t.ids
		t.ids++
	}
	t.pending = b
	return b
}
