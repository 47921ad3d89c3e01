// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory/wire"
)

// replyHeader names where an answer goes.
const replyHeader = "reply-to"

// inbox is where the answer of one request is published to.
type inbox struct {
	p      *peer
	req    uint64
	answer bool // it is passed on; else it is lost on the way
}

// Respond answers requests to a queue with what f returns. f runs without the
// broker's lock.
func (b *Broker) Respond(queue string, f func(Message) Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.responds[queue] = f
}

// Responding is how many functions of Respond run.
func (v View) Responding() int { return v.b.responding }

// ask has a request answered: by what Respond was given, or by who reads the
// queue and publishes to the address in the header reply-to, which is the
// broker's. Faults of publishes are those of requests as well.
func (b *Broker) ask(p *peer, f *wire.Frame) {
	if len(f.Items) != 1 {
		p.send(reply(f.Req, fault(core.FaultInvalid, false, "a request is one message")))
		return
	}
	it := &f.Items[0]
	m := Message{
		Queue: it.Name, Headers: it.Headers, Payload: it.Payload, By: p.endpoint, Purpose: it.Kind, Options: it.Options,
	}
	passed := true
	if q := b.queues[it.Name]; q != nil {
		s := q.faults.publish(m)
		switch {
		case s != nil && s.Status == PublishRefused:
			p.send(reply(f.Req, s.Fault))
			return
		case s != nil && !s.Applied:
			return // nobody hears of it
		case b.responds[it.Name] != nil && q.faults.lose > 0:
			q.faults.lose--
			return
		}
		passed = s == nil
	}
	switch answer := b.responds[it.Name]; {
	case answer != nil:
		b.respond(p, f.Req, answer, m, passed)
	case !b.reader(it.Name):
		p.send(reply(f.Req, fault(core.FaultNotFound, false,
			"nobody answers requests to %q: no subscription reads it, and Broker.Respond was not called for it", it.Name)))
	case b.most > 0 && b.messages >= b.most:
		b.flooded = true
		p.send(reply(f.Req, fault(core.FaultExhausted, false, "the broker has taken %d messages", b.messages)))
	default:
		b.asked++
		to := "_reply." + strconv.FormatUint(b.asked, 10)
		b.inboxes[to] = inbox{p: p, req: f.Req, answer: passed}
		m.Headers = slices.DeleteFunc(slices.Clone(m.Headers), func(h core.Header) bool { return strings.EqualFold(h.Name, replyHeader) })
		m.Headers = append(m.Headers, core.Header{Name: replyHeader, Value: []byte(to)})
		b.accept(b.queue(it.Name), m)
		b.pump()
	}
}

// respond runs a function of Respond.
func (b *Broker) respond(p *peer, req uint64, answer func(Message) Message, m Message, passed bool) {
	b.responding++
	b.wg.Go(func() {
		defer func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.responding--
			b.notify()
		}()
		m := answer(m)
		b.mu.Lock()
		defer b.mu.Unlock()
		if passed {
			b.replies(p, req, m)
		}
	})
}

func (b *Broker) replies(p *peer, req uint64, m Message) {
	r := reply(req, nil)
	r.Items = []wire.Item{{Name: m.Queue, Headers: m.Headers, Payload: m.Payload}}
	p.send(r)
}

// answered passes on what was stored in an inbox; nobody else reads it there.
func (b *Broker) answered(r *record, it *wire.Item) {
	in, ok := b.inboxes[it.Name]
	if !ok || r == nil {
		return
	}
	delete(b.inboxes, it.Name)
	b.finish(r, Acked, "")
	if in.answer {
		b.replies(in.p, in.req, r.msg)
	}
}

// forget drops the requests of a connection.
func (b *Broker) forget(p *peer) {
	maps.DeleteFunc(b.inboxes, func(_ string, in inbox) bool { return in.p == p })
}
