// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory/wire"
)

// DeadSuffix is added to a queue's name for what a reject dead-letters.
const DeadSuffix = ".dead"

// errClosed says that the broker was closed.
var errClosed = errors.New("memory broker is closed")

// Broker holds queues in the test process. Its methods may be called from any
// goroutine.
type Broker struct {
	wg sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	down      bool
	queues    map[string]*queue
	names     []string // of the queues, in order of appearance
	peers     []*peer
	consumers []*consumer
	stops     []*Pause
	denials   []*denial
	opened    map[string]bool // names of subscriptions that were opened
	responds  map[string]func(Message) Message
	inboxes   map[string]inbox
	listeners []net.Listener
	changed   chan struct{} // closed at the next change
	told      []chan<- struct{}

	// What a test asked for.
	patient  bool                                  // Patient
	caught   bool                                  // CatchUpAll
	keeps    bool                                  // KeepVerdicts
	match    func(subscription, queue string) bool // nil = Matches
	most     uint64                                // Limit; 0 = none
	mostBack uint64                                // LimitReturns; 0 = none
	flooded  bool                                  // one of the two is reached
	round    *record                               // by this message
	reorders bool                                  // a queue has faults.reorder

	messages   uint64
	keys       int64
	deliveries uint64
	sessions   uint64
	requests   uint64
	asked      uint64 // requests that were handed to subscriptions
	responding int    // functions of Respond that run
	verdicts   uint64
	twins      uint64

	alarms  alarmHeap
	alarmed uint64
	clock   *time.Timer // of the first alarm
}

// New returns a broker without connections.
func New() *Broker {
	return &Broker{
		queues:   map[string]*queue{},
		opened:   map[string]bool{},
		responds: map[string]func(Message) Message{},
		inboxes:  map[string]inbox{},
		changed:  make(chan struct{}),
	}
}

// Matches reports whether a subscription reads a queue: one whose name ends
// with * reads every queue that begins like it.
func Matches(subscription, queue string) bool {
	if prefix, ok := strings.CutSuffix(subscription, "*"); ok {
		return strings.HasPrefix(queue, prefix)
	}
	return subscription == queue
}

// Match replaces Matches. The transports of the broker must have it as well. It
// is called before a plugin connects.
func (b *Broker) Match(f func(subscription, queue string) bool) { b.match = f }

// Limit bounds what the broker does, so that messages that go round for ever end
// a test: after n deliveries nothing more is delivered, and after n messages
// publishes are refused. See View.Flooded. It is called before a plugin
// connects.
func (b *Broker) Limit(n int) { b.most = uint64(n) }

// LimitReturns is Limit for one message: the broker stops delivering when one has
// been delivered n times, or is the n-th copy by its count header. It is called
// before a plugin connects.
func (b *Broker) LimitReturns(n int) { b.mostBack = uint64(n) }

// Listen serves plugins on a Unix socket at path.
func (b *Broker) Listen(path string) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("listen for plugins: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errors.Join(errClosed, l.Close())
	}
	b.listeners = append(b.listeners, l)
	b.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			b.serve(conn)
		}
	})
	return nil
}

// Dial connects a transport of this process. The address is not looked at.
func (b *Broker) Dial(ctx context.Context, _ string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	refused := b.closed || b.down
	b.mu.Unlock()
	if refused {
		return nil, errClosed
	}
	near, far := net.Pipe()
	b.serve(far)
	return near, nil
}

// Close disconnects all plugins and returns when nothing of the broker runs.
func (b *Broker) Close() error {
	b.mu.Lock()
	b.closed = true
	var err error
	for _, l := range b.listeners {
		err = errors.Join(err, l.Close())
	}
	for _, p := range b.peers {
		p.close()
	}
	for _, s := range b.stops {
		s.release()
	}
	if b.clock != nil {
		b.clock.Stop()
	}
	b.notify()
	b.mu.Unlock()
	b.wg.Wait()
	return err
}

// Down ends all connections and refuses new ones until Up.
func (b *Broker) Down() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = true
	for _, p := range slices.Clone(b.peers) {
		b.leave(p)
	}
}

// Up takes connections again after Down.
func (b *Broker) Up() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = false
}

// Restart ends all connections as a restarted broker does: what is unsettled or
// queued for subscriptions that are not durable is lost.
func (b *Broker) Restart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	volatile := map[*queue]bool{}
	for _, c := range b.consumers {
		for _, q := range b.reads(c) {
			if !c.profiles[0].Durable {
				volatile[q] = true
			}
		}
	}
	for _, p := range slices.Clone(b.peers) {
		b.leave(p)
	}
	for q := range volatile {
		for _, r := range q.records {
			if r.state == Queued || r.state == Outstanding {
				b.lose(r, "the broker restarted")
			}
		}
	}
	b.notify()
}

// Publish puts messages into a queue and returns their ids.
func (b *Broker) Publish(queue string, ms ...Message) []uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := make([]uint64, len(ms))
	for i, m := range ms {
		ids[i] = b.accept(b.queue(queue), m).msg.ID
	}
	b.pump()
	return ids
}

// queue returns the queue of that name, made when it is not there.
func (b *Broker) queue(name string) *queue {
	q := b.queues[name]
	if q == nil {
		q = newQueue(name)
		b.queues[name] = q
		b.names = append(b.names, name)
	}
	return q
}

// accept takes a message into a queue's log and makes it ready.
func (b *Broker) accept(q *queue, m Message) *record {
	b.messages++
	b.keys++
	m.ID, m.Queue, m.PublishedAt = b.messages, q.name, time.Now()
	if m.Scope == "" {
		m.Scope, _ = m.Header("partition-key")
	}
	r := &record{msg: m, queue: q, key: b.keys, index: -1}
	q.add(r)
	count, _ := m.Header(countHeader)
	double := string(m.Payload) + "\x00" + count
	if q.seen[double]++; q.seen[double] > 1 {
		q.account.Doubles++
	}
	if m.DeliverAfter > 0 {
		b.later(r, m.DeliverAfter)
	} else {
		q.push(r)
	}
	b.notify()
	return r
}

// countHeader is the header that counts copies (reference 1.4).
const countHeader = "x-ruststream-retry-count"

// later makes a record ready after d.
func (b *Broker) later(r *record, d time.Duration) {
	r.set(Queued)
	r.due = b.after(d, func() {
		r.due = nil
		r.queue.push(r)
	})
}

// lose ends a record without a settlement.
func (b *Broker) lose(r *record, why string) {
	b.finish(r, Lost, why)
}

// finish ends a record.
func (b *Broker) finish(r *record, s State, why string) {
	r.stop()
	r.queue.drop(r)
	if r.consumer != nil {
		delete(r.consumer.out, r.delivery)
	}
	r.set(s)
	r.consumer, r.session, r.reason = nil, "", why
	b.notify()
}

// back makes an outstanding record ready again, after d. A source without order
// puts it at the end, every other one where it was.
func (b *Broker) back(r *record, order core.OrderMode, d time.Duration) {
	b.finish(r, Queued, "")
	if order == core.OrderNone {
		b.keys++
		r.key = b.keys
	}
	if d > 0 {
		b.later(r, d)
		return
	}
	r.queue.push(r)
}

// notify wakes those who wait for a change.
func (b *Broker) notify() {
	close(b.changed)
	b.changed = make(chan struct{})
	for _, c := range b.told {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Tell makes the broker send to c at every change, where c has room.
func (b *Broker) Tell(c chan<- struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, c)
}

// request returns a number for a question to a plugin.
func (b *Broker) request() uint64 {
	b.requests++
	return b.requests
}

// fault makes a fault of the broker.
func fault(code core.FaultCode, transient bool, format string, args ...any) *core.Fault {
	return &core.Fault{Code: code, Message: fmt.Sprintf(format, args...), Transient: transient}
}

// reply answers a question.
func reply(req uint64, f *core.Fault) *wire.Frame {
	return &wire.Frame{Kind: wire.Reply, Req: req, Fault: f}
}
