// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// queues is a transport of named queues that live in the test, so that they
// outlive generations. A subscription that ends in "#" reads every name that
// begins like it.
type queues struct {
	mu    sync.Mutex
	named map[string]*queue
	conns int // connections that are open

	// What the transport says and does; set before the host runs.
	source       core.Capabilities
	ceilings     []core.Capabilities                   // beside source
	profiles     func(name string) []core.Capabilities // nil = source, with the name as address
	publishing   core.Publishing
	targets      func(t pluginapi.Target) *pluginapi.TargetReport // nil = computed
	settings     pluginapi.Schema
	options      pluginapi.Schema
	messages     pluginapi.Schema
	configured   func(s pluginapi.Settings) error
	inspected    func(u pluginapi.Usage) []pluginapi.Finding
	connected    func(ctx context.Context, resume []byte) error
	subscribed   func(ctx context.Context, r pluginapi.Registration) error
	narrowed     func(name string) []core.Capabilities
	published    func(m pluginapi.Outgoing) *pluginapi.Receipt // nil = accepted
	delivered    func(m core.Message)                          // sees each delivery
	settled      func(m core.Message, v pluginapi.Verdict)     // sees each verdict
	neverRestart bool
	reports      []byte          // resume bytes, reported while connected
	listens      func() []string // where each connection says that it listens; nil = nowhere
}

// queue is one queue.
type queue struct {
	ready    []*item
	out      map[*item]bool // delivered, without a verdict
	verdicts []string       // what became of deliveries, "ack one"
	took     []core.Message // all that was published here
	ended    bool           // nothing comes any more
	fault    error          // ends the next Receive
	strange  []pluginapi.Report
	received int         // deliveries
	readers  int         // subscriptions so far
	replays  bool        // an empty queue is caught up
	subs     []*queueSub // that are open
	wake     chan struct{}
}

// item is one message in a queue.
type item struct {
	m     core.Message
	carry []byte
	count uint32
}

// kindA settles one by one and does not count, the commonest kind of source.
var kindA = core.Capabilities{
	Ack: core.AckSingle, Requeue: core.RequeueNow, Reject: core.RejectDrops,
	Unsettled: core.UnsettledOnDisconnect, Address: "own",
}

func newQueues() *queues {
	return &queues{
		named: make(map[string]*queue), source: kindA,
		publishing: core.Publishing{
			Confirms: core.ConfirmStored, Retains: core.RetainTransport, Headers: core.HeadersNativeBytes, Repeats: true,
		},
	}
}

// queue returns a queue; q.mu is held.
func (q *queues) queue(name string) *queue {
	x := q.named[name]
	if x == nil {
		x = &queue{out: make(map[*item]bool), wake: make(chan struct{})}
		q.named[name] = x
	}
	return x
}

// bell wakes what waits on the queue; q.mu is held.
func (x *queue) bell() {
	close(x.wake)
	x.wake = make(chan struct{})
}

// matches reports whether a subscription reads a name.
func matches(subscription, name string) bool {
	if prefix, ok := strings.CutSuffix(subscription, "#"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return subscription == name
}

// put publishes texts to a name.
func (q *queues) put(name string, payloads ...string) {
	for _, p := range payloads {
		q.take(core.Message{Name: name, Payload: []byte(p)}, nil)
	}
}

// take adds a message to every queue that matches its name.
func (q *queues) take(m core.Message, carry []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(m, carry)
}

// add is take; q.mu is held.
func (q *queues) add(m core.Message, carry []byte) {
	m = core.Message{
		Name: strings.Clone(m.Name), Payload: slices.Clone(m.Payload),
		Headers: slices.Clone(m.Headers),
	}
	for i, h := range m.Headers {
		m.Headers[i] = core.Header{Name: strings.Clone(h.Name), Value: slices.Clone(h.Value)}
	}
	exact := q.queue(m.Name)
	exact.took = append(exact.took, m)
	for name, x := range q.named {
		if matches(name, m.Name) {
			x.ready = append(x.ready, &item{m: m, carry: slices.Clone(carry)})
			x.bell()
		}
	}
}

// end says that nothing comes any more.
func (q *queues) end(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue(name).ended = true
	q.queue(name).bell()
}

// fail ends the queue's subscription with an error.
func (q *queues) fail(name string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue(name).fault = err
	q.queue(name).bell()
}

// subscriptions returns how often a queue was subscribed to.
func (q *queues) subscriptions(name string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queue(name).readers
}

// replay makes an empty queue report that it is caught up.
func (q *queues) replay(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue(name).replays = true
	q.queue(name).bell()
}

// verdicts returns what became of a queue's deliveries so far, sorted.
func (q *queues) verdicts(name string) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	vs := slices.Clone(q.queue(name).verdicts)
	slices.Sort(vs)
	return vs
}

// took returns what was published to a name so far.
func (q *queues) took(name string) []core.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.queue(name).took)
}

// left returns the payloads that a queue still has, delivered or not, sorted.
func (q *queues) left(name string) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	x := q.queue(name)
	var out []string
	for _, i := range x.ready {
		out = append(out, string(i.m.Payload))
	}
	for i := range x.out {
		out = append(out, string(i.m.Payload))
	}
	slices.Sort(out)
	return out
}

// open returns the number of open connections.
func (q *queues) open() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.conns
}

func (q *queues) Describe() pluginapi.Spec {
	return pluginapi.Spec{
		Name: "queues", Version: "test", Settings: q.settings, Subscription: q.options, Publish: q.messages,
		NeverRestart: q.neverRestart, Publishing: q.publishing, Ceilings: append(q.ceilings, q.source),
	}
}

func (q *queues) Configure(s pluginapi.Settings) (pluginapi.Endpoint, error) {
	if q.configured != nil {
		if err := q.configured(s); err != nil {
			return nil, err
		}
	}
	return q, nil
}

func (q *queues) Inspect(u pluginapi.Usage) pluginapi.Inspection {
	var in pluginapi.Inspection
	if q.inspected != nil {
		in.Findings = q.inspected(u)
	}
	for _, r := range u.Registrations {
		in.Registrations = append(in.Registrations, pluginapi.RegistrationReport{Profiles: q.profilesOf(r.Name)})
	}
	for _, t := range u.Destinations {
		if q.targets != nil {
			if report := q.targets(t); report != nil {
				in.Destinations = append(in.Destinations, *report)
				continue
			}
		}
		report := pluginapi.TargetReport{Publishing: q.publishing}
		for _, r := range u.Registrations {
			if matches(r.Name, t.Name) {
				report.ReturnsTo = append(report.ReturnsTo, r.ID)
				if r.Name == t.Name {
					report.Exactly = append(report.Exactly, r.ID)
				}
			}
		}
		in.Destinations = append(in.Destinations, report)
	}
	return in
}

func (q *queues) profilesOf(name string) []core.Capabilities {
	if q.profiles != nil {
		return q.profiles(name)
	}
	c := q.source
	if c.Address != "" {
		c.Address = name
	}
	return []core.Capabilities{c}
}

func (q *queues) Connect(ctx context.Context, resume []byte) (pluginapi.Conn, error) {
	if q.connected != nil {
		if err := q.connected(ctx, resume); err != nil {
			return nil, err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.conns++
	return &queueConn{q: q}, nil
}

// queueConn is one connection.
type queueConn struct {
	q     *queues
	mu    sync.Mutex
	subs  []*queueSub
	close sync.Once
}

func (c *queueConn) Addresses() []string {
	if c.q.listens == nil {
		return nil
	}
	return c.q.listens()
}

func (c *queueConn) Subscribe(ctx context.Context, r pluginapi.Registration) (pluginapi.Subscription, error) {
	if c.q.subscribed != nil {
		if err := c.q.subscribed(ctx, r); err != nil {
			return nil, err
		}
	}
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	c.q.queue(r.Name).readers++
	s := &queueSub{q: c.q, name: r.Name, x: c.q.queue(r.Name), mine: make(map[*item]bool)}
	s.x.subs = append(s.x.subs, s)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subs = append(c.subs, s)
	return s, nil
}

func (c *queueConn) Publish(_ context.Context, msgs []pluginapi.Outgoing, done func(int, pluginapi.Receipt)) {
	for i, m := range msgs {
		if c.q.published != nil {
			if r := c.q.published(m); r != nil {
				done(i, *r)
				continue
			}
		}
		confirm := func() { done(i, pluginapi.Receipt{Status: pluginapi.ReceiptConfirmed}) }
		if !c.q.publish(m.Message, m.Carry, confirm) {
			confirm()
		}
	}
}

// Close gives back what has no verdict.
func (c *queueConn) Close(context.Context) ([]byte, error) {
	c.close.Do(func() {
		c.q.mu.Lock()
		defer c.q.mu.Unlock()
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, s := range c.subs {
			s.x.subs = slices.DeleteFunc(s.x.subs, func(o *queueSub) bool { return o == s })
			for i := range s.mine {
				delete(s.x.out, i)
				s.x.ready = append([]*item{i}, s.x.ready...)
			}
			clear(s.mine)
			s.x.bell()
		}
		c.q.conns--
	})
	return nil, nil
}

// ReportResume reports what the test set, once.
func (c *queueConn) ReportResume(keep func([]byte)) {
	if c.q.reports != nil {
		keep(c.q.reports)
	}
}
