// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"time"

	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
)

// turnMost is how many messages leave the backlog under one hold of the lock,
// for which publishers wait.
const turnMost = 32

// answer is a receipt that is due.
type answer struct {
	ticket outq.Ticket
	routed bool
}

// pump lets what waits go on; p.mu is held. The goroutine ends once nothing
// waits.
func (p *Pub) pump() {
	if p.pumping {
		return
	}
	p.pumping = true
	p.running.Add(1)
	go func() {
		defer p.running.Done()
		timer := time.NewTimer(p.clock.tick())
		defer timer.Stop()
		for {
			moved, more := p.turn()
			if !more {
				return
			}
			if moved {
				continue
			}
			select {
			case <-p.wake:
			case <-timer.C:
				timer.Reset(p.look())
			}
		}
	}()
}

// turn sends some of what waits, in order, and reports whether there was any and
// whether there may be more.
func (p *Pub) turn() (moved, more bool) {
	var answers [turnMost]answer
	n := 0
	p.mu.Lock()
	for n < turnMost && p.backlog.len() > 0 && p.audience() {
		x := p.backlog.peek()
		if !p.mayGo(&x.message) {
			break
		}
		answers[n] = answer{x.ticket, p.fan(&x.message)}
		n++
		p.backlog.pop()
	}
	more = p.backlog.len() > 0
	if p.pumping = more; !more && p.closing {
		wake(p.drained)
	}
	line := p.losses.take()
	p.mu.Unlock()
	for _, a := range answers[:n] {
		tell(a.ticket, queued(a.routed))
	}
	line.log(p.config)
	return n > 0, more
}

// look lets go of messages that have waited for long enough, and returns when to
// look again: for a subscriber where there is none, which are refused where no
// peer is there and unrouted where those that are want nothing; or for those that
// are behind.
func (p *Pub) look() time.Duration {
	p.mu.Lock()
	now := time.Now()
	if p.audience() {
		p.watch(now)
		p.mu.Unlock()
		return p.clock.tick()
	}
	late := p.backlog.takeDue(now)
	there := len(p.subscribers) > 0
	p.mu.Unlock()
	for i := range late {
		if there {
			tell(late[i].ticket, queued(false))
		} else {
			refuse(late[i].ticket, noPeer("subscriber", p.config.Address(), late[i].name(), p.config.Wait))
		}
	}
	return min(p.clock.tick(), p.config.Wait)
}
