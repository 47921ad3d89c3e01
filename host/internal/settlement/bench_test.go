// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/rows"
)

// Some kinds of the settlement tables, and what a destination can do there.
var (
	kinds  = rows.Kinds()
	kindA  = rows.Kinds()["A"]
	kindC  = rows.Kinds()["C"]
	kindM  = rows.Kinds()["M"]
	kindU  = rows.Kinds()["U"]
	stored = rows.Stored()
)

func open(name string, caps core.Publishing) core.Route {
	return core.Route{To: core.Destination{Endpoint: "in", Name: name}, Caps: caps, State: core.RouteOpen, Own: true}
}

// observed is one plan as it was carried out.
type observed struct {
	c     core.Case
	plan  core.Plan
	trace []core.Done
}

func (o observed) String() string {
	return core.Path(o.trace).Text(core.Names{Retry: "own", Dead: "q"})
}

// bench is a lane with its endpoint "in", which is also where copies go.
type bench struct {
	t       *testing.T
	p       *plugin
	now     *life
	gen     uint64
	lane    *Lane
	box     *Outbox
	waiting *Waiting
	logs    *logs
	caps    []core.Capabilities

	mu       sync.Mutex
	ran      int // handlers
	finished []Finished

	plans  []observed
	broken []error
	failed []error
}

// setup is what a test changes before the lane is made.
type setup struct {
	o       LaneOptions
	waiting WaitingOptions
	box     OutboxOptions
	caps    []core.Capabilities
	plugin  func(p *plugin)
	blind   bool // no Observe, no Finished
}

// newBench makes a lane of the given kind with one generation attached and the
// credit granted. It must be called in a synctest bubble, or end by itself.
func newBench(t *testing.T, caps core.Capabilities, handle func(*Delivery) Said, change ...func(*setup)) *bench {
	t.Helper()
	b := &bench{t: t, logs: &logs{}}
	log := slog.New(slog.NewJSONHandler(b.logs, &slog.HandlerOptions{Level: slog.LevelInfo}))
	s := setup{caps: []core.Capabilities{caps}}
	s.o = LaneOptions{
		Endpoint: "in", Subscription: "jobs", Logger: log,
		Handle:  func(_ context.Context, d *Delivery) Said { return handle(d) },
		RetryTo: open("own", stored),
		Failed: func(err error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.failed = append(b.failed, err)
		},
		Broken: func(_ uint64, cause error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.broken = append(b.broken, cause)
		},
	}
	s.waiting.Logger = log
	s.box = OutboxOptions{Endpoint: "in", Logger: log}
	for _, f := range change {
		f(&s)
	}
	b.caps = s.caps
	b.p = newPlugin()
	if s.plugin != nil {
		s.plugin(b.p)
	}
	b.waiting = NewWaiting(s.waiting)
	b.box = NewOutbox(s.box)
	s.o.Waiting = b.waiting
	if s.o.Outboxes == nil {
		s.o.Outboxes = func(name string) *Outbox {
			if name == "in" {
				return b.box
			}
			return nil
		}
	}
	if !s.blind {
		s.o.Observe = func(c *core.Case, p *core.Plan, trace []Traced) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.plans = append(b.plans, observed{*c, *p, trace})
		}
	}
	if !s.blind {
		b.tally(&s.o)
	}
	b.lane = NewLane(s.o)
	b.attach(b.p)
	b.lane.Grant()
	t.Cleanup(b.close)
	return b
}

// attach attaches a generation that p serves.
func (b *bench) attach(p *plugin) {
	b.p = p
	p.caps = b.caps
	b.gen++
	l := link.Local(p)
	b.now = &life{p: p, link: l}
	ctx, cancel := context.WithCancel(context.Background())
	sub, err := l.Subscribe(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	pctx, pcancel := context.WithCancel(context.Background())
	pub, err := l.Publish(pctx)
	if err != nil {
		b.t.Fatal(err)
	}
	b.box.Attach(pub, b.gen, pcancel)
	b.lane.Attach(Attachment{Stream: coded{sub}, Cancel: cancel, Profiles: b.caps, Plugin: "fake", Number: b.gen})
}

// coded is a stream whose deliveries go over the wire: they are decoded into a
// slab, which builds with the race detector overwrite when it is released.
type coded struct{ link.SubscribeStream }

func (s coded) Recv(r *frame.SubscribeResponse) error {
	if err := s.SubscribeStream.Recv(r); err != nil || r.Deliveries == nil {
		return err
	}
	var e frame.SubscribeResponseEncoder
	if f := e.Reset(r); f != nil {
		return f
	}
	if !e.Next() {
		return errors.New("nothing to encode")
	}
	slab := frame.Pool{}.Get(e.Size())
	*slab = e.Append((*slab)[:0])
	r.Deliveries.Release()
	*r = frame.SubscribeResponse{}
	return frame.DecodeSubscribeResponse(slab, r)
}

// crash ends the generation as the death of its process does.
func (b *bench) crash() {
	b.now.end()
	b.lane.Detach(&link.LostError{})
	b.box.Detach(&link.LostError{})
}

func (b *bench) close() {
	if err := b.lane.Close(context.Background()); err != nil {
		b.t.Error(err)
	}
	b.box.Close()
	b.waiting.Close()
	b.now.end()
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	for _, text := range b.p.breaches {
		b.t.Error(text)
	}
	c := b.lane.Counters()
	if c.InWork != 0 {
		b.t.Errorf("%d deliveries are in work after the end: %+v", c.InWork, c)
	}
	if b.lane.o.Finished != nil {
		b.checkTally(c)
	}
}

// stop is the host's stop of one lane.
func (b *bench) stop(ctx context.Context) (Left, []WaitingCopies, int) {
	b.lane.StopIntake()
	left := b.lane.Drain(ctx)
	lost := b.waiting.Drain(ctx)
	return left, lost, b.box.Drain(ctx)
}

// observed returns the plans so far.
func (b *bench) observed() []observed {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]observed(nil), b.plans...)
}

// message is a delivery with a payload and pairs of headers.
func message(payload string, headers ...string) frame.Delivery {
	d := frame.Delivery{Message: core.Message{Name: "own", Payload: []byte(payload)}}
	for i := 0; i+1 < len(headers); i += 2 {
		d.Message.Headers = append(d.Message.Headers, core.Header{Name: headers[i], Value: []byte(headers[i+1])})
	}
	return d
}

func says(o core.Outcome) func(*Delivery) Said {
	return func(*Delivery) Said { return Said{Outcome: o} }
}

func retry() core.Outcome { return core.Outcome{Kind: core.OutcomeRetry} }

func later(d time.Duration) core.Outcome {
	return core.Outcome{Kind: core.OutcomeRetryAfter, After: d}
}

var acks = says(core.Outcome{Kind: core.OutcomeAck})

// logs keeps what is logged.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// lines returns the records with the given code, "" = all.
func (l *logs) lines(code string) []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []map[string]any
	for _, line := range bytes.Split(l.buf.Bytes(), []byte("\n")) {
		var r map[string]any
		if json.Unmarshal(line, &r) == nil && (code == "" || r["code"] == code) {
			out = append(out, r)
		}
	}
	return out
}
