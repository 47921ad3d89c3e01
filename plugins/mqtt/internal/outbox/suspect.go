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
	// enough is the weight of evidence for which a message is given up. Five times the
	// server has ended the connection soon behind the whole message, with nothing else
	// to answer, and named no other reason: no bad line does that. What a bad line may
	// do too weighs less.
	enough   = 5 * evident
	evident  = 4
	doubtful = 1
	// soon is how long behind a message the end still points at it.
	soon = 2 * time.Second
	// trial is how long one that goes out alone keeps the others waiting for its
	// answer.
	trial = 5 * time.Second
	// How long a message that was given up is refused at once: a host may try a copy for
	// as long as it runs, an application has changed something before it tries again.
	outlawed       = time.Minute
	outlawedCopies = 10 * time.Minute
	outlawsMost    = 64
)

// End is what is known of a connection's end.
type End uint8

// The ends of a connection.
const (
	EndOther    End = iota // this side's, a time-out, or the server has named a reason that no message has to do with
	EndReset               // cut off: by the server, or by what lies between
	EndByServer            // closed by the server in order, or by its DISCONNECT
)

// suspect is the oldest message without an answer, while connections end.
type suspect struct {
	e      *entry // nil = there is none
	links  int    // that have ended in a row since it is
	weight int    // of the evidence against it

	careful bool      // over this connection what was sent before goes out one by one
	gave    time.Time // the last message to it, where it is careful
	answers int       // of this connection
	timer   *time.Timer
	outlaws map[uint64]time.Time // when they were given up
	seed    maphash.Seed
}

// accuse looks for who may have ended the connection, which has written so many
// bytes: the message that a server comes to first. o.mu is held.
func (o *Outbox) accuse(written uint64, end End) {
	e := o.released.first
	if e == nil {
		e = o.queue.first
		if e == nil || !e.given || e.mark-min(uint64(e.size), e.mark) >= written {
			return // the server has not seen it
		}
	}
	s := &o.suspect
	if s.e != e {
		s.e, s.links, s.weight = e, 0, 0
		if s.careful { // it was alone
			s.links = carefulAfter
		}
	}
	s.links++
	s.weight += o.weigh(e, written, end)
}

// weigh is how much a connection's end says against a message. o.mu is held.
func (o *Outbox) weigh(e *entry, written uint64, end End) int {
	s := &o.suspect
	switch {
	case end == EndOther || !s.careful:
		return 0
	case e.rel: // the server has taken the message, so that PUBREL would be the reason
		if s.answers > 0 {
			return 0
		}
		return doubtful
	case o.released.first != nil || o.next != e.next: // not alone
		return 0
	case end == EndByServer && e.mark <= written && time.Since(s.gave) <= soon:
		return evident
	}
	return doubtful
}

// condemn gives the suspect up where there is enough against it. o.mu is held.
func (o *Outbox) condemn() {
	s := &o.suspect
	e := s.e
	if e == nil || s.weight < enough {
		return
	}
	if s.outlaws == nil {
		s.outlaws, s.seed = make(map[uint64]time.Time), maphash.MakeSeed()
	}
	if len(s.outlaws) >= outlawsMost {
		clear(s.outlaws) // they are tried once more
	}
	now := time.Now()
	s.outlaws[s.print(&e.post.Message)] = now
	f := spurned(e.post.Message.Name, now.Add(sentence(&e.post)))
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
		s.e, s.links, s.weight = nil, 0, 0
	}
}

// print tells messages apart.
func (s *suspect) print(m *core.Message) uint64 {
	return maphash.String(s.seed, m.Name) ^ maphash.Bytes(s.seed, m.Payload)<<1
}

// outlaw returns until when a message is refused that was given up lately, zero = it
// is not. o.mu is held.
func (s *suspect) outlaw(p *Post) time.Time {
	if len(s.outlaws) == 0 {
		return time.Time{}
	}
	key := s.print(&p.Message)
	since, ok := s.outlaws[key]
	now := time.Now()
	if !ok || now.Sub(since) >= outlawedCopies {
		delete(s.outlaws, key)
		return time.Time{}
	}
	if until := since.Add(sentence(p)); until.After(now) {
		return until
	}
	return time.Time{}
}

// sentence is how long a message is refused.
func sentence(p *Post) time.Duration {
	if p.Copy {
		return outlawedCopies
	}
	return outlawed
}

// tread decides how a connection begins: carefully, where there is a suspect, and
// until it shows that the server answers nothing. o.mu is held.
func (o *Outbox) tread() {
	s := &o.suspect
	s.careful, s.answers = s.e != nil && s.links >= carefulAfter, 0
	if s.careful {
		s.watch(o)
	}
}

// watch sets the timer of a careful connection. o.mu is held.
func (s *suspect) watch(o *Outbox) {
	link, answers := o.link, s.answers
	o.timers.Add(1)
	s.timer = time.AfterFunc(trial, func() {
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
func spurned(name string, until time.Time) *core.Fault {
	f := fault.Refusal(core.FaultUnavailable,
		"%s: the server has ended connection after connection over which it was sent the message, and never answered it; it is not sent again, and until %s neither is one that equals it",
		fault.PublishTo(name), until.Format(time.TimeOnly))
	f.Diagnostics = []core.Diagnostic{{Fix: "look into the server's log for why it ends the connection: it may not allow the topic, the size, or the header; then publish it anew"}}
	return f
}
