// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// DefaultBudget is room for two of the largest messages at a time.
const DefaultBudget = 128 << 20

// A peer whose large message others wait for may be silent for so long. In all it
// may take slowGrace for it, and longer for what it has sent already at a rate
// that any line has.
const (
	silentGrace = 3 * time.Second
	slowGrace   = 5 * time.Second
	slowRate    = 1 << 20 // bytes a second
)

// budgetTick is how often one that waits looks for peers that are too slow, and
// shows its own peer that we live.
const budgetTick = 250 * time.Millisecond

var errSlow = errors.New("it takes too long for a large message, and others wait for the memory")

// Budget bounds the memory that large messages of several readers take which
// have not arrived whole, or were not taken yet. Where it is used up, readers
// wait; the one that holds a part of it for longest never does, so that somebody
// always gets on, and all together take one message more than the budget at most.
// A peer that is slow while others wait is ended. The zero value has no room;
// make one with NewBudget.
type Budget struct {
	most int64

	mu      sync.Mutex
	held    int64
	holders []*claim      // who came first is first
	changed chan struct{} // closed when there may be room; nil while nobody waits
}

// NewBudget returns a budget of so many bytes.
func NewBudget(most int64) *Budget { return &Budget{most: most} }

// Held returns how many bytes are in use.
func (b *Budget) Held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// Sharing is what a reader does about the others that share its budget.
type Sharing struct {
	Budget *Budget
	Done   <-chan struct{} // ends a wait: the connection has ended
	Stop   <-chan struct{} // ends a wait: nothing is read any more; nil = never
	End    func(error)     // ends the connection, of a peer that is slow
	Held   func()          // called now and then while the peer is not read; nil = not
}

// claim is a reader's part of a budget, a [slab.Claim].
type claim struct {
	Sharing
	bytes   int64
	spent   time.Duration // in Fill
	began   time.Time     // of the Fill that runs
	reading bool
}

// Take makes the claim one of n bytes, when there is room.
func (c *claim) Take(n int64) error {
	b := c.Budget
	var tick *time.Ticker
	for {
		changed, slow := b.try(c, n)
		if changed == nil {
			return nil
		}
		if slow != nil {
			slow(errSlow)
		}
		if tick == nil {
			tick = time.NewTicker(budgetTick)
			defer tick.Stop()
		}
		select {
		case <-changed:
		case <-tick.C:
			if c.Held != nil {
				c.Held()
			}
		case <-c.Done:
			return net.ErrClosed
		case <-c.Stop:
			return os.ErrDeadlineExceeded
		}
	}
}

// try enters n bytes if there is room, or returns what tells of a change, and how
// to end a peer that is slow.
func (b *Budget) try(c *claim, n int64) (changed <-chan struct{}, slow func(error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := len(b.holders) == 0 || b.holders[0] == c
	if !first && b.held-c.bytes+n > b.most {
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		return b.changed, b.slow()
	}
	if c.bytes == 0 {
		b.holders = append(b.holders, c)
	}
	b.held += n - c.bytes
	c.bytes = n
	return nil, nil
}

// slow is how to end the first peer that is too slow, nil = there is none; b.mu
// is held.
func (b *Budget) slow() func(error) {
	for _, c := range b.holders {
		if !c.reading {
			continue // it waits itself, or its message does
		}
		silent := time.Since(c.began) // a Fill ends when something has come
		if silent > silentGrace || c.spent+silent > slowGrace+time.Duration(c.bytes)*time.Second/slowRate {
			return c.End
		}
	}
	return nil
}

// Fills says that the reader waits for its peer from now on, or does not any
// more.
func (c *claim) Fills(on bool) {
	if c.bytes == 0 {
		return
	}
	c.Budget.mu.Lock()
	defer c.Budget.mu.Unlock()
	if on {
		c.began = time.Now()
	} else if c.reading {
		c.spent += time.Since(c.began)
	}
	c.reading = on
}

// Drop gives everything back.
func (c *claim) Drop() {
	if c.bytes == 0 {
		return
	}
	b := c.Budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= c.bytes
	b.holders = slices.DeleteFunc(b.holders, func(x *claim) bool { return x == c })
	c.bytes, c.spent, c.reading = 0, 0, false
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}
