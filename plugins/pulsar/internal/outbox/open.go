// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// takeover is how long the name of a producer of ours may be in use, to a broker that
// has not heard yet that its connection is lost. Brokers that are asked for the name
// look within 5 s.
const takeover = 10 * time.Second

// never is a time of the outbox's clock that is none.
const never time.Duration = -1

// open opens a session, and tries again what passes as long as a message waits for
// it.
func (p *part) open() {
	l := p.lane
	o := l.o
	o.mu.Lock()
	p.inUse = never
	for {
		pause := p.pause
		p.pause = longer(pause) // until the broker stores something
		o.mu.Unlock()
		if pause > 0 {
			o.sleep(pause)
		}
		s, err := p.register()
		o.mu.Lock()
		if err != nil {
			p.why = client.Explain("open the topic "+p.name, err)
		}
		refused := err != nil && !p.mayPass(p.why) && !busy(err)
		if opened := err == nil && !s.gone; opened || refused || p.queue.first == nil || o.life.Err() != nil {
			p.opening = false
			l.work--
			switch {
			case opened:
				p.opened(s)
			case refused:
				p.abandon(p.why)
			}
			l.rest()
			o.leave()
			return
		}
	}
}

// mayPass reports whether what keeps a session from being opened may be over in a
// moment; o.mu is held.
func (p *part) mayPass(f *core.Fault) bool {
	if !f.Transient || f.Code != core.FaultConflict {
		p.inUse = never
		return passes(f)
	}
	now := p.lane.o.clock()
	if p.inUse == never {
		p.inUse = now
	}
	return p.given != "" && now-p.inUse < takeover
}

// busy reports whether a broker has too much to look up at the moment.
func busy(err error) bool {
	code, _ := client.Refused(err)
	return code == wire.TooManyRequests
}

// opened makes a session the part's; o.mu is held.
func (p *part) opened(s *session) {
	o := p.lane.o
	if o.life.Err() != nil {
		o.work.Go(s.close)
		return
	}
	next := uint64(s.last + 1) //nolint:gosec // -1 = there is none
	if p.given == "" {
		p.theirs = next
	}
	p.session, p.given, p.why = s, s.name, nil
	if next > p.number {
		p.number = next
		p.usurped()
	}
	p.pump()
}

// usurped gives up what was sent, where the broker has numbers of the name that are not
// ours: with its deduplication it would confirm, by their numbers, what it never got.
func (p *part) usurped() {
	why := fault.Passing(core.FaultConflict, "give each process a producer_name of its own",
		"another producer has published to the topic %s under the name %q", p.name, p.given)
	for e := p.queue.first; e != nil && e.tries > 0; e = p.queue.first {
		e.finish(e.without(why))
	}
}

// identity is the name under which a session is opened. What was sent is known to the
// broker by it, so that it is kept then; else the broker may give another.
func (p *part) identity() wire.Producer {
	o := p.lane.o
	o.mu.Lock()
	defer o.mu.Unlock()
	who := wire.Producer{Topic: p.name, Name: o.c.Name, Epoch: p.epoch}
	p.epoch++
	if first := p.queue.first; who.Name == "" && first != nil && first.tries > 0 {
		who.Name, who.Given = p.given, true
	}
	return who
}

var errUnnamed = errors.New("the broker gave the producer no name")

// register registers a producer at the broker that serves the topic.
func (p *part) register() (*session, error) {
	o := p.lane.o
	ctx, cancel := context.WithTimeout(o.life, o.c.Timeout)
	defer cancel()
	conn, err := o.c.Client.Broker(ctx, p.name)
	if err != nil {
		return nil, err
	}
	s := &session{part: p, conn: conn, limit: conn.MaxMessageSize()}
	s.id = conn.Producer(s)
	who := p.identity()
	who.ID = s.id
	answer, err := conn.Ask(ctx, wire.TypeProducerSuccess, func(dst []byte, number uint64) []byte {
		return wire.AppendProducer(dst, number, who)
	})
	if err == nil && answer.Name == "" {
		err = errUnnamed
	}
	if err != nil {
		if _, refused := errors.AsType[*client.ServerError](err); refused {
			conn.ForgetProducer(s.id)
		} else {
			o.work.Go(s.close) // the broker may open it yet
		}
		return nil, err
	}
	s.name, s.last = answer.Name, answer.LastSequence
	return s, nil
}
