// SPDX-License-Identifier: Apache-2.0

package mqtt

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/intake"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/session"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/topic"
)

const (
	// maxRequests is how many requests wait for their replies at a time, which is as
	// many as a host has under way.
	maxRequests = 1024
	// replyRoot is what reply topics begin with where the server does not say.
	replyRoot = "longshore/replies"
	// repliesAtOnce and replyBytes are what is taken of replies at a time.
	repliesAtOnce = 256
	replyBytes    = 1 << 20
)

// requests are those that wait for a reply, and who reads the replies. Nothing is
// subscribed to before the first.
type requests struct {
	conn    *conn
	closing context.Context //nolint:containedctx // ends with close
	cancel  context.CancelFunc

	turn     chan struct{} // holds one while nobody opens or closes
	route    *session.Route
	topic    string // "" = not subscribed to yet
	mint     string // what an id that is made begins with
	receiver *intake.Receiver
	reading  sync.WaitGroup

	minted atomic.Uint64

	mu      sync.Mutex
	waiting map[string]*waiter // by correlation id
	over    *core.Fault        // why there are no more
}

func newRequests(c *conn) *requests {
	r := &requests{conn: c, turn: make(chan struct{}, 1), waiting: make(map[string]*waiter)}
	r.closing, r.cancel = context.WithCancel(context.Background())
	r.turn <- struct{}{}
	return r
}

// open subscribes to the reply topic, once.
func (r *requests) open(ctx context.Context) *core.Fault {
	select {
	case <-r.turn:
	case <-ctx.Done():
		return late(ctx)
	}
	defer func() { r.turn <- struct{}{} }()
	if f := r.ended(); f != nil || r.topic != "" {
		return f
	}
	c := r.conn
	name := replyTopic(c.main.ResponseInformation(), c.endpoint.settings.ClientID)
	if c.reads(name) {
		return fault.Refusal(core.FaultConflict, "%s, which replies come to, is subscribed to; end that subscription, or give it a connection of its own", shown(name))
	}
	if r.route == nil {
		r.route = c.main.Route(session.Filter{Name: name, QoS: 1, RetainHandling: retainNever})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.closing, cancel)()
	receiver, _, err := r.route.Subscribe(ctx, "replies")
	if err != nil {
		return faultOf("subscribe to the reply topic", err)
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	r.topic, r.mint, r.receiver = name, hex.EncodeToString(random[:])+"-", receiver
	r.reading.Go(r.read)
	return nil
}

// reads reports whether the endpoint's own connection has a subscription to a
// topic.
func (c *conn) reads(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.main.routes[name] != nil
}

// retainNever leaves out what is retained: a reply to nobody here (3.8.3.1).
const retainNever = 2

// replyTopic is the topic that replies to a client come to, the same one over
// restarts, so that a session that is kept has only one. It is the client's alone,
// as its client id is. What a topic cannot hold is replaced, and told apart by a
// number.
func replyTopic(root, clientID string) string {
	if root == "" || topic.CheckTopic(root) != nil {
		root = replyRoot
	}
	level := strings.Map(func(c rune) rune {
		if strings.ContainsRune("/+#", c) || topic.Unfit(string(c)) != "" {
			return '_'
		}
		return c
	}, clientID)
	if level != clientID {
		level = fmt.Sprintf("%s-%08x", level, topic.Identifier(clientID))
	}
	return strings.TrimSuffix(root, "/") + "/" + level
}

// enter makes a request one of those that wait, and its message one.
func (r *requests) enter(m *core.Message) (*waiter, *core.Fault) {
	w := &waiter{receipt: make(chan pluginapi.Receipt, 1), reply: make(chan core.Message, 1), ended: make(chan *core.Fault, 1)}
	if id, ok := m.Headers.Get(headerCorrelation); ok && len(id) > 0 {
		w.id = string(id)
	} else {
		w.id = fmt.Sprintf("%s%016x", r.mint, r.minted.Add(1))
		m.Headers = append(m.Headers.Without(headerCorrelation), core.Header{Name: headerCorrelation, Value: []byte(w.id)})
	}
	m.Headers = append(m.Headers, core.Header{Name: headerReplyTo, Value: []byte(r.topic)})
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.over != nil:
		return nil, r.over
	case len(r.waiting) >= maxRequests:
		return nil, fault.Passing(core.FaultExhausted, "ask for less at a time", "%d requests wait for their replies", len(r.waiting))
	case r.waiting[w.id] != nil:
		return nil, fault.Refusal(core.FaultConflict, "a request with the %s %.80q waits for its reply already; use another one", headerCorrelation, w.id)
	}
	r.waiting[w.id] = w
	return w, nil
}

// leave takes a request out of those that wait.
func (r *requests) leave(w *waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[w.id] == w {
		delete(r.waiting, w.id)
	}
}

// ended is why no request can be sent any more, nil = one can.
func (r *requests) ended() *core.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// end ends all requests, for a reason.
func (r *requests) end(why *core.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over != nil {
		return
	}
	r.over = why
	for _, w := range r.waiting {
		w.ended <- why
	}
	clear(r.waiting)
}

// close ends all requests and who reads their replies.
func (r *requests) close() {
	r.end(fault.Refusal(core.FaultClosed, "the endpoint is closed"))
	r.cancel()
	<-r.turn
	defer func() { r.turn <- struct{}{} }()
	r.reading.Wait()
	if r.receiver != nil {
		r.receiver.StopIntake()
		r.receiver.Close()
	}
}

// read hands out replies until the endpoint is closed, or ends.
func (r *requests) read() {
	for {
		b, err := r.receiver.Receive(r.closing, pluginapi.Room{Messages: repliesAtOnce, Bytes: replyBytes})
		r.take(b.Deliveries)
		if b.Memory != nil {
			b.Memory.Release()
		}
		if err != nil {
			if r.closing.Err() == nil {
				r.end(faultOf("receive replies", err))
			}
			return
		}
	}
}

// take hands out replies and acks them.
func (r *requests) take(ds []pluginapi.Delivery) {
	var verdicts []pluginapi.Verdict
	var released []any
	for i := range ds {
		d := &ds[i]
		if !r.hand(d) {
			r.conn.endpoint.log.Debug("reply skipped: nobody waits for it", "topic", d.Message.Name)
		}
		if d.Profile == intake.ProfileAcks {
			verdicts = append(verdicts, pluginapi.Verdict{Handle: d.Handle, Kind: core.VerdictAck})
		} else {
			released = append(released, d.Handle)
		}
	}
	if len(verdicts) > 0 {
		r.receiver.Settle(r.closing, verdicts) // one that is stale comes again, to nobody
	}
	if len(released) > 0 {
		r.receiver.Release(released)
	}
}

// hand gives a reply to who waits for it. It reports false where nobody does: it
// is too late, or not the first.
func (r *requests) hand(d *pluginapi.Delivery) bool {
	id, _ := d.Message.Headers.Get(headerCorrelation)
	r.mu.Lock()
	w := r.waiting[string(id)]
	delete(r.waiting, string(id))
	r.mu.Unlock()
	if w == nil {
		return false
	}
	if d.Undecodable != nil {
		w.ended <- fault.Refusal(core.FaultInvalid, "its reply cannot be read: %s", d.Undecodable.Message)
		return true
	}
	w.reply <- d.Message.Clone()
	return true
}
