// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

func TestPublishAsyncHandsOverInOrder(t *testing.T) {
	x := newExchange(t, settings.Settings{})
	p := host.To[[]byte](x.Host, x.mem.To("out"))
	x.serve(t)
	var want []string
	var ps []*host.Pending
	for i := range 500 {
		text := fmt.Sprint(i)
		want = append(want, text)
		ps = append(ps, async(t, p, text))
	}
	for _, p := range ps {
		if _, err := p.Receipt(x.ctx); err != nil {
			t.Fatal(err)
		}
		if !isDone(p) {
			t.Error("a publish with a receipt is not done")
		}
	}
	if diff := cmp.Diff(want, x.texts("out")); diff != "" {
		t.Error(diff)
	}
}

func TestPublishAsyncWaitsForRoomOnly(t *testing.T) {
	for name, opt := range map[string]host.PublisherOption{
		"messages": host.InFlight(2, 1<<20),
		"bytes":    host.InFlight(100, 6), // of two messages of five bytes the second one exceeds it
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newExchange(t, settings.Settings{})
				p := host.To[[]byte](x.Host, x.mem.To("out"), opt)
				x.serve(t)
				release := x.HoldReceipts("out")
				first, second := async(t, p, "one.."), async(t, p, "two..")
				x.held(t, "out", 2)
				ctx, cancel := context.WithCancel(t.Context())
				full := make(chan error)
				go func() {
					_, err := p.PublishAsync(ctx, []byte("three"))
					full <- err
				}()
				synctest.Wait()
				select {
				case err := <-full:
					t.Fatalf("there was room: %v", err)
				default:
				}
				cancel()
				if e := failure(t, receive(t, full)); e.MaybeSent || !errors.Is(e, context.Canceled) {
					t.Errorf("got %v, want it unsent for its context", e)
				}
				if isDone(first) || isDone(second) {
					t.Error("a publish without a receipt is done")
				}
				short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				var e *host.PublishError
				if _, err := first.Receipt(short); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &e) {
					t.Errorf("got %v, want the wait's own error", err)
				}
				go func() {
					_, err := p.PublishAsync(t.Context(), []byte("three"))
					full <- err
				}()
				release()
				if err := receive(t, full); err != nil {
					t.Error(err)
				}
				for _, p := range []*host.Pending{first, second} {
					if _, err := p.Receipt(x.ctx); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// TestPublishWaitsForRoomInOrder floods a publisher with room for one from many
// goroutines: all get through, those that gave up leave no hole.
func TestPublishWaitsForRoomInOrder(t *testing.T) {
	x := newExchange(t, settings.Settings{})
	p := host.To[[]byte](x.Host, x.mem.To("out"), host.InFlight(1, 1))
	x.serve(t)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			ctx := x.ctx
			if i%3 == 0 {
				short, cancel := context.WithTimeout(ctx, time.Duration(i)*10*time.Microsecond)
				defer cancel()
				ctx = short
			}
			_, err := p.Publish(ctx, []byte("m"))
			if err != nil && i%3 != 0 {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, err := p.Publish(x.ctx, []byte("last")); err != nil {
		t.Error(err)
	}
}

func TestAMessageBeyondTheWindowGoesAlone(t *testing.T) {
	x := newExchange(t, settings.Settings{})
	p := host.To[[]byte](x.Host, x.mem.To("out"), host.InFlight(10, 8))
	x.serve(t)
	big := strings.Repeat("x", 1000)
	for range 3 {
		if _, err := p.Publish(x.ctx, []byte(big)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPublishTimeouts: a deadline that passes while there is no room leaves the
// message unsent, one that passes later does not know.
func TestPublishTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newExchange(t, settings.Settings{})
		p := host.To[[]byte](x.Host, x.mem.To("out"), host.InFlight(1, 1<<20), host.PublishTimeout(3*time.Second))
		x.serve(t)
		release := x.HoldReceipts("out")
		began := time.Now()
		late := func(what string, err error, maybe bool, after time.Duration) {
			t.Helper()
			if e := failure(t, err); e.MaybeSent != maybe || !errors.Is(e, context.DeadlineExceeded) || time.Since(began) != after {
				t.Errorf("%s: got %v after %v, want MaybeSent %v after %v", what, err, time.Since(began), maybe, after)
			}
			began = time.Now()
		}
		_, err := p.Publish(t.Context(), []byte("sent"))
		late("in flight", err, true, 3*time.Second)
		_, err = p.Publish(t.Context(), []byte("full"), host.WithTimeout(time.Second))
		late("no room", err, false, time.Second)
		_, err = p.PublishAsync(t.Context(), []byte("full"))
		late("no room, not waiting", err, false, 3*time.Second)
		release() // and the room is back, although nobody waits for that receipt any more
		synctest.Wait()
		release = x.HoldReceipts("out")
		pending := async(t, p, "pending", host.WithTimeout(2*time.Second))
		_, err = pending.Receipt(t.Context())
		late("pending", err, true, 2*time.Second)
		release()
		synctest.Wait()
		if _, again := pending.Receipt(t.Context()); again != err { //nolint:errorlint // what was told stays told
			t.Errorf("told %v, then %v", err, again)
		}
		if _, err := p.Publish(t.Context(), []byte("after")); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"sent", "pending", "after"}, x.texts("out")); diff != "" {
			t.Error(diff)
		}
		_, err = p.Publish(t.Context(), []byte("never"), host.WithTimeout(0))
		if e := failure(t, err); e.MaybeSent || !strings.Contains(e.Error(), "WithTimeout") {
			t.Errorf("got %v", err)
		}
		x.stop()
		if err := x.result(t); err != nil {
			t.Error(err)
		}
	})
}

// TestPublishIsGivenUpInFlight: the caller's context ends between the hand-over
// and the receipt.
func TestPublishIsGivenUpInFlight(t *testing.T) {
	x := newExchange(t, settings.Settings{})
	p := host.To[[]byte](x.Host, x.mem.To("out"), host.InFlight(3, 1<<20))
	x.serve(t)
	release := x.HoldReceipts("out")
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		told := make(chan error)
		go func() {
			_, err := p.Publish(ctx, []byte("m"))
			told <- err
		}()
		eventually(t, "it is sent", func() bool { return len(x.Published("out")) > 0 })
		cancel()
		if e := failure(t, receive(t, told)); !errors.Is(e, context.Canceled) {
			t.Errorf("got %v", e)
		}
	}
	release()
	for range 10 {
		if _, err := p.Publish(x.ctx, []byte("m")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOrderedReceipts(t *testing.T) {
	x := newExchange(t, settings.Settings{})
	var hold [2]func()
	slow := func(m memory.Message) bool { return string(m.Payload) == "refused" }
	p := host.To[[]byte](x.Host, x.mem.To("out"), host.OrderedReceipts())
	x.serve(t)
	x.FailPublishes("out", memory.PublishFault{Only: slow, Status: memory.PublishRefused})
	hold[0] = x.HoldReceipts("out")
	first := async(t, p, "first")
	x.held(t, "out", 1)
	hold[1] = x.HoldReceipts("out") // of what comes from now on
	second := async(t, p, "second")
	x.held(t, "out", 1)
	refused := async(t, p, "refused")
	last := async(t, p, "last")
	x.held(t, "out", 3)
	hold[1]()
	eventually(t, "all but the first have their receipts", func() bool {
		return x.Health().Endpoints[0].Published.Missing == 1
	})
	for i, q := range []*host.Pending{first, second, refused, last} {
		if isDone(q) {
			t.Errorf("number %d is done before the first", i+1)
		}
	}
	hold[0]()
	if _, err := last.Receipt(x.ctx); err != nil {
		t.Error(err)
	}
	for i, q := range []*host.Pending{first, second, refused} {
		if !isDone(q) {
			t.Errorf("number %d is not done after the last", i+1)
		}
	}
	_, err := refused.Receipt(x.ctx)
	if e := failure(t, err); e.MaybeSent || faultCode(t, err) != core.FaultUnavailable {
		t.Errorf("got %v", e)
	}
}

// TestOrderedReceiptsOfManyGoroutines loses and delays receipts, and gives up
// some publishes, and finds no turn skipped and no room lost.
func TestOrderedReceiptsOfManyGoroutines(t *testing.T) {
	x := newExchange(t, settings.Settings{})
	p := host.To[[]byte](x.Host, x.mem.To("out"), host.OrderedReceipts(), host.InFlight(8, 1<<20), host.PublishTimeout(50*time.Millisecond))
	x.serve(t)
	stop := make(chan struct{})
	var faults sync.WaitGroup
	faults.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				release := x.HoldReceipts("out")
				time.Sleep(3 * time.Millisecond)
				release()
			}
		}
	})
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			var former *host.Pending
			for i := range 50 {
				ctx, cancel := context.WithTimeout(x.ctx, time.Duration(1+i%5)*time.Millisecond)
				if g%2 == 0 {
					_, _ = p.Publish(ctx, []byte("m"))
				} else if pending, err := p.PublishAsync(ctx, []byte("m")); err == nil {
					if former != nil {
						_, _ = pending.Receipt(x.ctx)
						if !isDone(former) {
							t.Error("a later publish has ended before an earlier one")
						}
					}
					former = pending
				}
				cancel()
			}
		})
	}
	all.Wait()
	close(stop)
	faults.Wait()
	for range 20 { // all the room is there again
		if _, err := p.Publish(x.ctx, []byte("m"), host.WithTimeout(patience)); err != nil {
			t.Fatal(err)
		}
	}
}
