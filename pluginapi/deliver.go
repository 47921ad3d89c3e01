// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
	"github.com/longshore-go/longshore/pluginapi/internal/ledger"
)

// maxAside bounds what a message carries beside its payload and headers, so
// that a message within its limit fits the frame limit.
const maxAside = 512 << 10

// itemOverhead is about what one message costs in a frame beside its bytes.
const itemOverhead = 48

// deliver sends what the window takes and keeps the rest, whose memory does not
// go back then.
func (r *receiver) deliver(ds []Delivery, memory Memory) {
	for i := range ds {
		if f := r.fit(&ds[i]); f != nil {
			ds = ds[:i]
			r.ending, r.fault = true, f
			break
		}
	}
	if len(r.pending) > 0 {
		r.pending = append(r.pending, ds...)
		return
	}
	var l *loan
	if memory != nil && r.x.copies {
		l = &loan{memory: memory}
		l.users.Add(1)
	}
	if sent := r.sendWithin(ds, l); sent < len(ds) {
		r.pending = append(r.pending, ds[sent:]...)
		return
	}
	r.x.done(l)
}

// flush sends what of the pending deliveries the window takes.
func (r *receiver) flush() {
	sent := r.sendWithin(r.pending, nil)
	rest := copy(r.pending, r.pending[sent:])
	clear(r.pending[rest:])
	r.pending = r.pending[:rest]
	if rest == 0 {
		r.pending = nil
	}
}

// fit checks a delivery against the contract. A message over the payload limit
// is passed on without its payload as one that cannot be read, so that the
// policy for those settles it and nothing else suffers.
func (r *receiver) fit(d *Delivery) *core.Fault {
	x := r.x
	if int64(d.Profile) >= int64(len(x.profiles)) {
		return breach(x.where, "deliveries.profile",
			fmt.Sprintf("is %d: there are %d profiles", d.Profile, len(x.profiles)), "use an index into Profiles")
	}
	if !utf8.ValidString(d.Scope) {
		return breach(x.where, "deliveries.scope", fmt.Sprintf("%q is not UTF-8", d.Scope), "use text")
	}
	aside := len(d.Message.Name) + len(d.Scope) + len(d.Identity) + len(d.Position) + len(d.Carry)
	if aside > maxAside {
		return breach(x.where, "deliveries",
			fmt.Sprintf("one has %d bytes of name, scope, identity, position and carry: the limit is %d", aside, maxAside),
			"keep them short")
	}
	switch counts := x.profiles[d.Profile].Counts == core.CountNative; {
	case !counts:
		d.Attempt = 0
	case d.Attempt == 0: // no cap would ever apply
		return breach(x.where, "deliveries.attempt",
			fmt.Sprintf("is 0 and profile %d says that the source counts", d.Profile),
			"set Attempt, the first delivery is 1, or leave Counts at CountNone")
	}
	r.readable(d)
	return nil
}

// readable turns a message that cannot travel into one that cannot be read.
func (r *receiver) readable(d *Delivery) {
	m := &d.Message
	d.Undecodable = brief(d.Undecodable)
	switch size := frame.Weight(m); {
	case size > frame.MaxPayload:
		d.Undecodable = frame.TooLarge("payload and headers of a message", size, frame.MaxPayload)
		m.Payload, m.Headers = nil, nil
	case len(m.Headers) > frame.MaxHeaders:
		d.Undecodable = newFault(core.FaultTooLarge, "message has %d headers, the limit is %d", len(m.Headers), frame.MaxHeaders)
		m.Headers = nil
	}
	if !utf8.ValidString(m.Name) {
		d.Undecodable = newFault(core.FaultInvalid, "the message's name %q is not UTF-8", m.Name)
		m.Name = strings.ToValidUTF8(m.Name, "\uFFFD")
	}
	for i := range m.Headers {
		if r.legible(i, m.Headers[i].Name) {
			continue
		}
		d.Undecodable = newFault(core.FaultInvalid, "the header name %q is not UTF-8", m.Headers[i].Name)
		m.Headers = slices.Clone(m.Headers)
		m.Headers[i].Name = strings.ToValidUTF8(m.Headers[i].Name, "\uFFFD")
	}
}

// longName is how long a name may be that is remembered.
const longName = 128

// legible reports whether the name of header i is UTF-8. Most often it is the one
// that the last message had there.
func (r *receiver) legible(i int, name string) bool {
	if i >= len(r.names) {
		return utf8.ValidString(name)
	}
	if r.names[i] == name {
		return true // "" at first, which is UTF-8
	}
	if !utf8.ValidString(name) {
		return false
	}
	if len(name) <= longName {
		r.names[i] = name
	}
	return true
}

// sendWithin passes on deliveries as long as the window has room, and returns
// how many. What does not make a full frame is left to the sender.
func (r *receiver) sendWithin(ds []Delivery, l *loan) int {
	sent := 0
	for {
		n, full := r.fill(ds[sent:], l)
		sent += n
		if !full {
			break
		}
		r.x.flush()
	}
	if sent > 0 {
		wake(r.x.toSender)
	}
	return sent
}

// fill moves deliveries into the open frame, with ids, as far as it and the
// window allow, and reports whether it is to be sent before more can follow.
func (r *receiver) fill(ds []Delivery, l *loan) (n int, full bool) {
	x := r.x
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range ds {
		if x.over || x.room().Messages == 0 {
			return i, false
		}
		d := &ds[i]
		bytes := int64(frame.Weight(&d.Message))
		size := bytes + itemOverhead + int64(len(d.Message.Name)+len(d.Scope)+len(d.Identity)+len(d.Position)+len(d.Carry))
		if !x.open.takes(size) {
			return i, true
		}
		id := x.ledger.Add(ledger.Entry{Handle: d.Handle, Scope: d.Scope, Bytes: bytes, Profile: d.Profile})
		item := frame.Delivery{
			ID: id, Message: d.Message, Attempt: d.Attempt, Profile: d.Profile, Scope: d.Scope,
			Identity: d.Identity, Position: d.Position, Carry: d.Carry, Undecodable: d.Undecodable,
		}
		if !d.PublishedAt.IsZero() {
			item.PublishedAt = d.PublishedAt.UnixNano()
		}
		x.open.add(&item, size, len(ds)-i-1)
		x.open.lend(l)
	}
	return len(ds), x.open.full()
}

// void takes deliveries out of the window that ended without a verdict, and
// tells the host their ids. Those that were not sent yet are just dropped.
func (r *receiver) void(v *Void) {
	match, f := matcher(r.x.where, v)
	if f != nil {
		r.ending, r.fault = true, f
		return
	}
	if len(r.pending) > 0 {
		kept := r.pending[:0]
		for _, d := range r.pending {
			if !match(d.Handle, d.Scope) {
				kept = append(kept, d)
			}
		}
		clear(r.pending[len(kept):])
		r.pending = kept
	}
	x := r.x
	var unanswered []frame.SettleResult // verdicts that were never accepted
	x.mu.Lock()
	all := x.ledger.All(r.ids[:0])
	r.ids = all[:0]
	for _, id := range all {
		e := x.ledger.Find(id)
		if !match(e.Handle, e.Scope) {
			continue
		}
		switch {
		case e.Later:
			unanswered = append(unanswered, frame.SettleResult{First: id, Count: 1, Status: frame.SettleStale})
		case !e.Claimed:
			x.late.add(id, e.Handle)
		}
		x.ledger.Remove(id)
		r.ids = append(r.ids, id)
	}
	x.mu.Unlock()
	r.sendVoid(r.ids, v.Returns)
	if len(unanswered) > 0 {
		r.x.tell(&frame.SubscribeResponse{Settled: unanswered})
	}
}

// sendVoid sends ascending ids as runs. Runs are exact where a scope is not: a
// verdict that was accepted already is not among them.
func (r *receiver) sendVoid(ids []uint64, returns bool) {
	for len(ids) > 0 {
		n := 1
		for n < len(ids) && ids[n] == ids[0]+uint64(n) {
			n++
		}
		r.x.tell(&frame.SubscribeResponse{Void: &transportpb.Void{First: ids[0], Count: uint64(n), Returns: returns}})
		ids = ids[n:]
	}
}

// matcher returns whether a delivery is among those that v means.
func matcher(where string, v *Void) (func(handle any, scope string) bool, *core.Fault) {
	switch {
	case v.All:
		return func(any, string) bool { return true }, nil
	case len(v.Handles) == 0:
		return func(_ any, scope string) bool { return scope == v.Scope }, nil
	}
	set := make(map[any]struct{}, len(v.Handles))
	for _, h := range v.Handles {
		if !reflect.ValueOf(h).Comparable() {
			return nil, breach(where, "voids.handles", fmt.Sprintf("holds a %T, which cannot be compared", h),
				"make handles pointers, numbers or texts, or void by scope")
		}
		set[h] = struct{}{}
	}
	return func(handle any, _ string) bool {
		if !reflect.ValueOf(handle).Comparable() {
			return false
		}
		_, ok := set[handle]
		return ok
	}, nil
}
