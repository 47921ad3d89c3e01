// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// batches keeps what a batch handler was called with.
type batches struct {
	mu    sync.Mutex
	calls []string // payloads, with the time since the start
	start time.Time
}

func (c *batches) add(ds []*Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var texts []string
	for _, d := range ds {
		texts = append(texts, string(d.Message.Payload))
	}
	c.calls = append(c.calls, fmt.Sprintf("%v %s", time.Since(c.start), strings.Join(texts, " ")))
}

func (c *batches) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// payloadSays is what a test's handler says of a delivery: its payload names it.
func payloadSays(d *Delivery) Said {
	switch string(d.Message.Payload) {
	case "retry":
		return Said{Outcome: retry()}
	case "later":
		return Said{Outcome: later(time.Second)}
	case "drop":
		return Said{Outcome: core.Outcome{Kind: core.OutcomeDrop}}
	case "never":
		return Said{Outcome: retry(), Spent: true}
	default:
		return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
	}
}

// inBatches makes a bench's lane handle batches of at most most. Payload "bad" is
// undecodable.
func inBatches(c *batches, most int, wait time.Duration) func(*setup) {
	return func(s *setup) {
		c.start = time.Now()
		s.o.Handle = nil
		s.o.Batch = &Batch{
			Max: most, Wait: wait,
			Open: func(_ context.Context, d *Delivery) (Said, bool) {
				if string(d.Message.Payload) == "bad" {
					return Said{
						Outcome: core.Outcome{Kind: core.OutcomeDrop, Cause: core.CauseUndecodable}, Err: errors.New("bad"),
					}, false
				}
				d.Value = string(d.Message.Payload)
				return Said{}, true
			},
			Handle: func(_ context.Context, ds []*Delivery, said []Said) int {
				c.add(ds)
				for i, d := range ds {
					if d.Value != string(d.Message.Payload) {
						panic("another delivery's value")
					}
					said[i] = payloadSays(d)
				}
				return len(ds)
			},
		}
	}
}

func deliverAll(p *plugin, payloads ...string) {
	var items []frame.Delivery
	for _, x := range payloads {
		items = append(items, message(x))
	}
	p.deliver(items...)
}

func TestBatchRunsAtMaxAndAtWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &batches{}
		b := newBench(t, kindA, nil, inBatches(c, 3, time.Second))
		synctest.Wait()
		deliverAll(b.p, "1", "2", "3", "4")
		time.Sleep(900 * time.Millisecond)
		deliverAll(b.p, "5")
		time.Sleep(time.Minute)
		deliverAll(b.p, "6")
		time.Sleep(time.Minute)
		want := []string{"0s 1 2 3", "1s 4 5", "1m1.9s 6"}
		if diff := cmp.Diff(want, c.all()); diff != "" {
			t.Error(diff)
		}
		if n := b.lane.Counters(); n.Acked != 6 || n.InWork != 0 {
			t.Errorf("counters %+v", n)
		}
	})
}

// A batch that cannot become full does not wait.
func TestBatchRunsWhenNothingMoreCanCome(t *testing.T) {
	for name, c := range map[string]struct {
		window frame.Credit
		then   func(p *plugin)
	}{
		"messages used up": {frame.Credit{Messages: 2, Bytes: 1 << 20}, func(*plugin) {}},
		"bytes used up":    {frame.Credit{Messages: 100, Bytes: 2}, func(*plugin) {}},
		"ended": {frame.Credit{}, func(p *plugin) {
			p.say(frame.SubscribeResponse{Ended: ended()})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := &batches{}
				b := newBench(t, kindA, nil, inBatches(calls, 10, time.Hour), func(s *setup) { s.o.Window = c.window })
				synctest.Wait()
				deliverAll(b.p, "1", "2")
				c.then(b.p)
				synctest.Wait()
				if diff := cmp.Diff([]string{"0s 1 2"}, calls.all()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestWindowOfBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, nil, inBatches(&batches{}, 200, time.Second), func(s *setup) { s.o.Workers = 4 })
		synctest.Wait()
		if got := creditOf(b.p).Messages; got != 1600 {
			t.Errorf("window %d, want twice what all workers can hold", got)
		}
	})
}

// S-GEN-53 to 59: what each element comes to, and what is settled before the
// handler runs.
func TestBatchOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*setup)
		messages []string
		want     []string // plans, in the order of their ends
		calls    []string
		line     string
		lines    int
	}{
		"S-GEN-53": {
			func(s *setup) { s.o.Policy.MaxAttempts = 2 }, []string{"ack", "retry", "drop"},
			[]string{"ACK", "PUBLISH(own,1); ACK", "REJECT"}, []string{"0s ack retry drop"}, "L-LEN", 0,
		},
		"S-GEN-54": {
			func(s *setup) { // the host makes a retry of what is missing
				returning(2)(s)
				s.o.NoFloor = true // the source gives no identity
			}, []string{"ack", "drop", "retry"},
			[]string{"ACK", "REJECT", "REQUEUE"}, nil, "L-LEN", 1,
		},
		"S-GEN-55": {
			returning(3), []string{"ack", "ack"}, []string{"ACK", "ACK"}, nil, "L-LEN", 1,
		},
		"no list": {
			returning(-1), []string{"ack", "ack"}, []string{"ACK", "ACK"}, nil, "L-LEN", 0,
		},
		"S-GEN-56": {
			func(*setup) {}, []string{"1", "bad", "3", "4"},
			[]string{"NORUN; WARN(L-DEC); REJECT", "ACK", "ACK", "ACK"}, []string{"0s 1 3 4"}, "L-DEC", 1,
		},
		"S-GEN-57": {
			func(*setup) {}, []string{"bad", "bad"},
			[]string{"NORUN; WARN(L-DEC); REJECT", "NORUN; WARN(L-DEC); REJECT"}, nil, "L-DEC", 2,
		},
		"S-GEN-58": {
			func(s *setup) {
				s.o.Policy.MaxAttempts = 3
				s.o.Batch.Handle = func(_ context.Context, ds []*Delivery, said []Said) int {
					for i := range said {
						said[i] = Said{Outcome: core.Outcome{Kind: core.OutcomeRetry, Cause: core.CausePanic}, Stack: "here", Thrown: "no"}
					}
					return len(ds)
				}
			}, []string{"1", "2", "3"},
			slices.Repeat([]string{"ERROR(L-PAN); PUBLISH(own,1); ACK"}, 3), nil, "L-PAN", 1,
		},
		"S-GEN-59": {
			func(*setup) {}, []string{"later", "later", "later"},
			slices.Repeat([]string{"ACK; PUBLISH+1s(own,1)"}, 3), nil, "L-DELAY", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := &batches{}
				b := newBench(t, kindA, nil, inBatches(calls, 3, time.Second), c.change)
				synctest.Wait()
				deliverAll(b.p, c.messages...)
				time.Sleep(time.Hour)
				synctest.Wait()
				got := b.texts()
				slices.Sort(got)
				slices.Sort(c.want)
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(c.calls, calls.all()); c.calls != nil && diff != "" {
					t.Error(diff)
				}
				if n := len(b.logs.lines(c.line)); n != c.lines {
					t.Errorf("%d lines %s, want %d", n, c.line, c.lines)
				}
			})
		})
	}
}

// returning makes the handler claim another number of outcomes.
func returning(n int) func(*setup) {
	return func(s *setup) {
		handle := s.o.Batch.Handle
		s.o.Batch.Handle = func(ctx context.Context, ds []*Delivery, said []Said) int {
			handle(ctx, ds, said)
			return n
		}
	}
}

// Over-cap deliveries of a counting source are no part of a batch (S-GEN-34).
func TestBatchWithoutOverCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &batches{}
		b := newBench(t, kindC, nil, inBatches(calls, 2, time.Second), func(s *setup) { s.o.Policy.MaxAttempts = 3 })
		synctest.Wait()
		over := message("over")
		over.Attempt = 4
		b.p.deliver(message("1"), over, message("2"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"0s 1 2"}, calls.all()); diff != "" {
			t.Error(diff)
		}
		if c := b.lane.Counters(); c.Acked != 2 || c.Dropped != 1 {
			t.Errorf("counters %+v", c)
		}
	})
}

// Of several workers one gathers, so that what trickles in comes to one batch;
// when it runs the next one gathers.
func TestOneBatchGathersAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &batches{}
		b := newBench(t, kindA, nil, inBatches(calls, 4, time.Second), func(s *setup) {
			s.o.Workers = 3
			handle := s.o.Batch.Handle
			s.o.Batch.Handle = func(ctx context.Context, ds []*Delivery, said []Said) int {
				time.Sleep(10 * time.Second)
				return handle(ctx, ds, said)
			}
		})
		synctest.Wait()
		for i := range 10 {
			deliverAll(b.p, fmt.Sprint(i))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		want := []string{"10.03s 0 1 2 3", "10.07s 4 5 6 7", "11.08s 8 9"}
		if diff := cmp.Diff(want, calls.all()); diff != "" {
			t.Error(diff)
		}
	})
}

// A batch may have several deliveries of a key, in order, and nobody else has
// one meanwhile.
func TestBatchesByKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newTurns()
		calls := &batches{}
		b := newBench(t, kindA, nil, inBatches(calls, 4, 10*time.Millisecond), func(s *setup) {
			s.o.Workers, s.o.Key = 3, byHeader
			s.o.Batch.Handle = func(_ context.Context, ds []*Delivery, said []Said) int {
				end := at.begin(ds...)
				calls.add(ds)
				time.Sleep(time.Second)
				end()
				for i := range said {
					said[i] = Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
				}
				return len(ds)
			}
		})
		synctest.Wait()
		want := make(map[string][]string)
		for i := range 120 {
			key := []string{"hot", "a", "hot", "hot", "b", "c"}[i%6]
			text := fmt.Sprintf("%03d", i)
			b.p.deliver(message(text, "key", key))
			want[key] = append(want[key], text)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if diff := cmp.Diff(want, at.order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		if len(at.wrong) > 0 {
			t.Error(at.wrong)
		}
		if n := len(calls.all()); n > 60 {
			t.Errorf("%d calls for 120 deliveries, want the hot key's to go together", n)
		}
		b.lane.mu.Lock()
		defer b.lane.mu.Unlock()
		if n := len(b.lane.keys.byName); n != 0 {
			t.Errorf("%d keys are kept", n)
		}
	})
}
