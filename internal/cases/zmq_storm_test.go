// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/interop/libzmq"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// storm is a bound queue whose every message fails until its cap, beside the
// endpoint that its dead letters leave by.
type storm struct {
	t        *testing.T
	h        *host.Host
	in, dead *host.Endpoint
	attempts [4]atomic.Int64 // runs by attempt, from 1
	graves   atomic.Int64    // dead letters that another service has read
	done     chan struct{}
	err      error
}

// producers are as many as were seen to stand a service still, see
// [TestStormOfRetries].
const producers = 4

// newStorm returns one whose host is still to be given its handler.
func newStorm(t *testing.T, grave string) *storm {
	t.Helper()
	x := &storm{t: t, done: make(chan struct{})}
	x.h = host.New(append(patient(), host.WithLogger(slog.New(slog.DiscardHandler)))...)
	x.in = x.h.Endpoint("in", host.Plugin{Name: "zmq", Path: zmqPlugin(t)}, bound(settings.PatternQueue, anyPort))
	x.dead = x.h.Endpoint("dead", host.Plugin{Name: "zmq", Path: zmqPlugin(t)}, dialing(settings.PatternQueue, grave))
	return x
}

// fails is the handler.
func (x *storm) fails(_ context.Context, m *host.Message[[]byte]) error {
	x.attempts[min(m.Attempt(), 3)].Add(1)
	return host.Retry(nil)
}

// failsAll is the handler of batches.
func (x *storm) failsAll(ctx context.Context, ms []*host.Message[[]byte]) []error {
	errs := make([]error, len(ms))
	for i, m := range ms {
		errs[i] = x.fails(ctx, m)
	}
	return errs
}

// run runs the host until the end of the test, or of the function it returns.
func (x *storm) run() (end func() error) {
	x.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(x.done)
		x.err = x.h.Run(ctx)
	}()
	end = func() error {
		cancel()
		<-x.done
		return x.err
	}
	x.t.Cleanup(func() {
		cancel()
		x.h.Abort()
		<-x.done
	})
	eventually(x.t, "the host is ready", func() bool {
		select {
		case <-x.done:
			x.t.Fatalf("the host does not start: %v", x.err)
		default:
		}
		return x.h.Ready()
	})
	return end
}

// feed sends n messages from four processes and closes what it returns when all
// are sent.
func (x *storm) feed(n int) (fed chan struct{}) {
	x.t.Helper()
	var all sync.WaitGroup
	for i := range producers {
		push := libzmq.Start(x.t).Open("PUSH", libzmq.Options{Connect: []string{x.in.Addresses()[0]}})
		all.Go(func() {
			key := fmt.Sprintf("partition-key: %d", i)
			for sent := 0; sent < n/producers; sent += 1000 {
				if err := push.TrySend(min(1000, n/producers-sent), patience, "jobs", key, "0123456789abcdef"); err != nil {
					x.t.Errorf("producer %d stands still after %d: %v", i, sent, err)
					return
				}
			}
		})
	}
	fed = make(chan struct{})
	go func() {
		all.Wait()
		close(fed)
	}()
	return fed
}

// moves waits for something, as long as the storm goes on.
func (x *storm) moves(what string, ok func() bool) {
	x.t.Helper()
	last, since := int64(-1), time.Now()
	for !ok() {
		if n := x.attempts[1].Load() + x.attempts[2].Load() + x.attempts[3].Load() + x.graves.Load(); n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) > patience {
			x.t.Fatalf("it stands still: %s; runs by attempt %d, %d, %d, dead letters %d, health %+v", what,
				x.attempts[1].Load(), x.attempts[2].Load(), x.attempts[3].Load(), x.graves.Load(), x.h.Health().Endpoints[0].Subscriptions)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// graveyard is a service of its own that reads dead letters.
func graveyard(t *testing.T, x **storm) string {
	t.Helper()
	s := newService(t)
	in := s.zmq("graves", bound(settings.PatternQueue, anyPort))
	host.Handle(in.Subscription("graves"), func(context.Context, *host.Message[[]byte]) error {
		(*x).graves.Add(1)
		return nil
	})
	s.serve()
	return s.at(in)
}

// All messages of four producers fail until the cap, and all become dead letters
// on another endpoint: nothing stands still, nothing is lost, nothing is doubled.
// A service that published its copies over a socket of its own, and waited for
// room there, stood still after 13,339 of them.
func TestStormOfRetries(t *testing.T) {
	for _, tt := range []struct {
		name  string
		n     int
		batch int
		rules []host.Rule
	}{
		{"a million", 1_000_000, 0, nil},
		{"8 workers", 100_000, 0, []host.Rule{host.Workers(8)}},
		{"64 workers", 100_000, 0, []host.Rule{host.Workers(64)}},
		{"by key", 100_000, 0, []host.Rule{host.Workers(8), host.ByKey()}},
		{"batches", 100_000, 32, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := tt.n
			if raceEnabled || testing.Short() {
				n /= 50 // the million is beyond where one stood still, see above
			}
			var x *storm
			grave := graveyard(t, &x)
			x = newStorm(t, grave)
			rules := append([]host.Rule{host.MaxAttempts(2), host.DeadLetterTo(x.dead.To("graves"))}, tt.rules...)
			sub := x.in.Subscription("jobs", host.Window(64, 0))
			if tt.batch > 0 {
				host.HandleBatch(sub, tt.batch, 10*time.Millisecond, x.failsAll, rules...)
			} else {
				host.Handle(sub, x.fails, rules...)
			}
			end := x.run()
			began := time.Now()
			fed := x.feed(n)
			x.moves("all are fed", func() bool {
				select {
				case <-fed:
					return true
				default:
					return false
				}
			})
			x.moves("all are dead letters", func() bool { return x.graves.Load() >= int64(n) })
			t.Logf("%d messages in %v", n, time.Since(began))
			if err := end(); err != nil {
				t.Errorf("the host ended with %v", err)
			}
			for attempt, want := range []int64{0, int64(n), int64(n), 0} {
				if got := x.attempts[attempt].Load(); got != want {
					t.Errorf("%d runs at attempt %d, want %d", got, attempt, want)
				}
			}
			if got := x.graves.Load(); got != int64(n) {
				t.Errorf("%d dead letters", got)
			}
			c := x.h.Health().Endpoints[0].Subscriptions[0].Counters
			if c.Received != uint64(2*n) || c.Retried != uint64(n) || c.DeadLettered != uint64(n) || c.Lost > 0 || c.InWork > 0 {
				t.Errorf("counters %+v", c)
			}
		})
	}
}
