// SPDX-License-Identifier: Apache-2.0

package intake

// state is where a packet of QoS 1 or 2 is.
type state uint8

const (
	stateHeld     state = iota // its receivers have it, or it waits for them
	stateSettled               // all have settled it while it could not be answered: it is when it comes again
	stateReceived              // QoS 2, PUBREC was written: PUBREL comes next
)

// entry is a packet identifier that is in use: a PUBLISH of QoS 1 or 2 until it
// is answered for the last time.
type entry struct {
	id    uint16
	qos   byte
	state state
	left  bool   // a receiver has let go of it: it is not answered
	seen  uint64 // number of the link that it last came on
	print uint64 // of what it says, to know it when it comes again
	open  int    // receivers that have neither settled it nor let go of it
	first *handle
}

// what becomes of a receiver's part of a packet.
type fate uint8

const (
	fateQueued  fate = iota // it waits in an inbox
	fateHanded              // the host has it
	fateOver                // settled or let go
	fateReturns             // void: it comes again
	fateGone                // void: it does not, and nobody can settle it any more
	fateOrphan              // it waits, and nobody can settle it any more
)

// handle is one receiver's part of a packet. The host gives it back with the
// verdict.
type handle struct {
	entry    *entry // nil once it is none of fateQueued and fateHanded
	receiver *Receiver
	next     *handle // of the same entry
	fate     fate
	link     uint64 // that it was received on
	id       uint16
}

// delivered names a delivery as its carry does.
type delivered struct {
	link uint64
	id   uint16
}

// table finds entries by their packet identifiers. Servers hand those out in a
// circle, so that a map would be written to all over; pages are kept.
type table struct {
	pages [256]*[256]*entry
}

func (t *table) get(id uint16) *entry {
	p := t.pages[id>>8]
	if p == nil {
		return nil
	}
	return p[id&0xFF]
}

func (t *table) set(e *entry) {
	p := t.pages[e.id>>8]
	if p == nil {
		p = new([256]*entry)
		t.pages[e.id>>8] = p
	}
	p[e.id&0xFF] = e
}

func (t *table) clear(id uint16) {
	if p := t.pages[id>>8]; p != nil {
		p[id&0xFF] = nil
	}
}

// each calls f with all entries, which it may take out.
func (t *table) each(f func(*entry)) {
	for _, p := range &t.pages {
		if p == nil {
			continue
		}
		for _, e := range p {
			if e != nil {
				f(e)
			}
		}
	}
}

// enter makes an entry of a packet that came on the live link. in.mu is held.
func (in *Intake) enter(a *arrival) *entry {
	var e *entry
	if n := len(in.entries) - 1; n >= 0 {
		e = in.entries[n]
		in.entries = in.entries[:n]
	} else {
		e = new(entry)
	}
	*e = entry{id: a.publish.ID, qos: a.publish.QoS, seen: in.number, print: a.print}
	in.ids.set(e)
	return e
}

// spareEntries is how many entries and handles are kept for use again: a Receive
// Maximum of the usual size.
const spareEntries = 4096

// forget takes an entry out that no handle refers to. in.mu is held.
func (in *Intake) forget(e *entry) {
	in.ids.clear(e.id)
	if len(in.entries) < spareEntries {
		in.entries = append(in.entries, e)
	}
}

// hold gives a receiver its part of a packet; nil = whoever opens the route.
// in.mu is held.
func (in *Intake) hold(e *entry, rc *Receiver) *handle {
	var h *handle
	if n := len(in.handles) - 1; n >= 0 {
		h = in.handles[n]
		in.handles = in.handles[:n]
	} else {
		h = new(handle)
	}
	*h = handle{entry: e, receiver: rc, next: e.first, link: in.number, id: e.id}
	e.first = h
	e.open++
	return h
}

// reuse takes a handle back that nobody refers to. in.mu is held.
func (in *Intake) reuse(h *handle) {
	if len(in.handles) < spareEntries {
		in.handles = append(in.handles, h)
	}
}

// detach ends a receiver's part of a packet. in.mu is held.
func (h *handle) detach(f fate) {
	e := h.entry
	for at := &e.first; *at != nil; at = &(*at).next {
		if *at == h {
			*at = h.next
			break
		}
	}
	h.entry, h.next, h.fate = nil, nil, f
	e.open--
}

// settle is a receiver's ack. The packet is answered behind the last one, unless
// one has let go of it (D23). in.mu is held.
func (in *Intake) settle(h *handle, to *answers) {
	e := h.entry
	h.detach(fateOver)
	if e.open == 0 && !e.left {
		in.answer(e, to)
	}
}

// letGo is a receiver that gives no verdict: the packet is not answered, and its
// slot stays taken (S-MQT-05, S-MQT-36). in.mu is held.
func (h *handle) letGo() {
	h.entry.left = true
	h.detach(fateOver)
}
