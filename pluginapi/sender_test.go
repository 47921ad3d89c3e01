// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
)

// sender is the host's side of the publish stream.
type sender struct {
	tb   testing.TB
	s    link.PublishStream
	next uint64

	mu       sync.Mutex
	receipts map[uint64][]frame.Receipt
	count    int
	err      error
	changed  chan struct{}
}

func (b *bench) publish() *sender {
	b.tb.Helper()
	s, err := b.link.Publish(b.ctx)
	if err != nil {
		b.tb.Fatalf("Publish: %v", err)
	}
	p := &sender{tb: b.tb, s: s, receipts: make(map[uint64][]frame.Receipt), changed: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() { defer close(done); p.read() }()
	b.tb.Cleanup(func() { b.link.Break(nil); <-done })
	return p
}

func (p *sender) read() {
	for {
		rs, err := p.s.Recv(nil)
		p.mu.Lock()
		for _, r := range rs {
			p.receipts[r.ID] = append(p.receipts[r.ID], r)
			p.count++
		}
		p.err = err
		p.mu.Unlock()
		wake(p.changed)
		if err != nil {
			return
		}
	}
}

// send publishes a frame and returns the ids.
func (p *sender) send(ms ...frame.Outgoing) []uint64 {
	p.tb.Helper()
	f := frame.NewPublishes()
	var ids []uint64
	for _, m := range ms {
		p.next++
		m.ID = p.next
		ids = append(ids, m.ID)
		f.Items = append(f.Items, m)
	}
	if err := p.s.Send(f); err != nil {
		p.tb.Fatalf("send: %v", err)
	}
	return ids
}

func (p *sender) wait(what string, is func() bool) {
	p.tb.Helper()
	limit := time.NewTimer(soon)
	defer limit.Stop()
	for {
		p.mu.Lock()
		ok := is()
		p.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-p.changed:
		case <-limit.C:
			p.mu.Lock()
			defer p.mu.Unlock()
			p.tb.Fatalf("wait for %s: %d receipts, stream %v", what, p.count, p.err)
		}
	}
}

// statuses waits for n receipts and returns them by id.
func (p *sender) statuses(n int) map[uint64]frame.ReceiptStatus {
	p.tb.Helper()
	p.wait("receipts", func() bool { return p.count >= n })
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[uint64]frame.ReceiptStatus)
	for id, rs := range p.receipts {
		if len(rs) != 1 {
			p.tb.Errorf("message %d has %d receipts", id, len(rs))
		}
		out[id] = rs[0].Status
	}
	return out
}

func to(name string, payload string) frame.Outgoing {
	return frame.Outgoing{Message: core.Message{Name: name, Payload: []byte(payload)}}
}
