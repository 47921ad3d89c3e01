// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/rows"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// storm is one lane under random failures.
type storm struct {
	kind     string
	policy   core.Policy
	journal  bool
	process  bool
	blind    bool
	failures int // of 10: how often something fails
	crashes  int
	room     int
	limit    time.Duration
	seed     uint64
	workers  int
	keys     bool
	batch    int // 0 = none
	snoozes  bool
	circuit  bool
	pace     bool
	unique   int
	sends    int // publishes of a handler that acks
}

// Whatever fails, every delivery ends in exactly one way: it is settled,
// released, requeued or kept once, or it was void.
func TestEveryDeliveryEndsOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := storm{
			kind: rapid.SampledFrom([]string{"A", "B", "C", "D", "K", "M", "T", "U"}).Draw(rt, "kind"),
			policy: core.Policy{
				MaxAttempts: rapid.SampledFrom([]uint32{0, 1, 3}).Draw(rt, "cap"),
				DeadLetter:  rapid.Bool().Draw(rt, "dead letter"),
			},
			journal:  rapid.Bool().Draw(rt, "journal"),
			process:  rapid.Bool().Draw(rt, "process"),
			blind:    rapid.Bool().Draw(rt, "blind"),
			failures: rapid.IntRange(0, 9).Draw(rt, "failures"),
			crashes:  rapid.IntRange(0, 3).Draw(rt, "crashes"),
			room:     rapid.IntRange(1, 20).Draw(rt, "room"),
			limit:    rapid.SampledFrom([]time.Duration{0, time.Second, time.Hour}).Draw(rt, "limit"),
			workers:  rapid.SampledFrom([]int{0, 1, 3, 16}).Draw(rt, "workers"),
			keys:     rapid.Bool().Draw(rt, "keys"),
			batch:    rapid.SampledFrom([]int{0, 0, 1, 5, 2000}).Draw(rt, "batch"),
			sends:    rapid.IntRange(0, 3).Draw(rt, "sends"),
			snoozes:  rapid.Bool().Draw(rt, "snoozes"),
			circuit:  rapid.Bool().Draw(rt, "circuit"),
			pace:     rapid.Bool().Draw(rt, "pace"),
			seed:     rapid.Uint64().Draw(rt, "seed"),
		}
		var problem string
		synctest.Test(t, func(t *testing.T) { problem = s.run(t) })
		if problem != "" {
			rt.Fatalf("%s", problem)
		}
	})
}

// run is one storm; it returns what went wrong.
func (s storm) run(t *testing.T) string {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%+v", s)
		}
	})
	d, sends := newDice(s.seed), s.sends
	j := &shaky{journal: newJournal(), fails: func() bool { return d.n(10) < s.failures }}
	b := newBench(t, rows.Kinds()[s.kind], nil, func(x *setup) {
		x.o.Handle = func(_ context.Context, d2 *Delivery) Said {
			time.Sleep(time.Duration(d.n(20)) * time.Millisecond)
			if s.snoozes && d.n(6) == 0 {
				return Said{Outcome: later(time.Duration(d.n(3)) * time.Second), Snooze: true}
			}
			return saying(d2, sends)
		}
		x.o.SnoozeLimit, x.o.SnoozeTotal = 20, time.Minute
		if s.circuit {
			x.o.Circuit = &Circuit{Share: 0.7, Of: 6, Pause: 100 * time.Millisecond, Longest: time.Second, Probes: 2}
		}
		if s.pace {
			x.o.Pace = func(time.Time) time.Duration { return max(0, time.Duration(d.n(20)-15)*time.Millisecond) }
		}
		x.o.Policy = s.policy
		x.o.Workers = s.workers
		if s.batch > 0 {
			x.o.Batch = s.batches(d, x.o.Handle)
		}
		if s.keys {
			x.o.Key = func(m *core.Message) (string, error) {
				if d.n(20) == 0 {
					return "", io.ErrNoProgress
				}
				return string(m.Payload[len(m.Payload)-1:]), nil
			}
		}
		if s.policy.DeadLetter {
			x.o.Dead = open("q", stored)
		}
		if s.process {
			x.o.RetryTo.Caps.Retains = core.RetainProcess
		}
		if s.journal {
			x.o.Journal = j
		}
		x.waiting.Messages = s.room
		x.blind = s.blind
		x.plugin = func(p *plugin) { s.shake(p, d) }
	})
	first := b.p
	all := []*plugin{first}
	frames := make(map[*frame.Deliveries]bool)
	for crash := range s.crashes + 1 {
		for range 30 {
			s.deliver(b, d, frames)
			time.Sleep(time.Duration(d.n(100)) * time.Millisecond)
		}
		if crash < s.crashes {
			// The last verdicts are carried out, and their answers die with it.
			b.p.mu.Lock()
			b.p.mute = true
			b.p.mu.Unlock()
			s.deliver(b, d, frames)
			time.Sleep(time.Duration(d.n(50)) * time.Millisecond)
			synctest.Wait() // what the stream held is read, so that it can be counted
			b.crash()
			time.Sleep(time.Duration(d.n(3000)) * time.Millisecond)
			p := newPlugin()
			s.shake(p, d)
			b.attach(p)
			all = append(all, p)
			synctest.Wait()
		}
	}
	time.Sleep(3 * time.Hour)
	synctest.Wait()
	b.lane.mu.Lock()
	active, held := len(b.lane.active), len(b.lane.free)
	b.lane.mu.Unlock()
	if owed := b.p.unsettled(); owed != active {
		return fmt.Sprintf("%d deliveries are owed a verdict, %d are kept", owed, active)
	}
	c := b.lane.Counters()
	if uint64(active) != c.InWork {
		return fmt.Sprintf("%d are kept, %+v", active, c)
	}
	if held > creditMessages {
		return fmt.Sprintf("%d flights for a window of %d", held, creditMessages)
	}
	ctx := context.Background()
	if s.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.limit)
		defer cancel()
	}
	b.stop(ctx)
	synctest.Wait()
	if c = b.lane.Counters(); c.InWork != 0 {
		return fmt.Sprintf("in work after the stop: %+v", c)
	}
	received := uint64(0)
	for _, p := range all {
		p.mu.Lock()
		received += p.next
		if len(p.breaches) > 0 {
			return fmt.Sprint(p.breaches)
		}
		p.mu.Unlock()
	}
	if c.Received != received {
		return fmt.Sprintf("%d delivered, %+v", received, c)
	}
	if lost := s.lost(all, j.journal); uint64(lost) > c.Lost {
		return fmt.Sprintf("%d messages are nowhere, %+v", lost, c)
	}
	if early := s.early(all); early > 0 {
		return fmt.Sprintf("%d deliveries were acked before their publishes had left", early)
	}
	for _, o := range b.observed() {
		checkPrinted(t, o)
	}
	b.mu.Lock()
	broken := b.broken
	b.mu.Unlock()
	for _, err := range broken {
		var lost *link.LostError
		if !errors.As(err, &lost) { // a crash
			return fmt.Sprintf("broken: %v", err)
		}
	}
	if s.sends > 0 {
		return "" // a frame that a lost publish may still read is left to the garbage collector
	}
	return leaks(frames)
}

// batches handles deliveries together, and refuses to open some; now and then it
// ends its goroutine.
func (s storm) batches(d *dice, handle Handler) *Batch {
	return &Batch{
		Max: s.batch, Wait: time.Duration(d.n(100)) * time.Millisecond,
		Open: func(ctx context.Context, d2 *Delivery) (Said, bool) {
			if d.n(10) == 0 {
				return handle(ctx, d2), false
			}
			return Said{}, true
		},
		Handle: func(ctx context.Context, ds []*Delivery, said []Said) int {
			for i := range ds {
				said[i] = handle(ctx, ds[i])
			}
			if d.n(20) == 0 {
				runtime.Goexit()
			}
			return len(ds)
		},
		Exited: func(ctx context.Context, ds []*Delivery, said []Said) {
			for i := range ds {
				said[i] = handle(ctx, ds[i])
			}
		},
	}
}

// outcomeOf is what the handler says of a message, by its payload.
func outcomeOf(payload []byte) core.Outcome {
	outcomes := []core.Outcome{
		{Kind: core.OutcomeAck}, retry(), later(time.Second), later(time.Hour), {Kind: core.OutcomeDrop},
		{Kind: core.OutcomeDeadLetter}, {Kind: core.OutcomeLeave}, later(0),
	}
	var n int
	_, _ = fmt.Sscan(string(payload), &n)
	return outcomes[n%len(outcomes)]
}

// saying is what the handler says. What it publishes borrows from the delivery.
func saying(d *Delivery, sends int) Said {
	said := Said{Outcome: outcomeOf(d.Message.Payload)}
	if said.Outcome.Kind == core.OutcomeAck {
		for i := range sends {
			said.Publishes = append(said.Publishes, Publish{
				To: core.Destination{Endpoint: "in", Name: fmt.Sprint("next", i)}, Message: d.Message,
				WithCarry: true,
			})
		}
	}
	return said
}

// early counts deliveries that were acked before all that their handler publishes
// had left, where neither a copy nor a dead letter stands for them.
func (s storm) early(all []*plugin) (early int) {
	if s.policy.MaxAttempts > 0 && !s.policy.DeadLetter || rows.Kinds()[s.kind].Reject == core.RejectNone {
		return 0 // the last retry is an ack then
	}
	left := make(map[string]int)
	for _, p := range all {
		for _, o := range p.outgoing() {
			key := string(o.Payload)
			if !strings.HasPrefix(o.Name, "next") {
				left[key] += s.sends // a copy
			} else if seen := o.Name + key; left[seen] == 0 {
				left[seen]++
				left[key]++
			}
		}
	}
	for _, p := range all {
		for id, v := range p.settled {
			payload := p.items[id].Message.Payload
			if v.Kind == core.VerdictAck && outcomeOf(payload).Kind == core.OutcomeAck && left[string(payload)] < s.sends {
				early++
			}
		}
	}
	return early
}

// lost counts messages that the source was told to forget although the outcome
// wanted more of them, and that are nowhere else.
func (s storm) lost(all []*plugin, j *journal) (lost int) {
	elsewhere := make(map[string]bool)
	for _, p := range all {
		for _, o := range p.outgoing() {
			elsewhere[string(o.Payload)] = true
			var n int
			if _, err := fmt.Sscan(string(o.Payload), &n); err != nil || o.Headers.Value("own") != string(o.Payload) {
				lost += 1 << 20 // not what was delivered
			}
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, kept := range []map[string]Copy{j.rows, j.parked} {
		for _, c := range kept {
			elsewhere[string(c.Message.Payload)] = true
		}
	}
	for _, p := range all {
		for id, v := range p.settled {
			item := p.items[id]
			if v.Kind == core.VerdictAck && s.wantsMore(&item) && !elsewhere[string(item.Message.Payload)] {
				lost++
			}
		}
	}
	return lost
}

// wantsMore reports whether the outcome of a delivery leads to a copy or a dead
// letter.
func (s storm) wantsMore(item *frame.Delivery) bool {
	number := uint64(item.Attempt)
	if rows.Kinds()[s.kind].Counts == core.CountNone {
		copies, _ := item.Message.Headers.Count()
		number = copies + 1
	}
	spent := s.policy.MaxAttempts > 0 && number >= uint64(s.policy.MaxAttempts)
	switch outcomeOf(item.Message.Payload).Kind {
	case core.OutcomeDeadLetter:
		return s.policy.DeadLetter
	case core.OutcomeRetryAfter:
		return !spent || s.policy.DeadLetter
	default:
		return false
	}
}

// deliver sends a frame that the window has room for.
func (s *storm) deliver(b *bench, d *dice, frames map[*frame.Deliveries]bool) {
	p := b.p
	p.mu.Lock()
	defer p.mu.Unlock()
	var items []frame.Delivery
	for range d.n(8) {
		if uint64(len(p.owed)+len(items)) >= p.credit.Messages {
			break
		}
		s.unique++
		m := message(fmt.Sprint(s.unique*8 + d.n(8)))
		m.Message.Headers = core.Headers{{Name: "own", Value: m.Message.Payload}}
		m.Attempt = uint32(d.n(4)) + 1
		if d.n(2) == 0 {
			m.Identity = []byte{byte(d.n(5))}
		}
		if d.n(3) == 0 {
			m.Message.Headers = append(m.Message.Headers, core.Header{Name: core.CountHeader, Value: []byte{'0' + byte(d.n(3))}})
		}
		if d.n(5) == 0 {
			m.Message.Headers = append(m.Message.Headers, core.Header{Name: core.JournalHeader, Value: []byte("row")})
		}
		items = append(items, m)
	}
	if len(items) > 0 {
		frames[p.push(items...)] = true
	}
	if d.n(10) < s.failures {
		v := &transportpb.Void{First: uint64(d.n(int(p.next) + 1)), Count: uint64(d.n(4)) + 1, Returns: d.n(2) == 0}
		for id := range p.owed {
			if id >= v.First && id < v.First+v.Count {
				delete(p.owed, id)
			}
		}
		p.down <- frame.SubscribeResponse{Void: v}
	}
}
