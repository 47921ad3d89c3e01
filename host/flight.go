// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"sync"
	"time"

	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/internal/frame"
)

// flight is one publish that was handed over, until its receipt. What it came to
// is told once: with the receipt, when its time is over, or when the one who
// waits for it gives up. Its room among the publisher's is given back with the
// receipt, whatever was told.
type flight struct {
	settlement.Sending
	p    *publisher
	o    *outlet
	size int64
	wake chan struct{} // gets one token when it is told, to Publish; nil = for a Pending

	mu      sync.Mutex
	told    bool
	receipt Receipt
	err     error
	done    chan struct{} // closed when it is told; nil = nobody waits
	timer   *time.Timer   // its time; nil = it has no limit
	limit   time.Duration

	// Of a publisher with OrderedReceipts, under its line's lock.
	next    *flight
	decided bool // what is to be told is there
	back    bool // the receipt is in
	past    bool // it has had its turn
}

// reset makes a flight of Publish ready for the next one.
func (f *flight) reset() {
	f.Sending, f.p, f.o = settlement.Sending{}, nil, nil
	f.told, f.receipt, f.err = false, Receipt{}, nil
	f.decided, f.back, f.past = false, false, false
}

// Receive takes the receipt.
func (f *flight) Receive(r frame.Receipt) {
	receipt, err := f.o.read(r)
	if f.p.line != nil {
		f.p.line.decide(f, receipt, err, true)
		return
	}
	f.p.room.give(f.size)
	f.tell(receipt, err)
}

// tell tells what became of it, unless that is done. A flight of Publish may be
// in use again when it returns.
func (f *flight) tell(receipt Receipt, err error) {
	f.mu.Lock()
	if f.told {
		f.mu.Unlock()
		return
	}
	f.told, f.receipt, f.err = true, receipt, err
	if f.timer != nil {
		f.timer.Stop()
	}
	if f.done != nil {
		close(f.done)
	}
	wake := f.wake
	f.mu.Unlock()
	if wake != nil {
		wake <- struct{}{}
	}
}

// wait waits for what becomes of a flight of Publish. again reports that the
// flight may be used again: nobody holds it any more.
func (f *flight) wait(ctx context.Context, late <-chan time.Time) (_ Receipt, err error, again bool) {
	select {
	case <-f.wake:
		return f.receipt, f.err, true
	case <-ctx.Done():
		err = ctx.Err()
	case <-late:
		err = &lateError{f.limit}
	}
	sent := !f.o.on.outbox.TakeBack(&f.Sending)
	f.mu.Lock()
	if f.told { // it came beside
		f.mu.Unlock()
		<-f.wake
		return f.receipt, f.err, true
	}
	f.told = true
	f.mu.Unlock()
	if f.p.line != nil {
		f.p.line.decide(f, Receipt{}, nil, !sent)
	} else if !sent {
		f.p.room.give(f.size)
	}
	if sent {
		// What is still read must not be changed by the caller, who gets it back.
		f.o.on.outbox.Await(&f.Sending)
	}
	return Receipt{}, &PublishError{To: f.o.to, MaybeSent: sent, Err: err}, false
}

// within gives a flight of PublishAsync a limit.
func (f *flight) within(limit time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.told {
		f.limit = limit
		f.timer = time.AfterFunc(limit, f.expire)
	}
}

// expire tells a flight whose time is over.
func (f *flight) expire() {
	sent := !f.o.on.outbox.TakeBack(&f.Sending)
	err := &PublishError{To: f.o.to, MaybeSent: sent, Err: &lateError{f.limit}}
	if f.p.line != nil {
		f.p.line.decide(f, Receipt{}, err, !sent)
		return
	}
	if !sent {
		f.p.room.give(f.size)
	}
	f.tell(Receipt{}, err)
}

// line tells flights in the order in which they were handed over.
type line struct {
	mu          sync.Mutex
	first, last *flight
}

// join puts f at the end.
func (l *line) join(f *flight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.first = f
	} else {
		l.last.next = f
	}
	l.last = f
}

// decide sets what is to be told of f; the first to do so decides. back says
// that f is not under way any more. It tells those whose turn it is. The room of
// a flight is given back when it is past and back, so that those that wait for
// their turn are bounded as well.
func (l *line) decide(f *flight, receipt Receipt, err error, back bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !f.decided {
		f.decided = true
		f.mu.Lock()
		if !f.told {
			f.receipt, f.err = receipt, err
		}
		f.mu.Unlock()
	}
	f.back = f.back || back
	if f.past {
		if back {
			f.p.room.give(f.size)
		}
		return
	}
	for l.first != nil && l.first.decided {
		n := l.first
		if l.first = n.next; l.first == nil {
			l.last = nil
		}
		n.past, n.next = true, nil
		if n.back {
			n.p.room.give(n.size)
		}
		n.tell(n.receipt, n.err)
	}
}
