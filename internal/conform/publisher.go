// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// publishWindow is how many messages without a receipt a host has, and
// publishBytes how many bytes of them (protocol, "5. Publishing").
const (
	publishWindow = 1024
	publishBytes  = 8 << 20
)

// Publisher is the publish stream of a process.
type Publisher struct {
	p      *Process
	t      *Trial
	stream link.PublishStream
	cancel context.CancelFunc
	wait   sync.WaitGroup
	send   sync.Mutex

	mu       sync.Mutex
	changed  chan struct{}
	sent     []*Sending // by id - 1
	missing  int        // receipts to come
	bytes    int        // of them
	halved   bool
	canceled bool
	over     bool
	err      error
}

// Sending is one message on its way. Its receipt is valid once it is there.
type Sending struct {
	frame.Outgoing
	Receipt frame.Receipt
	There   bool
	At      time.Time // of the receipt
}

// Publisher returns the process's publish stream, opened at the first call.
func (p *Process) Publisher() *Publisher {
	p.mu.Lock()
	b := p.publisher
	p.mu.Unlock()
	if b != nil {
		return b
	}
	ctx, cancel := context.WithCancel(p.ctx)
	stream, err := p.link.Publish(ctx)
	if err != nil {
		cancel()
		p.t.Fatalf("open Publish: %v", err)
	}
	b = &Publisher{p: p, t: p.t, stream: stream, cancel: cancel, changed: make(chan struct{})}
	p.mu.Lock()
	p.publisher = b
	p.mu.Unlock()
	b.wait.Go(b.receive)
	return b
}

func (b *Publisher) receive() {
	defer b.cancel()
	for {
		rs, err := b.stream.Recv(nil)
		b.mu.Lock()
		for _, r := range rs {
			b.take(r)
		}
		if err != nil {
			b.over, b.err = true, err
			switch {
			case b.canceled || !b.p.unexpected(err) && !errors.Is(err, io.EOF):
			case !errors.Is(err, io.EOF):
				b.t.Errorf("the publish stream broke: %v", err)
			case !b.halved:
				b.t.Errorf("the publish stream ended before the host half-closed it")
			case b.missing > 0:
				b.t.Errorf("the publish stream ended without %d receipts", b.missing)
			}
		}
		close(b.changed)
		b.changed = make(chan struct{})
		b.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// take takes one receipt; the lock is held.
func (b *Publisher) take(r frame.Receipt) {
	if r.ID == 0 || r.ID > uint64(len(b.sent)) {
		b.t.Errorf("a receipt came for message %d, and %d were sent", r.ID, len(b.sent))
		return
	}
	s := b.sent[r.ID-1]
	if s.There {
		b.t.Errorf("a second receipt came for message %d", r.ID)
		return
	}
	s.Receipt, s.There, s.At = r, true, time.Now()
	b.missing--
	b.bytes -= frame.Weight(&s.Message)
}

// Publish sends messages without waiting for their receipts, but for room in a
// host's window. What is ready goes out in one frame, as a host's does.
func (b *Publisher) Publish(out ...frame.Outgoing) []*Sending {
	var all []*Sending
	for len(out) > 0 {
		room := func() bool { return b.missing == 0 || b.missing < publishWindow && b.bytes < publishBytes }
		if !b.until(func() bool { return room() || b.over }) {
			b.t.Fatalf("%d receipts did not come within %v", b.missing, b.t.Subject.Wait)
		}
		n := b.fits(out)
		all = append(all, b.publish(out[:n])...)
		out = out[n:]
	}
	return all
}

// fits is how many messages go out in the next frame: one at least.
func (b *Publisher) fits(out []frame.Outgoing) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, bytes := 0, 0
	for n < min(len(out), frame.MaxItems, publishWindow-b.missing) {
		if bytes += frame.Weight(&out[n].Message); n > 0 && (bytes > frame.MaxBytes || b.bytes+bytes > publishBytes) {
			break
		}
		n++
	}
	return max(n, 1)
}

// publish sends one frame.
func (b *Publisher) publish(out []frame.Outgoing) []*Sending {
	b.send.Lock()
	defer b.send.Unlock()
	f := frame.NewPublishes()
	all := make([]*Sending, len(out))
	b.mu.Lock()
	for i, o := range out {
		o.ID = uint64(len(b.sent)) + 1
		if o.Purpose == 0 {
			o.Purpose = uint8(transportpb.Purpose_PURPOSE_APPLICATION)
		}
		if o.Options == nil {
			o.Options = b.t.Send
		}
		all[i] = &Sending{Outgoing: o}
		b.sent = append(b.sent, all[i])
		b.missing++
		b.bytes += frame.Weight(&o.Message)
		f.Items = append(f.Items, o)
	}
	b.mu.Unlock()
	err := b.t.sends(b.cancel, func() error { return b.stream.Send(f) })
	if err != nil {
		b.t.Fatalf("publish %d messages from message %d on: %v", len(all), all[0].ID, err)
	}
	return all
}

// Send publishes messages and returns them with their receipts.
func (b *Publisher) Send(out ...frame.Outgoing) []*Sending {
	all := b.Publish(out...)
	b.Await(all)
	return all
}

// Await waits for receipts. The case ends where they do not come.
func (b *Publisher) Await(all []*Sending) {
	missing := func() int {
		n := 0
		for _, s := range all {
			if !s.There {
				n++
			}
		}
		return n
	}
	ok := b.until(func() bool { return missing() == 0 || b.over })
	b.mu.Lock()
	n, err := missing(), b.err
	b.mu.Unlock()
	if n > 0 {
		if ok {
			b.t.Fatalf("the publish stream ended without %d of %d receipts: %v", n, len(all), err)
		}
		b.t.Fatalf("%d of %d receipts did not come within %v", n, len(all), b.t.Subject.Wait)
	}
}

// Confirmed publishes messages and ends the case where one is not confirmed.
func (b *Publisher) Confirmed(out ...frame.Outgoing) []*Sending {
	all := b.Publish(out...)
	b.taken(all)
	return all
}

// taken waits for receipts and ends the case where one is not CONFIRMED.
func (b *Publisher) taken(all []*Sending) {
	b.Await(all)
	for _, s := range all {
		if s.Receipt.Status != frame.ReceiptConfirmed {
			b.t.Fatalf("message %d of %d bytes was not confirmed but %s: %v", s.ID, len(s.Message.Payload), receiptWord(s.Receipt.Status), s.Receipt.Fault)
		}
	}
}

// receiptWord is the protocol's word for a status.
func receiptWord(s frame.ReceiptStatus) string {
	return strings.TrimPrefix(transportpb.ReceiptStatus(s).String(), "RECEIPT_STATUS_")
}

// HalfClose says that nothing more is published and waits for the orderly end.
func (b *Publisher) HalfClose() {
	b.mu.Lock()
	b.halved = true
	b.mu.Unlock()
	b.send.Lock()
	err := b.stream.CloseSend()
	b.send.Unlock()
	if err != nil {
		b.t.Errorf("half-close the publish stream: %v", err)
	}
	if !b.until(func() bool { return b.over }) {
		b.t.Fatalf("the publish stream did not end within %v behind the host's half-close", b.t.Subject.Wait)
	}
}

// Cancel breaks the stream as the loss of the host does.
func (b *Publisher) Cancel() {
	b.mu.Lock()
	b.canceled = true
	b.mu.Unlock()
	b.cancel()
	b.wait.Wait()
}

func (b *Publisher) change() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

func (b *Publisher) until(ok func() bool) bool {
	ctx, cancel := b.t.limited()
	defer cancel()
	return eventually(ctx, b.change, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return ok()
	})
}

// Outgoing makes messages to publish of messages.
func Outgoing(ms ...core.Message) []frame.Outgoing {
	out := make([]frame.Outgoing, len(ms))
	for i, m := range ms {
		out[i].Message = m
	}
	return out
}
