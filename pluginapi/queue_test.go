// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// queueTransport is a real transport over queues in memory. What its queues can
// do is set by the test; the hooks replace what one call does.
type queueTransport struct {
	spec   Spec
	caps   []core.Capabilities // profiles of every queue
	offers []core.Capabilities // what Profiles returns, nil = caps

	configure func(s Settings) (Endpoint, error)
	inspect   func(u Usage, in *Inspection)
	connect   func(resume []byte) error
	publish   func(ctx context.Context, msgs []Outgoing, done func(int, Receipt))
	receive   func(ctx context.Context, q *queue, room Room) (Batch, error)
	settle    func(ctx context.Context, q *queue, vs []Verdict) []Result
	closed    func(ctx context.Context) ([]byte, error)
	wrap      func(s Subscription) Subscription

	mu       sync.Mutex
	settings Settings
	queues   map[string]*queue
	report   func(LinkState)
	keep     func([]byte)
}

func newQueueTransport(caps ...core.Capabilities) *queueTransport {
	return &queueTransport{
		spec: Spec{
			Name: "queue", Version: "1", Ceilings: caps,
			Publishing: core.Publishing{Confirms: core.ConfirmStored, Headers: core.HeadersNativeBytes},
		},
		caps:   caps,
		queues: make(map[string]*queue),
	}
}

// The capabilities that tests start from.
func everything() core.Capabilities {
	return core.Capabilities{
		Ack: core.AckSingle, Requeue: core.RequeueDelayed, MaxDelay: 1 << 40, MaxHold: 1 << 40, Extend: true,
		Reject: core.RejectDrops, Counts: core.CountNative, Unsettled: core.UnsettledOnDisconnect,
		Order: core.OrderTotal,
	}
}

func (t *queueTransport) Describe() Spec { return t.spec }

func (t *queueTransport) Configure(s Settings) (Endpoint, error) {
	t.mu.Lock()
	t.settings = s
	t.mu.Unlock()
	if t.configure != nil {
		return t.configure(s)
	}
	return queueEndpoint{t}, nil
}

type queueEndpoint struct{ t *queueTransport }

func (e queueEndpoint) Inspect(u Usage) Inspection {
	var in Inspection
	for range u.Registrations {
		in.Registrations = append(in.Registrations, RegistrationReport{Profiles: e.t.caps})
	}
	for range u.Destinations {
		in.Destinations = append(in.Destinations, TargetReport{Publishing: e.t.spec.Publishing})
	}
	if e.t.inspect != nil {
		e.t.inspect(u, &in)
	}
	return in
}

func (e queueEndpoint) Connect(_ context.Context, resume []byte) (Conn, error) {
	if e.t.connect != nil {
		if err := e.t.connect(resume); err != nil {
			return nil, err
		}
	}
	return &queueConn{t: e.t}, nil
}

type queueConn struct{ t *queueTransport }

func (c *queueConn) ReportLink(report func(LinkState)) { c.t.report = report }
func (c *queueConn) ReportResume(keep func(resume []byte)) {
	c.t.keep = keep
	keep([]byte("connected"))
}
func (c *queueConn) Close(ctx context.Context) ([]byte, error) {
	if c.t.closed != nil {
		return c.t.closed(ctx)
	}
	return []byte("closed"), nil
}

func (c *queueConn) Request(_ context.Context, m Outgoing) (core.Message, error) {
	if m.Message.Name == "nobody" {
		return core.Message{}, &core.Fault{Code: core.FaultNotFound, Message: "nobody answers"}
	}
	if m.Message.Name == "large" {
		return core.Message{Name: "reply", Payload: make([]byte, frame.MaxPayload+1)}, nil
	}
	return core.Message{Name: "reply", Payload: m.Message.Payload}, nil
}

func (c *queueConn) Subscribe(_ context.Context, r Registration) (Subscription, error) {
	if r.Name == "missing" {
		return nil, &core.Fault{Code: core.FaultNotFound, Message: "no such queue"}
	}
	q := c.t.queue(r.Name)
	q.mu.Lock()
	q.open++
	q.mu.Unlock()
	var s Subscription = q
	if c.t.wrap != nil {
		s = c.t.wrap(q)
	}
	return s, nil
}

func (c *queueConn) Publish(ctx context.Context, msgs []Outgoing, done func(int, Receipt)) {
	if c.t.publish != nil {
		c.t.publish(ctx, msgs, done)
		return
	}
	for i := range msgs {
		c.t.queue(msgs[i].Message.Name).put(Delivery{Message: clone(msgs[i].Message)})
		done(i, Receipt{Status: ReceiptConfirmed})
	}
}

// clone copies a message whose bytes belong to somebody else.
func clone(m core.Message) core.Message {
	m.Payload = append([]byte(nil), m.Payload...)
	hs := m.Headers
	m.Headers = nil
	for _, h := range hs {
		m.Headers = append(m.Headers, core.Header{Name: h.Name, Value: append([]byte(nil), h.Value...)})
	}
	return m
}

// queue returns the queue of a name, made at its first use.
func (t *queueTransport) queue(name string) *queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.queues[name]
	if q == nil {
		q = &queue{t: t, name: name, unsettled: make(map[any]Delivery), wake: make(chan struct{}, 1)}
		t.queues[name] = q
	}
	return q
}

// queue is a queue and its one subscription.
type queue struct {
	t    *queueTransport
	name string
	wake chan struct{}

	uncounted bool // says that it counts, and does not

	mu        sync.Mutex
	ready     []Delivery
	events    Batch // voids, reports and caught up to report
	end       error
	next      int
	unsettled map[any]Delivery
	verdicts  []Verdict
	rooms     []Room
	sought    []Position
	open      int // subscriptions
	closes    int
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// put adds a delivery; its handle is its number in the queue unless set, its
// attempt the first where the queue counts.
func (q *queue) put(ds ...Delivery) {
	profiles := q.Profiles()
	q.mu.Lock()
	for _, d := range ds {
		if d.Handle == nil {
			q.next++
			d.Handle = q.next
		}
		if i := int(d.Profile); d.Attempt == 0 && i < len(profiles) && profiles[i].Counts == core.CountNative && !q.uncounted {
			d.Attempt = 1
		}
		q.ready = append(q.ready, d)
	}
	q.mu.Unlock()
	q.signal()
}

// fill puts n messages of the given payload size.
func (q *queue) fill(n, size int) {
	for i := range n {
		q.put(Delivery{Message: core.Message{Name: q.name, Payload: fmt.Appendf(make([]byte, 0, size), "%0*d", size, i)}})
	}
}

// say reports what is not a delivery.
func (q *queue) say(b Batch) {
	q.mu.Lock()
	q.events.Voids = append(q.events.Voids, b.Voids...)
	q.events.Reports = append(q.events.Reports, b.Reports...)
	q.events.CaughtUp = q.events.CaughtUp || b.CaughtUp
	for _, v := range b.Voids {
		for h, d := range q.unsettled {
			if v.All || len(v.Handles) == 0 && d.Scope == v.Scope {
				delete(q.unsettled, h)
			}
		}
		for _, h := range v.Handles {
			delete(q.unsettled, h)
		}
	}
	q.mu.Unlock()
	q.signal()
}

// finish ends the subscription behind what is ready.
func (q *queue) finish(err error) {
	q.mu.Lock()
	q.end = err
	q.mu.Unlock()
	q.signal()
}

func (q *queue) Profiles() []core.Capabilities {
	if q.t.offers != nil {
		return q.t.offers
	}
	return q.t.caps
}

func (q *queue) Receive(ctx context.Context, room Room) (Batch, error) {
	q.mu.Lock()
	q.rooms = append(q.rooms, room)
	q.mu.Unlock()
	if q.t.receive != nil {
		return q.t.receive(ctx, q, room)
	}
	return q.take(ctx, room)
}

func (q *queue) take(ctx context.Context, room Room) (Batch, error) {
	for {
		q.mu.Lock()
		b := q.events
		q.events = Batch{}
		bytes := int64(0)
		for len(q.ready) > 0 && len(b.Deliveries) < room.Messages && bytes < room.Bytes {
			d := q.ready[0]
			q.ready = q.ready[1:]
			bytes += int64(len(d.Message.Payload))
			q.unsettled[d.Handle] = d
			b.Deliveries = append(b.Deliveries, d)
		}
		end := q.end
		if len(q.ready) > 0 {
			end = nil
		}
		q.mu.Unlock()
		if len(b.Voids)+len(b.Reports)+len(b.Deliveries) > 0 || b.CaughtUp || end != nil {
			return b, end
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return Batch{}, ctx.Err()
		}
	}
}

func (q *queue) Settle(ctx context.Context, vs []Verdict) []Result {
	if q.t.settle != nil {
		return q.t.settle(ctx, q, vs)
	}
	return q.carryOut(vs)
}

func (q *queue) carryOut(vs []Verdict) []Result {
	rs := make([]Result, len(vs))
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, v := range vs {
		q.verdicts = append(q.verdicts, v)
		d, ok := q.unsettled[v.Handle]
		if !ok {
			rs[i] = Result{Status: ResultStale}
			continue
		}
		rs[i] = Result{Status: ResultDone}
		if v.Kind == core.VerdictExtend {
			continue
		}
		delete(q.unsettled, v.Handle)
		if v.Kind == core.VerdictRequeue {
			d.Attempt++
			q.ready = append(q.ready, d)
			q.signal()
		}
	}
	return rs
}

func (q *queue) Seek(_ context.Context, to Position) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sought = append(q.sought, to)
	if to.Kind == PositionTime {
		return &core.Fault{Code: core.FaultUnsupported, Message: "no clock"}
	}
	if string(to.Value) == "some" {
		return &PartlyMovedError{&core.Fault{Code: core.FaultUnavailable, Message: "1 of 2"}}
	}
	clear(q.unsettled)
	return nil
}

func (q *queue) Close(context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closes++
	q.open--
	return nil
}

// left returns the handles that are unsettled.
func (q *queue) left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.unsettled)
}

// errEOF is the orderly end.
var errEOF = io.EOF
