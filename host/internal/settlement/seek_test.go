// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// beginning and end are the two positions that need no value.
var (
	beginning = transportpb.PositionKind_POSITION_KIND_BEGINNING
	end       = transportpb.PositionKind_POSITION_KIND_END
)

// seen keeps the payloads that handlers were given.
type seen struct {
	mu       sync.Mutex
	payloads []string
}

func (s *seen) add(d *Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.payloads = append(s.payloads, string(d.Message.Payload))
}

func (s *seen) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.payloads)
}

// slow takes a second for each delivery and says what it is given.
func (s *seen) slow(o core.Outcome) func(*Delivery) Said {
	return func(d *Delivery) Said {
		s.add(d)
		time.Sleep(time.Second)
		return Said{Outcome: o}
	}
}

var ack = core.Outcome{Kind: core.OutcomeAck}

// seek calls Seek on a goroutine.
func (b *bench) seek(ctx context.Context, kind transportpb.PositionKind) chan error {
	done := make(chan error, 1)
	go func() {
		_, err := b.lane.Seek(ctx, &transportpb.Seek{Kind: kind})
		done <- err
	}()
	return done
}

// answerSeek sends an answer to a seek.
func (p *plugin) answerSeek(a *transportpb.Sought) { p.say(frame.SubscribeResponse{Sought: a}) }

// What no handler has begun is not begun any more, wherever to and whatever the
// source; what one has begun ends as a void delivery does.
func TestSeekDropsWhatIsQueued(t *testing.T) {
	for name, tt := range map[string]struct {
		caps   core.Capabilities
		kind   transportpb.PositionKind
		said   core.Outcome
		change func(*setup)
		want   []string
		plan   string
	}{
		"to the beginning":               {kindA, beginning, ack, nil, []string{"1", "new"}, "NONE"},
		"to the end":                     {kindA, end, ack, nil, []string{"1", "new"}, "NONE"},
		"retried, it comes again":        {kindA, beginning, retry(), func(s *setup) { s.o.Policy.MaxAttempts = 3 }, []string{"1", "new"}, "NONE"},
		"retried, it may not come again": {kindA, end, retry(), func(s *setup) { s.o.Policy.MaxAttempts = 3 }, []string{"1", "new"}, "PUBLISH(own,1)"},
		"of a source without acks":       {kindU, end, ack, nil, []string{"1", "new"}, "NONE"},
		"of a paused lane":               {kindA, end, ack, func(s *setup) { s.o.Paused = true }, nil, ""},
		"by key":                         {kindA, end, ack, func(s *setup) { s.o.KeyHeader = "k" }, []string{"1", "new"}, "NONE"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got seen
				change := tt.change
				if change == nil {
					change = func(*setup) {}
				}
				b := newBench(t, tt.caps, got.slow(tt.said), change)
				synctest.Wait()
				if tt.want != nil {
					b.p.deliver(message("1", "k", "x"), message("2", "k", "x"), message("3"))
				}
				synctest.Wait()
				if err := <-b.seek(t.Context(), tt.kind); err != nil {
					t.Fatalf("seek: %v", err)
				}
				if tt.want != nil {
					b.p.deliver(message("new"))
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if d := cmp.Diff(tt.want, got.all()); d != "" {
					t.Errorf("handled (-want +got):\n%s", d)
				}
				if texts := b.texts(); tt.plan != "" && texts[0] != tt.plan {
					t.Errorf("the one that ran came to %s, want %s", texts[0], tt.plan)
				}
				c := b.lane.Counters()
				if sum := c.Acked + c.Retried + c.Stale + c.Released; c.InWork != 0 || sum != c.Received {
					t.Errorf("counters do not add up: %+v", c)
				}
			})
		})
	}
}

// While a seek is under way nothing is begun, and a lane that had caught up does
// not say so. A refusal changes nothing.
func TestSeekUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got seen
		b := newBench(t, kindA, got.slow(ack), func(s *setup) { s.plugin = func(p *plugin) { p.sought = func(*plugin, *transportpb.Seek) {} } })
		synctest.Wait()
		b.p.say(frame.SubscribeResponse{CaughtUp: true})
		synctest.Wait()
		done := b.seek(t.Context(), beginning)
		synctest.Wait()
		if s := b.lane.State(); !s.Seeking || !s.Withheld() {
			t.Errorf("state %+v while a seek is under way", s)
		}
		b.p.deliver(message("1"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(got.all()); n != 0 {
			t.Errorf("%d begun while a seek is under way", n)
		}
		b.p.answerSeek(&transportpb.Sought{Fault: convert.FromFault(&core.Fault{Code: core.FaultInvalid, Message: "no such place"})})
		var f *core.Fault
		if err := <-done; !errors.As(err, &f) || f.Code != core.FaultInvalid {
			t.Errorf("refused with %v", err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if d := cmp.Diff([]string{"1"}, got.all()); d != "" {
			t.Errorf("after a refusal (-want +got):\n%s", d)
		}
		b.p.say(frame.SubscribeResponse{CaughtUp: true})
		done = b.seek(t.Context(), beginning)
		synctest.Wait()
		b.p.answerSeek(&transportpb.Sought{Next: 2})
		if err := <-done; err != nil || b.lane.State().CaughtUp {
			t.Errorf("%v, caught up: %t", err, b.lane.State().CaughtUp)
		}
	})
}

// Seeks come one after the other, also behind one whose caller has given up.
func TestSeeksAreOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got seen
		b := newBench(t, kindA, got.slow(ack), func(s *setup) { s.plugin = func(p *plugin) { p.sought = func(*plugin, *transportpb.Seek) {} } })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first := b.seek(ctx, end)
		synctest.Wait()
		b.p.deliver(message("1"), message("2"))
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the first one: %v", err)
		}
		synctest.Wait()
		if d := cmp.Diff([]string{"1"}, got.all()); d != "" {
			t.Errorf("when nobody waits any more (-want +got):\n%s", d)
		}
		second, third := b.seek(t.Context(), beginning), b.seek(t.Context(), beginning)
		synctest.Wait()
		if n := b.p.seekCount(); n != 1 {
			t.Errorf("%d seeks sent, want 1", n)
		}
		b.p.answerSeek(&transportpb.Sought{Next: 3})
		synctest.Wait()
		if n := b.p.seekCount(); n != 2 {
			t.Errorf("%d seeks sent, want 2", n)
		}
		b.p.answerSeek(&transportpb.Sought{Next: 3})
		synctest.Wait()
		b.p.answerSeek(&transportpb.Sought{Next: 3})
		if err := errors.Join(<-second, <-third); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if d := cmp.Diff([]string{"1"}, got.all()); d != "" {
			t.Errorf("handled (-want +got):\n%s", d)
		}
	})
}

// seekCount is how many seeks have come.
func (p *plugin) seekCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seeks
}

// A lane that nothing is read from cannot be moved, and says why; what was sent
// may have been done.
func TestSeekWhereNothingIsRead(t *testing.T) {
	mute := func(s *setup) { s.plugin = func(p *plugin) { p.sought = func(*plugin, *transportpb.Seek) {} } }
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, func(*Delivery) Said { return Said{Outcome: ack} }, mute)
		synctest.Wait()
		type result struct {
			maybe bool
			err   error
		}
		done := make(chan result, 1)
		under := func() {
			go func() {
				maybe, err := b.lane.Seek(t.Context(), &transportpb.Seek{Kind: end})
				done <- result{maybe, err}
			}()
			synctest.Wait()
		}
		under()
		b.crash()
		if r := <-done; !errors.Is(r.err, ErrDown) || !r.maybe {
			t.Errorf("its plugin died: %+v", r)
		}
		if maybe, err := b.lane.Seek(t.Context(), &transportpb.Seek{Kind: end}); !errors.Is(err, ErrDown) || maybe {
			t.Errorf("without a plugin: %t %v", maybe, err)
		}
		p := newPlugin()
		p.sought = func(*plugin, *transportpb.Seek) {}
		b.attach(p)
		under()
		b.lane.StopIntake()
		if r := <-done; !errors.Is(r.err, ErrDown) || !r.maybe {
			t.Errorf("a stop: %+v", r)
		}
		if _, err := b.lane.Seek(t.Context(), &transportpb.Seek{Kind: end}); !errors.Is(err, ErrDown) {
			t.Errorf("after a stop: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, func(*Delivery) Said { return Said{Outcome: ack} }, mute)
		synctest.Wait()
		b.p.say(frame.SubscribeResponse{Ended: &transportpb.Ended{}})
		synctest.Wait()
		if _, err := b.lane.Seek(t.Context(), &transportpb.Seek{Kind: end}); !errors.Is(err, ErrOver) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// A plugin that answers what nobody asked, or with a delivery that there cannot
// be, has broken the protocol.
func TestSoughtThatBreaksTheProtocol(t *testing.T) {
	for name, tt := range map[string]struct {
		ask  bool
		next uint64
		want string
	}{
		"not asked":      {false, 1, "nobody has asked for"},
		"no delivery":    {true, 0, "delivery 0"},
		"too far behind": {true, 5, "delivery 5 behind delivery 1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, kindA, func(*Delivery) Said { return Said{Outcome: ack} }, func(s *setup) {
					s.plugin = func(p *plugin) { p.sought = func(*plugin, *transportpb.Seek) {} }
				})
				synctest.Wait()
				b.p.deliver(message("1"))
				synctest.Wait()
				var done chan error
				if tt.ask {
					done = b.seek(t.Context(), end)
					synctest.Wait()
				}
				b.p.answerSeek(&transportpb.Sought{Next: tt.next})
				synctest.Wait()
				b.mu.Lock()
				broken := slices.Clone(b.broken)
				b.broken = nil
				b.mu.Unlock()
				if len(broken) != 1 || !strings.Contains(broken[0].Error(), tt.want) {
					t.Errorf("broken by %v, want %q", broken, tt.want)
				}
				if tt.ask {
					if err := <-done; !errors.Is(err, ErrDown) {
						t.Errorf("the caller is told %v", err)
					}
				}
			})
		})
	}
}
