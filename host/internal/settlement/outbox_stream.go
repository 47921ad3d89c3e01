// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
)

// publishing is one generation of an outbox. All but the channels is guarded by
// the outbox's lock.
type publishing struct {
	b      *Outbox
	stream link.PublishStream
	number uint64
	cancel context.CancelFunc

	ready queue
	sent  map[uint64]*publish
	id    uint64   // of the last one sent
	early []answer // receipts of what is in the writer's hands
	half  bool     // half-close once ready is empty
	lost  bool

	wake  chan struct{}
	ended chan struct{} // the reader has returned
}

// write sends what is ready, as much at a time as a frame holds.
func (g *publishing) write() {
	defer g.b.running.Done()
	batch := make([]*publish, 0, frame.MaxItems)
	var done []answer
	for {
		var half, lost bool
		batch, half, lost = g.next(batch[:0])
		if lost {
			return
		}
		if len(batch) > 0 {
			err := g.send(batch)
			if err != nil {
				g.fail(err)
			}
			done = g.sentOff(batch, err != nil, done[:0])
			if err != nil {
				return
			}
			continue
		}
		if half {
			if err := g.stream.CloseSend(); err != nil {
				g.fail(err)
			}
			return
		}
		select {
		case <-g.wake:
		case <-g.ended:
			return
		}
	}
}

// next takes one frame's worth off ready.
func (g *publishing) next(batch []*publish) (_ []*publish, half, lost bool) {
	g.b.mu.Lock()
	defer g.b.mu.Unlock()
	if g.lost {
		return batch, false, true
	}
	var bytes int64
	for p := g.ready.first; p != nil && len(batch) < frame.MaxItems; p = g.ready.first {
		if len(batch) > 0 && bytes+p.size > frame.MaxBytes {
			break
		}
		g.ready.remove(p)
		bytes += p.size
		g.id++
		p.out.ID = g.id
		p.stage = stageSending
		g.sent[g.id] = p
		batch = append(batch, p)
	}
	return batch, g.half, false
}

// fail waits for the reader to end the generation after a send has failed: it
// reads why. A stream that has not ended by itself is ended.
func (g *publishing) fail(err error) {
	if !errors.Is(err, io.EOF) {
		g.cancel()
	}
	<-g.ended
}

// send sends one frame.
func (g *publishing) send(batch []*publish) error {
	f := frame.NewPublishes()
	for _, p := range batch {
		f.Items = append(f.Items, p.out)
	}
	return g.stream.Send(f)
}

// sentOff takes a batch out of the writer's hands, and tells the receipts that
// came before: what a receiver was told of may have its memory used again, so
// nothing may read it any more. Of what failed, or was lost meanwhile, nobody
// knows whether it arrived.
func (g *publishing) sentOff(batch []*publish, failed bool, done []answer) []answer {
	b := g.b
	b.mu.Lock()
	failed = failed || g.lost
	for _, p := range batch {
		if p.parted != nil {
			close(p.parted)
			p.parted = nil
		}
		switch {
		case p.stage != stageSending:
		case failed:
			delete(g.sent, p.out.ID)
			done = append(done, answer{p, lostReceipt(ErrDown)})
		default:
			p.stage = stageSent
		}
	}
	done = append(done, g.early...)
	clear(g.early)
	g.early = g.early[:0]
	for i := range done {
		b.leave(done[i].p)
		b.answered(done[i].p)
		b.counts.add(done[i].r.Status)
	}
	b.admit()
	b.mu.Unlock()
	b.tellAll(done)
	return done
}

// read takes receipts until the stream ends.
func (g *publishing) read() {
	defer g.b.running.Done()
	defer close(g.ended)
	defer g.cancel()
	var rs []frame.Receipt
	var done []answer
	for {
		var err error
		if rs, err = g.stream.Recv(rs[:0]); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			g.finish(err)
			return
		}
		if done, err = g.receipts(rs, done[:0]); err != nil {
			g.finish(err)
		}
		g.b.tellAll(done)
		if err != nil {
			return
		}
		clear(rs)
	}
}

// receipts finds the publishes of rs and gives their room back. Those that the
// writer still has in its hands are left to it.
func (g *publishing) receipts(rs []frame.Receipt, done []answer) ([]answer, error) {
	g.b.mu.Lock()
	defer g.b.mu.Unlock()
	for i := range rs {
		p := g.sent[rs[i].ID]
		if p == nil {
			return done, &core.Fault{
				Code:    core.FaultInternal,
				Message: fmt.Sprintf("plugin of endpoint %q sent a receipt for publish %d, which is not missing one", g.b.o.Endpoint, rs[i].ID),
			}
		}
		delete(g.sent, rs[i].ID)
		rs[i].Fault = foreignFault(rs[i].Fault)
		if p.stage == stageSending {
			p.stage = stageEarly
			g.early = append(g.early, answer{p, rs[i]})
			continue
		}
		g.b.leave(p)
		g.b.answered(p)
		g.b.counts.add(rs[i].Status)
		done = append(done, answer{p, rs[i]})
	}
	g.b.admit()
	return done, nil
}

// finish ends the generation after its stream did. An end after the half-close,
// with no receipt missing, is orderly.
func (g *publishing) finish(err error) {
	err = foreignError(err)
	g.b.mu.Lock()
	current := g.b.now == g
	orderly := err == nil && g.half && len(g.sent) == 0
	g.b.mu.Unlock()
	if !current {
		return
	}
	if err == nil {
		err = &link.LostError{Cause: io.ErrUnexpectedEOF}
	}
	g.b.lose(g, err)
	if !orderly && g.b.o.Broken != nil {
		g.b.o.Broken(g.number, err)
	}
}

// lose detaches g and answers what it leaves behind.
func (b *Outbox) lose(g *publishing, cause error) {
	b.mu.Lock()
	if g.lost {
		b.mu.Unlock()
		return
	}
	g.lost = true
	if b.now == g {
		b.now = nil
	}
	var unknown, refused []*publish
	for id, p := range g.sent {
		if p.stage == stageSending {
			continue // the writer still reads it and answers it: sentOff
		}
		delete(g.sent, id)
		b.leave(p)
		b.answered(p)
		unknown = append(unknown, p)
	}
	for p := g.ready.last; p != nil; p = g.ready.last {
		g.ready.remove(p)
		b.leave(p)
		if p.copy {
			p.stage = stageQueued
			b.copies.unshift(p)
			continue
		}
		b.answered(p)
		refused = append(refused, p)
	}
	for p := b.apps.first; p != nil; p = b.apps.first {
		b.apps.remove(p)
		b.answered(p)
		refused = append(refused, p)
	}
	b.counts.Unknown += uint64(len(unknown))
	b.counts.Refused += uint64(len(refused))
	closed := b.closed
	b.mu.Unlock()
	g.cancel() // whose effect on the stream is no end of its own any more
	signal(g.wake)
	for _, p := range unknown {
		b.tell(p, lostReceipt(cause))
	}
	for _, p := range refused {
		b.tell(p, b.refused(closed))
	}
}

// lostReceipt says that the plugin was lost between a publish and its receipt.
func lostReceipt(cause error) frame.Receipt {
	text := "plugin lost before its receipt"
	if cause != nil {
		text += ": " + cause.Error()
	}
	return frame.Receipt{
		Status: frame.ReceiptUnknown,
		Fault:  &core.Fault{Code: core.FaultUnavailable, Message: text, Transient: true},
	}
}
