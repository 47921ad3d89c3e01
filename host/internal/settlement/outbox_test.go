// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
)

// post is an outbox with a scripted plugin.
type post struct {
	t   *testing.T
	box *Outbox
	p   *plugin
	now *life
	gen uint64

	mu     sync.Mutex
	broken []error
}

func newPost(t *testing.T, o OutboxOptions, receipt func(*frame.Outgoing, int) (frame.Receipt, bool)) *post {
	b := &post{t: t}
	o.Endpoint, o.Logger = "out", slog.New(slog.DiscardHandler)
	o.Broken = func(_ uint64, cause error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.broken = append(b.broken, cause)
	}
	b.box = NewOutbox(o)
	b.attach(receipt)
	t.Cleanup(func() {
		b.box.Close()
		b.now.end()
	})
	return b
}

func (b *post) attach(receipt func(*frame.Outgoing, int) (frame.Receipt, bool)) {
	b.p = newPlugin()
	b.p.receipt = receipt
	b.gen++
	l := link.Local(b.p)
	b.now = &life{p: b.p, link: l}
	ctx, cancel := context.WithCancel(context.Background())
	s, err := l.Publish(ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	b.box.Attach(s, b.gen, cancel)
}

// crash ends the generation.
func (b *post) crash() {
	b.now.end()
	b.box.Detach(&link.LostError{})
}

// collector keeps the receipts of copies, by token, and sees that there is one
// for each.
type collector struct {
	mu       sync.Mutex
	receipts map[uint64]frame.Receipt
	twice    []uint64
}

func (c *collector) receive(token uint64, r frame.Receipt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.receipts == nil {
		c.receipts = make(map[uint64]frame.Receipt)
	}
	if _, ok := c.receipts[token]; ok {
		c.twice = append(c.twice, token)
	}
	c.receipts[token] = r
}

func (c *collector) statuses() map[uint64]frame.ReceiptStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[uint64]frame.ReceiptStatus)
	for t, r := range c.receipts {
		out[t] = r.Status
	}
	return out
}

func outgoing(payload string) frame.Outgoing {
	return frame.Outgoing{Message: core.Message{Name: "q", Payload: []byte(payload)}}
}

// none withholds receipts.
func none(*frame.Outgoing, int) (frame.Receipt, bool) { return frame.Receipt{}, false }

func TestPublish(t *testing.T) {
	refused := &core.Fault{Code: core.FaultDenied, Message: "no"}
	tests := map[string]struct {
		receipt func(*frame.Outgoing, int) (frame.Receipt, bool)
		want    frame.ReceiptStatus
	}{
		"confirmed": {nil, frame.ReceiptConfirmed},
		"refused": {func(*frame.Outgoing, int) (frame.Receipt, bool) {
			return frame.Receipt{Status: frame.ReceiptRefused, Fault: refused}, true
		}, frame.ReceiptRefused},
		"unknown": {func(*frame.Outgoing, int) (frame.Receipt, bool) {
			return frame.Receipt{Status: frame.ReceiptUnknown}, true
		}, frame.ReceiptUnknown},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newPost(t, OutboxOptions{}, tt.receipt)
				got, err := b.box.Publish(t.Context(), outgoing("x"))
				if err != nil || got.Status != tt.want {
					t.Errorf("receipt %+v, %v", got, err)
				}
				if n := b.box.Missing(); n != 0 {
					t.Errorf("%d missing", n)
				}
			})
		})
	}
}

func TestPublishWhileDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPost(t, OutboxOptions{}, nil)
		b.crash()
		r, err := b.box.Publish(t.Context(), outgoing("x"))
		if !errors.Is(err, ErrDown) || r.Status != frame.ReceiptRefused {
			t.Errorf("receipt %+v, %v; want ErrDown at once", r, err)
		}
		// A copy waits for the next generation.
		var c collector
		b.box.hand(&publish{out: outgoing("copy"), copy: true, to: &c, token: 1})
		synctest.Wait()
		if got := c.statuses(); len(got) != 0 {
			t.Errorf("receipts %v while down", got)
		}
		b.attach(nil)
		synctest.Wait()
		if diff := cmp.Diff(map[uint64]frame.ReceiptStatus{1: frame.ReceiptConfirmed}, c.statuses()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestPublishTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPost(t, OutboxOptions{}, nil)
		o := frame.Outgoing{Message: core.Message{Name: "q", Payload: make([]byte, frame.MaxPayload+1)}}
		r, err := b.box.Publish(t.Context(), o)
		if err != nil || r.Status != frame.ReceiptRefused || r.Fault.Code != core.FaultTooLarge || r.Fault.Transient {
			t.Errorf("receipt %+v, %v", r, err)
		}
		if got := b.p.outgoing(); len(got) != 0 {
			t.Error("it was sent")
		}
	})
}

// The window bounds missing receipts; a quarter of it is for copies.
func TestPublishWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPost(t, OutboxOptions{Messages: 8}, none)
		errs := make(chan error, 20)
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 20 {
			go func() {
				_, err := b.box.Publish(ctx, outgoing(fmt.Sprint(i)))
				errs <- err
			}()
		}
		synctest.Wait()
		if got := len(b.p.outgoing()); got != 6 {
			t.Errorf("%d of the application's are out, want three quarters of 8", got)
		}
		var c collector
		for i := range uint64(5) {
			b.box.hand(&publish{out: outgoing("copy"), copy: true, to: &c, token: i})
		}
		synctest.Wait()
		if got := len(b.p.outgoing()); got != 8 {
			t.Errorf("%d are out, want the window of 8", got)
		}
		cancel()
		for range 20 {
			if err := <-errs; !errors.Is(err, context.Canceled) {
				t.Errorf("publish ended with %v", err)
			}
		}
		// The six that were sent still owe a receipt.
		if got := b.box.Missing(); got != 6+5 {
			t.Errorf("%d missing, want 11", got)
		}
		for id := range uint64(8) {
			b.p.receipts <- frame.Receipt{ID: id + 1, Status: frame.ReceiptConfirmed}
		}
		synctest.Wait()
		if got := len(b.p.outgoing()); got != 11 {
			t.Errorf("%d are out, want all 11", got)
		}
	})
}

func TestPublishWindowOfBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPost(t, OutboxOptions{Bytes: 1000}, none)
		var c collector
		for i := range uint64(10) {
			o := frame.Outgoing{Message: core.Message{Name: "q", Payload: make([]byte, 300)}}
			b.box.hand(&publish{out: o, copy: true, to: &c, token: i})
		}
		synctest.Wait()
		if got := len(b.p.outgoing()); got != 4 { // overdrawn by one at most
			t.Errorf("%d are out, want 4", got)
		}
	})
}

// When the stream breaks every missing receipt is unknown, and what was not
// sent is refused; copies that were not sent go with the next generation.
func TestPublishStreamBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPost(t, OutboxOptions{Messages: 4}, none)
		got := make(chan frame.Receipt, 10)
		for i := range 5 {
			go func() {
				r, _ := b.box.Publish(t.Context(), outgoing(fmt.Sprint(i)))
				got <- r
			}()
		}
		synctest.Wait() // three are out
		var c collector
		for i := range uint64(3) {
			b.box.hand(&publish{out: outgoing("copy"), copy: true, to: &c, token: i})
		}
		synctest.Wait() // one copy is out
		b.crash()
		count := map[frame.ReceiptStatus]int{}
		for range 5 {
			count[(<-got).Status]++
		}
		want := map[frame.ReceiptStatus]int{frame.ReceiptUnknown: 3, frame.ReceiptRefused: 2}
		if diff := cmp.Diff(want, count); diff != "" {
			t.Error(diff)
		}
		b.attach(nil)
		synctest.Wait()
		if diff := cmp.Diff(map[uint64]frame.ReceiptStatus{
			0: frame.ReceiptUnknown, 1: frame.ReceiptConfirmed, 2: frame.ReceiptConfirmed,
		}, c.statuses()); diff != "" {
			t.Error(diff)
		}
		if len(c.twice) > 0 {
			t.Errorf("two receipts for %v", c.twice)
		}
		if n := b.box.Missing(); n != 0 {
			t.Errorf("%d missing", n)
		}
	})
}

func TestPublishBreach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPost(t, OutboxOptions{}, nil)
		b.p.receipts <- frame.Receipt{ID: 77, Status: frame.ReceiptConfirmed}
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		var f *core.Fault
		if len(b.broken) != 1 || !errors.As(b.broken[0], &f) {
			t.Errorf("broken %v, want a fault that names the receipt", b.broken)
		}
	})
}

func TestPublishTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPost(t, OutboxOptions{Messages: 1}, none)
		var c collector
		first := &publish{out: outgoing("1"), copy: true, to: &c, token: 1}
		second := &publish{out: outgoing("2"), copy: true, to: &c, token: 2}
		b.box.hand(first)
		b.box.hand(second)
		synctest.Wait()
		if b.box.take(first) {
			t.Error("what was sent was taken back")
		}
		if !b.box.take(second) || b.box.take(second) {
			t.Error("what was not sent is taken back once")
		}
		if n := b.box.Missing(); n != 1 {
			t.Errorf("%d missing, want 1", n)
		}
		early := &publish{out: outgoing("3"), copy: true, to: &c, token: 3}
		if !b.box.take(early) {
			t.Error("what was not handed over was not taken back")
		}
		b.box.hand(early)
		b.box.Close()
		want := map[uint64]frame.ReceiptStatus{1: frame.ReceiptUnknown}
		if diff := cmp.Diff(want, c.statuses()); diff != "" {
			t.Error(diff)
		}
		b.box.hand(&publish{out: outgoing("4"), copy: true, to: &c, token: 4})
		c.mu.Lock()
		defer c.mu.Unlock()
		if f := c.receipts[4].Fault; f == nil || f.Code != core.FaultClosed || f.Transient {
			t.Errorf("after Close: %+v, want a refusal for good", f)
		}
	})
}

func TestOutboxDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newPost(t, OutboxOptions{}, none)
		var c collector
		for i := range uint64(3) {
			b.box.hand(&publish{out: outgoing("copy"), copy: true, to: &c, token: i})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if n := b.box.Drain(ctx); n != 3 {
			t.Errorf("drain left %d, want 3", n)
		}
		go func() {
			for id := range uint64(3) {
				time.Sleep(time.Second)
				b.p.receipts <- frame.Receipt{ID: id + 1, Status: frame.ReceiptConfirmed}
			}
		}()
		if n := b.box.Drain(t.Context()); n != 0 {
			t.Errorf("drain left %d, want none", n)
		}
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.broken) > 0 {
			t.Errorf("an orderly end is told as broken: %v", b.broken)
		}
	})
}
