// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"time"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// maxReceive is the Receive Maximum of a server that names none (3.2.2.3.3).
const maxReceive = 1<<16 - 1

// Up begins with a connection. What has no answer goes first. In a session that
// is resumed that is PUBREL, then PUBLISH with DUP, in the order of old
// [MQTT-4.4.0-1], [MQTT-4.6.0-1]. In a new one QoS 1 is published anew; of QoS 2
// what was written may have arrived, so that sending it again could double it, and
// its receipt is unknown.
func (o *Outbox) Up(l Link, s Server) {
	if s.ReceiveMaximum <= 0 {
		s.ReceiveMaximum = maxReceive
	}
	o.mu.Lock()
	o.unlink(EndOther)
	o.link, o.broken, o.server = l, false, s
	o.quota = min(o.c.Window, s.ReceiveMaximum)
	o.stopTimer()
	switch {
	case !s.Present:
		o.ids.soil(false)
		o.renew()
	case !o.begun:
		o.ids.soil(true)
	}
	o.begun = true
	o.withdraw()
	o.inflight = 0
	for e := o.released.first; e != nil; e = e.next {
		e.recovered = true
		o.inflight++
		o.control = packet.AppendAck(o.control, packet.TypePubrel, e.id, packet.CodeSuccess)
	}
	o.next = o.queue.first
	o.tread()
	o.pump()
	o.leave()
}

// renew makes what is there fit for a new session; o.mu is held.
func (o *Outbox) renew() {
	for e := o.released.first; e != nil; e = o.released.first {
		o.finish(e, pluginapi.Unknown(sessionLost(e)))
	}
	for e := o.queue.first; e != nil; {
		following := e.next
		if e.sent && e.post.QoS == 2 {
			o.finish(e, pluginapi.Unknown(sessionLost(e)))
		}
		e.sent = false
		e = following
	}
}

// withdraw refuses the copies of deliveries that come back by themselves and were
// not written yet; o.mu is held.
func (o *Outbox) withdraw() {
	for e := o.queue.first; e != nil; {
		following := e.next
		if e.post.Carried && !e.maybe && o.c.Returns(&e.post.Carry) {
			o.finish(e, pluginapi.Refused(returning(e.post.Message.Name)))
		}
		e = following
	}
}

// Down ends with a connection, of which nothing more is written. end is what is known
// of why.
func (o *Outbox) Down(l Link, end End) {
	o.mu.Lock()
	if o.link != l {
		o.mu.Unlock()
		return
	}
	o.unlink(end)
	o.condemn()
	if o.count > 0 {
		o.arm(o.since.Add(o.c.Wait))
	}
	o.leave()
}

// unlink lets go of the connection and notes what of each message the operating
// system has taken. A packet that was written in part no server can read. o.mu is
// held.
func (o *Outbox) unlink(end End) {
	if o.link == nil {
		return
	}
	written := o.link.Written()
	o.proved(written)
	o.unproved = list{}
	o.accuse(written, end)
	o.suspect.relax(o)
	for e := o.queue.first; e != nil && e != o.next; e = e.next {
		if e.given && e.mark <= written {
			e.sent, e.maybe = true, true
		}
		e.tried = e.tried || e.given
		e.given, e.follows = false, nil
	}
	for e := o.released.first; e != nil; e = e.next {
		e.given = false
	}
	o.link, o.gave, o.scrubbing, o.inflight, o.strays = nil, false, false, 0, 0
	o.control = o.control[:0]
	o.next, o.since = o.queue.first, time.Now()
}
