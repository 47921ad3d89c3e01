// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// plugin is a scripted server of one subscription and one publish stream that
// keeps the protocol's books: which deliveries are owed a verdict, and which
// have got one.
type plugin struct {
	link.Server

	// Scripts. They are set before the streams open.
	answer  func(v frame.VerdictRun) (frame.SettleStatus, *core.Fault) // nil = DONE
	receipt func(o *frame.Outgoing, n int) (frame.Receipt, bool)       // nil = CONFIRMED; false = none
	looped  bool                                                       // what is published to "own" is delivered
	sought  func(p *plugin, to *transportpb.Seek)                      // called with mu held; nil = move
	noEnd   bool                                                       // Stop is not answered
	mute    bool                                                       // verdicts are carried out and not answered
	deaf    chan struct{}                                              // requests are not read until it is closed
	caps    []core.Capabilities                                        // profiles; where they count an attempt of 0 is sent as 1

	mu        sync.Mutex
	down      chan frame.SubscribeResponse
	receipts  chan frame.Receipt
	next      uint64
	owed      map[uint64]uint64 // unsettled, by weight
	settled   map[uint64]frame.VerdictRun
	items     map[uint64]frame.Delivery
	verdicts  []frame.VerdictRun
	published []published
	credit    frame.Credit
	stops     int
	halves    int
	seeks     int
	breaches  []string
}

// published is one message as it arrived.
type published struct {
	core.Message
	purpose transportpb.Purpose
	carry   string
	after   time.Duration
	dedup   string
}

func newPlugin() *plugin {
	return &plugin{
		down:     make(chan frame.SubscribeResponse, 1024),
		receipts: make(chan frame.Receipt, 1<<16),
		owed:     make(map[uint64]uint64),
		settled:  make(map[uint64]frame.VerdictRun),
		items:    make(map[uint64]frame.Delivery),
	}
}

// Subscribe serves the one subscription.
func (p *plugin) Subscribe(s link.ServerSubscribeStream) error {
	done := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		for {
			select {
			case r := <-p.down:
				if s.Send(&r) != nil {
					return
				}
			case <-done:
				return
			case <-s.Context().Done():
				return
			}
		}
	})
	defer sending.Wait()
	defer close(done)
	var r frame.SubscribeRequest
	for {
		if err := s.Recv(&r); err != nil {
			if !errors.Is(err, io.EOF) {
				return err
			}
			p.mu.Lock()
			p.halves++
			p.mu.Unlock()
			return nil
		}
		if p.deaf != nil {
			select {
			case <-p.deaf:
			case <-s.Context().Done():
			}
		}
		p.take(&r)
	}
}

func (p *plugin) take(r *frame.SubscribeRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case r.Credit != nil:
		p.credit = *r.Credit
	case r.Seek != nil:
		p.seeks++
		if p.sought == nil {
			p.move(r.Seek)
			return
		}
		p.sought(p, r.Seek)
	case r.Stop:
		p.stops++
		if !p.noEnd {
			p.down <- frame.SubscribeResponse{Ended: &transportpb.Ended{}}
		}
	default:
		var out []frame.SettleResult
		for _, run := range r.Settle {
			for id := run.First; id < run.First+max(run.Count, 1); id++ {
				v := run
				v.First, v.Count = id, 1
				if res := p.settle(v); res.Status != frame.SettleDone || v.WantResult {
					out = append(out, res)
				}
			}
		}
		if len(out) > 0 && !p.mute {
			p.down <- frame.SubscribeResponse{Settled: out}
		}
	}
}

// move carries out a seek: what is owed is void. p.mu is held.
func (p *plugin) move(to *transportpb.Seek) {
	for id := range p.owed {
		delete(p.owed, id)
		back := to.GetKind() == transportpb.PositionKind_POSITION_KIND_BEGINNING
		p.down <- frame.SubscribeResponse{Void: &transportpb.Void{First: id, Count: 1, Returns: back}}
	}
	p.down <- frame.SubscribeResponse{Sought: &transportpb.Sought{Next: p.next + 1}}
}

// settle carries out one verdict.
func (p *plugin) settle(v frame.VerdictRun) frame.SettleResult {
	res := frame.SettleResult{First: v.First, Count: 1, Status: frame.SettleDone}
	if v.First == 0 {
		res.Status = frame.SettleStale
		return res
	}
	p.verdicts = append(p.verdicts, v)
	if p.answer != nil {
		res.Status, res.Fault = p.answer(v)
	}
	if v.Kind == core.VerdictExtend {
		return res
	}
	if _, owed := p.owed[v.First]; !owed {
		if before, twice := p.settled[v.First]; twice {
			p.breaches = append(p.breaches, fmt.Sprintf("delivery %d settled by %v after %v", v.First, v.Kind, before.Kind))
		}
		res.Status = frame.SettleStale
		return res
	}
	delete(p.owed, v.First)
	if res.Status != frame.SettleDone {
		v.Kind = core.VerdictUnspecified // it came to nothing
	}
	p.settled[v.First] = v
	return res
}

// Publish serves the publish stream.
func (p *plugin) Publish(s link.ServerPublishStream) error {
	done := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		for {
			select {
			case r := <-p.receipts:
				if s.Send([]frame.Receipt{r}) != nil {
					return
				}
			case <-done:
				for {
					select {
					case r := <-p.receipts:
						if s.Send([]frame.Receipt{r}) != nil {
							return
						}
					default:
						return
					}
				}
			case <-s.Context().Done():
				return
			}
		}
	})
	defer sending.Wait()
	defer close(done)
	for {
		f, err := s.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		p.mu.Lock()
		for i := range f.Items {
			p.sent(&f.Items[i])
		}
		p.mu.Unlock()
		f.Release()
	}
}

func (p *plugin) sent(o *frame.Outgoing) {
	p.published = append(p.published, published{
		Message: o.Message.Clone(), purpose: transportpb.Purpose(o.Purpose), carry: string(o.Carry),
		after: o.DeliverAfter, dedup: o.DedupID,
	})
	r, ok := frame.Receipt{Status: frame.ReceiptConfirmed}, true
	if p.receipt != nil {
		r, ok = p.receipt(o, len(p.published))
	}
	if p.looped && r.Status == frame.ReceiptConfirmed && o.Message.Name == "own" {
		p.push(frame.Delivery{Message: o.Message.Clone()})
	}
	if ok {
		r.ID = o.ID
		p.receipts <- r
	}
}

// deliver sends items as one frame, numbered.
func (p *plugin) deliver(items ...frame.Delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.push(items...)
}

func (p *plugin) push(items ...frame.Delivery) *frame.Deliveries {
	d := frame.DeliveriesOf(len(items))
	for _, item := range items {
		p.next++
		item.ID = p.next
		item.Attempt = counted(p.caps, &item)
		p.items[item.ID] = item
		p.owed[item.ID] = uint64(frame.Weight(&item.Message))
		d.Items = append(d.Items, item)
	}
	if n := uint64(len(p.owed)); p.credit.Messages > 0 && n > p.credit.Messages {
		p.breaches = append(p.breaches, fmt.Sprintf("%d deliveries are owed a verdict, the window is %d", n, p.credit.Messages))
	}
	p.down <- frame.SubscribeResponse{Deliveries: d}
	return d
}

// counted is the item's attempt; the first where its profile counts and it says
// nothing.
func counted(caps []core.Capabilities, item *frame.Delivery) uint32 {
	if item.Attempt == 0 && int(item.Profile) < len(caps) && caps[item.Profile].Counts == core.CountNative {
		return 1
	}
	return item.Attempt
}

// void ends deliveries without a verdict.
func (p *plugin) void(v *transportpb.Void) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.owed {
		if v.GetAll() || id >= v.GetFirst() && id < v.GetFirst()+v.GetCount() {
			delete(p.owed, id)
		}
	}
	p.down <- frame.SubscribeResponse{Void: v}
}

func (p *plugin) say(r frame.SubscribeResponse) { p.down <- r }

// state returns copies of the books.
func (p *plugin) kinds() []core.VerdictKind {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []core.VerdictKind
	for _, v := range p.verdicts {
		out = append(out, v.Kind)
	}
	return out
}

func (p *plugin) outgoing() []published {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]published(nil), p.published...)
}

func (p *plugin) unsettled() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.owed)
}

// life is one generation of a plugin, attached.
type life struct {
	p    *plugin
	link *link.LocalLink
}

// end waits for the plugin's side.
func (l *life) end() {
	l.link.Break(io.ErrUnexpectedEOF)
	_ = l.link.Wait(context.Background())
}
