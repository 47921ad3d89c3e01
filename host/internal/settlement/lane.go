// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// publishLimit is D2's bound on the tries of one copy, where no option says
// otherwise.
const publishLimit = 60 * time.Second

// The credit windows. Sources without acks lose their window in a crash of the
// host, so theirs is small.
const (
	creditMessages       = 1024
	creditMessagesNoAcks = 64
	creditBytes          = 8 << 20
)

// Lane is one subscription over all generations of its plugin. Its life:
//
//  1. NewLane; it has no generation yet.
//  2. Attach and Detach, any number of times; Grant once every subscription of
//     the host is open.
//  3. StopIntake, then Drain.
//  4. Close, in any case and from any phase.
//
// A generation has two goroutines, a reader and a writer of its stream. The
// lane has workers, which run the handlers. What happens after it (receipts,
// results, waits) is driven by whoever brings the news: a stream's reader, the
// clock of Waiting, a call of the journal. None of them waits for another.
type Lane struct {
	o       LaneOptions
	log     *slog.Logger
	once    [core.OutcomeFailFast + 1]onceLine // L-UNS of ack, drop and the like, by outcome
	uns     limitedLine                        // L-UNS of plain retries and of verdicts that failed
	reports limitedLine                        // L-STREAM
	unsure  limitedLine                        // L-COPY of handlers' publishes that are counted as sent
	unheard limitedLine                        // L-UNR
	floors  *floors
	// failures is when messages failed first that the source itself brings back.
	failures     recent[time.Time]
	unidentified sync.Once // it cannot be told which
	unique       string    // of this lane, in this process
	waiting      room      // that its copies take; guarded by the lock of Waiting

	handling   context.Context // of handlers
	letGo      context.CancelFunc
	cancelled  atomic.Bool     // handlers were cancelled by a stop
	settling   context.Context // of the journal's calls
	stopCalls  context.CancelFunc
	goroutines sync.WaitGroup
	spare      sync.Pool // of *settlement
	failed     sync.Once

	mu  sync.Mutex
	now *generation // nil = none is attached
	dispatch
	free     []*flight
	running  []*settlement // whose handlers run
	active   []*settlement // that left the worker; waiting copies are not among them
	working  int           // begun and not finished; waiting copies are not counted
	counts   Counters
	cutOff   int    // messages lost with plans that a stop cut
	copied   uint64 // copies that were given an id of the lane's own
	granted  bool
	stopping bool
	closed   bool
	ended    bool
	endFault *core.Fault
	caughtUp bool
	turned   time.Time     // State.Since
	position []byte        // of the newest delivery
	holds    alarm         // to prolong the holds of what is queued or with its handler
	holdsAt  time.Time     // when it rings; zero = it is not set
	parting  Left          // what the stop has cut off so far
	parted   bool          // it is told
	bell     chan struct{} // closed at the next change; nil = nobody waits

	work    chan struct{} // an idle worker is to look for something to begin
	more    chan struct{} // so is the batch that gathers
	closing chan struct{}
}

// NewLane returns a lane without a generation. It starts no goroutine: workers
// come with the first deliveries.
func NewLane(o LaneOptions) *Lane {
	if o.PublishLimit <= 0 {
		o.PublishLimit = publishLimit
	}
	l := &Lane{
		o:       o,
		log:     o.Logger.With("endpoint", o.Endpoint, "subscription", o.Subscription),
		floors:  newFloors(o.Floor),
		unique:  rand.Text(),
		turned:  time.Now(),
		work:    make(chan struct{}, 1),
		more:    make(chan struct{}, 1),
		closing: make(chan struct{}),
	}
	l.o.Workers = max(o.Workers, 1)
	o.Waiting.sharers.Add(1)
	l.paused = o.Paused
	l.handling, l.letGo = context.WithCancel(context.Background())
	l.settling, l.stopCalls = context.WithCancel(context.Background())
	for i := range l.once {
		l.once[i].init(l, core.OutcomeKind(i))
	}
	l.uns.init(l, core.LogUnsettled, 1)
	l.unsure.init(l, core.LogCopy, 1)
	l.unheard.init(l, core.LogUnrouted, 1)
	l.reports.init(l, core.LogStream, reportsAtOnce)
	l.holds.ring = l.prolong
	l.spare.New = func() any { return newSettlement(l) }
	return l
}

// Attach takes over a generation's stream and begins to read it. Where Grant
// was called before it grants the credit at once.
func (l *Lane) Attach(a Attachment) {
	l.Detach(nil)
	g := newGeneration(l, a)
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		a.Cancel()
		return
	}
	l.now = g
	l.ended, l.endFault, l.caughtUp, l.turned = false, nil, false, time.Now()
	if l.granted {
		g.grant()
	}
	if l.stopping {
		g.stop = true
	}
	l.goroutines.Go(g.read)
	l.goroutines.Go(g.write)
	l.mu.Unlock()
	l.changed()
}

// Detach lets the attached generation go: what is unsettled of it is void as its
// profile's Unsettled says, and its stream's context is ended. A lane without a
// generation stays as it is.
func (l *Lane) Detach(cause error) {
	l.mu.Lock()
	g := l.now
	l.mu.Unlock()
	if g != nil {
		g.lose(foreignError(cause))
	}
}

// Grant opens the credit of the attached generation and of all later ones.
func (l *Lane) Grant() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.granted {
		return
	}
	l.granted = true
	if l.now != nil {
		l.now.grant()
	}
}

// CreditFor is the credit of a lane for a source with the given profiles.
func CreditFor(o *LaneOptions, profiles []core.Capabilities) frame.Credit {
	w := frame.Credit{Messages: creditMessagesNoAcks, Bytes: creditBytes}
	for i := range profiles {
		if profiles[i].Ack != core.AckNone {
			w.Messages = creditMessages
		}
	}
	// So that workers fill their batches while others are settled.
	most := 1
	if o.Batch != nil {
		most = o.Batch.Max
	}
	w.Messages = max(w.Messages, 2*uint64(most)*uint64(max(o.Workers, 1)))
	if o.Window.Messages > 0 {
		w.Messages = o.Window.Messages
	}
	if o.Window.Bytes > 0 {
		w.Bytes = o.Window.Bytes
	}
	return w
}

// State returns what the lane is at.
func (l *Lane) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := State{
		Since: l.turned, Ended: l.ended, Fault: l.endFault, CaughtUp: l.caughtUp,
		Paused: l.paused, Seeking: l.seeking != nil, Circuit: l.circuit.state, Regained: l.regained,
		InWork: l.counts.inWork(), Position: string(l.position),
	}
	if l.now != nil {
		s.Attached, s.Generation = true, l.now.a.Number
	}
	return s
}

// Counters returns the counts so far. They add up at any time: Received is the
// sum of the others but Failed, Lost and Waiting.
func (l *Lane) Counters() Counters {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.counts
	c.InWork = c.inWork()
	return c
}

// Fence waits until everything that the attached generation had sent before the
// call has been read.
func (l *Lane) Fence(ctx context.Context) error {
	l.mu.Lock()
	g := l.now
	if g == nil {
		l.mu.Unlock()
		return fmt.Errorf("fence subscription %q: %w", l.o.Subscription, ErrDown)
	}
	c := g.fence()
	l.mu.Unlock()
	select {
	case <-c:
		return nil
	case <-g.over:
		return fmt.Errorf("fence subscription %q: %w", l.o.Subscription, ErrDown)
	case <-ctx.Done():
		return fmt.Errorf("fence subscription %q: %w", l.o.Subscription, ctx.Err())
	}
}

// changed tells the host, and whoever waits on the lane, that its state may
// have changed. l.mu is not held.
func (l *Lane) changed() {
	l.mu.Lock()
	if l.bell != nil {
		close(l.bell)
		l.bell = nil
	}
	doomed := l.doomed
	l.doomed = nil
	l.mu.Unlock()
	for _, s := range doomed {
		s.open()
		s.finish()
	}
	if l.o.Changed != nil {
		l.o.Changed()
	}
}

// wait waits until done, which is asked with l.mu held, says so, or ctx ends.
func (l *Lane) wait(ctx context.Context, done func() bool) error {
	for {
		l.mu.Lock()
		if done() {
			l.mu.Unlock()
			return nil
		}
		if l.bell == nil {
			l.bell = make(chan struct{})
		}
		bell := l.bell
		l.mu.Unlock()
		select {
		case <-bell:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fail reports the failure that stops the host, once.
func (l *Lane) fail(err error) {
	l.failed.Do(func() {
		if l.o.Failed != nil {
			l.o.Failed(err)
		}
	})
}
