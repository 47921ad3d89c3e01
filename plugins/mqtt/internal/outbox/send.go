// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"time"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/message"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// What the link is given beyond what it has written: enough for it to be busy,
// and little to be copied. One message goes whatever its size.
const (
	maxAhead = 256 << 10
	maxBatch = 256
)

// pump gives the link what there is room for; o.mu is held.
func (o *Outbox) pump() {
	for o.link != nil && !o.broken {
		o.cut()
		if len(o.batch) == 0 && len(o.control) == 0 {
			return
		}
		before := o.control
		mark, ok := o.link.Append(o.append)
		if !ok {
			// Down follows. What was to be written is as before.
			o.unbatch()
			return
		}
		o.control, o.gave = before[:0], true
		o.wrote(mark)
	}
}

// cut takes what the link is to be given next into o.batch; o.mu is held.
func (o *Outbox) cut() {
	o.batch = o.batch[:0]
	room := maxAhead - o.link.Waiting()
	inflight := o.inflight
	for e := o.next; e != nil && room > 0 && len(o.batch) < maxBatch; {
		following := e.next
		if r, over := o.over(e); over {
			o.finish(e, r)
			e = following
			continue
		}
		if o.waits(e, inflight) {
			return
		}
		if e.post.QoS > 0 {
			if inflight >= o.quota {
				return
			}
			if e.id == 0 {
				if e.post.QoS == 2 && o.ids.soiled() {
					o.scrub()
					return
				}
				o.ids.get(e)
			}
			inflight++
		}
		o.batch = append(o.batch, e)
		room -= e.size
		e = following
	}
}

// scrub releases what a former process has left under identifiers at the server:
// what is sent under one would be taken for it. The server's PUBCOMP shows that it
// is done (4.3.3). o.mu is held.
func (o *Outbox) scrub() {
	if o.scrubbing {
		return
	}
	o.scrubbing = true
	for i, dirty := range o.ids.dirty {
		if dirty {
			o.control = packet.AppendAck(o.control, packet.TypePubrel, uint16(o.ids.base+i), packet.CodeIDNotFound)
		}
	}
}

// over reports whether an entry is not sent, and its receipt: it has expired, or
// the server does not take it. o.mu is held.
func (o *Outbox) over(e *entry) (pluginapi.Receipt, bool) {
	s, p := &o.server, &e.post
	if p.Deadline != 0 && !e.sent && p.Deadline <= time.Now().UnixMilli() {
		return o.late(e), true
	}
	if e.sent { // the server has its identifier in use, so the handshake goes on [MQTT-4.4.0-1]
		if s.MaxPacket > 0 && e.size > s.MaxPacket {
			return pluginapi.Unknown(tooLarge(p.Message.Name, e.size, s.MaxPacket, "")), true
		}
		return pluginapi.Receipt{}, false
	}
	if p.Copy && p.QoS > s.MaximumQoS {
		p.QoS = s.MaximumQoS
	}
	f := o.unfit(e)
	switch {
	case f == nil:
		return pluginapi.Receipt{}, false
	case e.maybe:
		return pluginapi.Unknown(f), true
	default:
		return pluginapi.Refused(f), true
	}
}

// appendBatch appends acks and the packets of o.batch; o.mu is held.
func (o *Outbox) appendBatch(dst []byte) []byte {
	dst = append(dst, o.control...)
	base := len(dst)
	for _, e := range o.batch {
		dst = e.append(dst)
		e.end = len(dst) - base
	}
	return dst
}

// append appends the entry's PUBLISH. DUP says that the server may have it
// [MQTT-3.3.1-1]. What is sent again although it has expired lives as short as
// possible.
func (e *entry) append(dst []byte) []byte {
	p := &e.post
	params := message.Params{QoS: p.QoS, Dup: e.sent, Retain: p.Retain, ID: e.id, ContentType: p.ContentType}
	if p.Deadline != 0 {
		const most = 1<<32 - 1
		left := (p.Deadline - time.Now().UnixMilli() + 999) / 1000
		params.Expiry, params.HasExpiry = uint32(min(max(left, 1), most)), true
	}
	return message.Append(dst, &p.Message, &params)
}

// wrote notes that the link has the batch; o.mu is held.
func (o *Outbox) wrote(mark uint64) {
	if len(o.batch) == 0 {
		return
	}
	if o.suspect.careful {
		o.suspect.gave = time.Now()
	}
	total := o.batch[len(o.batch)-1].end
	for i, e := range o.batch {
		e.given, e.mark = true, mark-uint64(total-e.end)
		if e.post.QoS == 0 {
			o.unproved.follow(e)
		} else {
			o.inflight++
		}
		o.next = e.next
		o.batch[i] = nil
	}
	o.batch = o.batch[:0]
}

// unbatch takes back what a link was to be given that has ended; o.mu is held.
func (o *Outbox) unbatch() {
	clear(o.batch)
	o.batch = o.batch[:0]
	o.broken = true
}

// follow appends an entry to the list of those that are not proved to be written.
func (l *list) follow(e *entry) {
	e.follows = nil
	if l.last == nil {
		l.first = e
	} else {
		l.last.follows = e
	}
	l.last = e
}

// Wrote is to be called when the link has written more: it tells the receipts of
// QoS 0, and sends on.
func (o *Outbox) Wrote(l Link) {
	o.mu.Lock()
	if o.link != l {
		o.mu.Unlock()
		return
	}
	o.proved(l.Written())
	o.pump()
	o.leave()
}

// proved confirms what the operating system has of QoS 0; o.mu is held.
func (o *Outbox) proved(written uint64) {
	for e := o.unproved.first; e != nil && e.mark <= written; e = o.unproved.first {
		if o.unproved.first = e.follows; o.unproved.first == nil {
			o.unproved.last = nil
		}
		e.follows = nil
		o.finish(e, pluginapi.Confirmed())
	}
}
