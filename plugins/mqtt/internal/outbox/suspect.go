// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"hash/maphash"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// A server that does not take a message may end the connection without an answer:
// Mosquitto does so at a topic of more than 200 levels. Sent again over every
// connection such a message would keep all others from the server for ever.
const (
	// carefulAfter is how many connections in a row end with the same oldest message
	// until what was sent before goes out one by one: who is alone on a connection
	// that ends was the reason.
	carefulAfter = 3
	// suspectMost is how many end with it until it is given up.
	suspectMost = 5
	// trial is how long one that goes out alone keeps the others waiting for its
	// answer.
	trial = 5 * time.Second
	// outlawed is how long, and outlawsMost how many messages that were given up are
	// refused at once: a host may try a copy for as long as it runs.
	outlawed    = 10 * time.Minute
	outlawsMost = 64
)

// suspect is the oldest message without an answer, while connections end.
type suspect struct {
	e     *entry // nil = there is none
	links int    // that have ended in a row since it is

	careful  bool // over this connection what was sent before goes out one by one
	answers  int  // of this connection
	timer    *time.Timer
	outlaws  map[uint64]time.Time // until when they are refused
	seed     maphash.Seed
	patience time.Duration
}

// accuse looks for who may have ended the connection, which has written so many
// bytes: the message that a server comes to first. It is given up where it was that
// one too often. o.mu is held.
func (o *Outbox) accuse(written uint64) {
	e := o.released.first
	if e == nil {
		e = o.queue.first
		if e == nil || !e.given || e.mark-min(uint64(e.size), e.mark) >= written {
			return // the server has not seen it
		}
	}
	s := &o.suspect
	if s.e != e {
		s.e, s.links = e, 0
		if s.careful { // it was alone
			s.links = carefulAfter
		}
	}
	s.links++
}

// condemn gives the suspect up where it has ended too many connections. o.mu is
// held.
func (o *Outbox) condemn() {
	s := &o.suspect
	e := s.e
	if e == nil || s.links < suspectMost {
		return
	}
	if s.outlaws == nil {
		s.outlaws, s.seed = make(map[uint64]time.Time), maphash.MakeSeed()
	}
	if len(s.outlaws) >= outlawsMost {
		clear(s.outlaws) // they are tried once more
	}
	s.outlaws[s.print(&e.post.Message)] = time.Now().Add(outlawed)
	f := spurned(e.post.Message.Name)
	if e.maybe || e.rel {
		o.finish(e, pluginapi.Unknown(f))
		return
	}
	f.Message += "; it was never sent whole"
	o.finish(e, pluginapi.Refused(f))
}

// acquit notes an answer about a message.
func (s *suspect) acquit(e *entry) {
	s.answers++
	if s.e == e {
		s.e, s.links = nil, 0
	}
}

// print tells messages apart.
func (s *suspect) print(m *core.Message) uint64 {
	return maphash.String(s.seed, m.Name) ^ maphash.Bytes(s.seed, m.Payload)<<1
}

// outlaw reports whether a message was given up lately. o.mu is held.
func (s *suspect) outlaw(m *core.Message) bool {
	if len(s.outlaws) == 0 {
		return false
	}
	key := s.print(m)
	until, ok := s.outlaws[key]
	if ok && time.Now().After(until) {
		delete(s.outlaws, key)
		ok = false
	}
	return ok
}

// tread decides how a connection begins: carefully, where there is a suspect, and
// until it shows that the server answers nothing. o.mu is held.
func (o *Outbox) tread() {
	s := &o.suspect
	s.careful = s.e != nil && s.links >= carefulAfter
	if s.careful {
		s.watch(o)
	}
}

// watch sets the timer of a careful connection. o.mu is held.
func (s *suspect) watch(o *Outbox) {
	link, answers := o.link, s.answers
	o.timers.Add(1)
	s.timer = time.AfterFunc(s.patience, func() {
		defer o.timers.Done()
		o.mu.Lock()
		if o.link != link || !s.careful {
			o.mu.Unlock()
			return
		}
		if s.answers != answers {
			s.watch(o)
		} else {
			s.careful = false
			o.pump()
		}
		o.leave()
	})
}

// relax ends a careful connection. o.mu is held.
func (s *suspect) relax(o *Outbox) {
	s.careful = false
	if s.timer != nil && s.timer.Stop() {
		o.timers.Done()
	}
	s.timer = nil
}

// waits reports whether a message that would be the next one is to wait until the
// server has answered those before. o.mu is held.
func (o *Outbox) waits(e *entry, inflight int) bool {
	s := &o.suspect
	switch {
	case !s.careful:
		return false
	case inflight > 0 || len(o.batch) > 0 || o.unproved.first != nil:
		return true
	}
	if !e.tried { // nor any behind it
		s.relax(o)
	}
	return false
}

// spurned is the fault of a message behind which the server has ended connections.
func spurned(name string) *core.Fault {
	f := fault.Refusal(core.FaultUnavailable,
		"%s: the server has ended %d connections in a row over which it was sent the message, without an answer to it; it is not sent again", fault.PublishTo(name), suspectMost)
	f.Diagnostics = []core.Diagnostic{{Fix: "look into the server's log: it may not allow the topic, or the size"}}
	return f
}
