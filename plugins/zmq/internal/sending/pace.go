// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
)

// stillAfter is how long a subscriber may take no byte before nobody waits for it
// any more: longer than a process that reads is kept from running on a busy
// machine, and short beside what a publisher is kept waiting for anyway.
//
// It is also how long messages wait, in all, for one that reads and is full though
// others have room. It gets half of the time back in which it keeps nobody
// waiting: those that are as fast as the fastest are full by turns, as they come
// to run.
const stillAfter = 200 * time.Millisecond

// mostAge is how long a message waits at most while there are subscribers that
// do not want it: what they want waits behind it. It is what one that takes
// 16 MiB a second needs for a host's window of 8 MiB.
const mostAge = 500 * time.Millisecond

// clock is how long messages wait for subscribers, and how often these are looked
// at meanwhile.
type clock struct {
	still time.Duration
	age   time.Duration
	round uint64
}

func (c *clock) tick() time.Duration { return c.still / 20 }

// patience says whether messages wait for a subscriber that is behind.
type patience int

const (
	patient patience = iota
	stopped          // it took nothing: not before it takes something
	slow             // it kept others waiting: not before it has caught up
)

// pace is what is known of a subscriber's reading. It is guarded by the owner's
// lock.
type pace struct {
	patience patience
	left     outq.Left     // of its queue, at least
	written  uint64        // when it was found stopped
	progress int64         // of its queue, as last looked at
	round    uint64        // of the clock, when that was
	since    time.Time     // it has not changed
	spent    time.Duration // of the time that messages wait for it though others have room
	holds    bool          // a message waits for it that others have room for
	asked    time.Time     // when spent was last brought up to date
	latest   uint64        // what the queue says of what is written
	counted  uint64        // what hold knew of it
	moved    time.Time     // when that changed
}

// easy reports whether no more than half of its queue is used with size bytes
// more, as far as that is known.
func (s *subscriber) easy(size int) bool {
	return s.pace.left.HalfMessages > 0 && s.pace.left.HalfBytes >= int64(size)
}

// level is Queue.Level, without asking the queue where that is known.
func (s *subscriber) level(size int) (outq.Level, uint64) {
	if s.easy(size) {
		return outq.Easy, 0
	}
	level, left, written := s.peer.Out.Level(size)
	s.pace.left = left
	return level, written
}

// took enters a message that its queue has taken.
func (a *pace) took(size int) {
	a.left.Messages--
	a.left.HalfMessages--
	a.left.Bytes -= int64(size)
	a.left.HalfBytes -= int64(size)
}

// mayGo reports whether a message need not wait: one of those that want it is not
// behind, and none is full that it waits for all the same; or none that is behind
// is waited for. p.mu is held.
func (p *Pub) mayGo(m *core.Message) bool {
	size := message.Size(m, m.Name)
	easy, reads := false, false
	p.full = p.full[:0]
	for _, s := range p.subscribers {
		if !s.filter.matches(m.Name) {
			continue
		}
		if s.pace.holds {
			s.pace.charge(time.Now())
		}
		level, written := s.level(size)
		switch {
		case level == outq.Easy:
			easy, s.pace.patience = true, patient
		case level == outq.Ended || !s.pace.reads(written):
		default:
			reads = true
			if level == outq.Full {
				s.pace.latest = written
				p.full = append(p.full, s)
			}
		}
	}
	if !easy {
		return !reads
	}
	return !p.courtesy()
}

// courtesy reports whether a message waits for subscribers that are full though
// others have room.
func (p *Pub) courtesy() bool {
	if len(p.full) == 0 {
		return false
	}
	holds, now := false, time.Now()
	for _, s := range p.full {
		holds = s.pace.hold(p.clock.still, now) || holds
	}
	return holds
}

// hold lets a message wait for the subscriber, unless too many have, or nothing
// was written to it for a quarter of that time.
func (a *pace) hold(most time.Duration, now time.Time) bool {
	if a.latest != a.counted || a.moved.IsZero() {
		a.counted, a.moved = a.latest, now
	}
	if now.Sub(a.moved) > most/4 {
		return false
	}
	a.spent = max(0, a.spent-now.Sub(a.asked)/2)
	a.asked = now
	if a.holds = a.spent < most; !a.holds {
		a.patience = slow
	}
	return a.holds
}

// charge ends the wait that hold has begun.
func (a *pace) charge(now time.Time) {
	a.spent += now.Sub(a.asked)
	a.asked, a.holds = now, false
}

// reads reports whether messages wait for a subscriber that is behind.
func (a *pace) reads(written uint64) bool {
	if a.patience == stopped && written != a.written {
		a.patience = patient
	}
	return a.patience == patient
}

// watch looks at the subscribers while messages wait for some of them, and gives
// up waiting for those that have stopped, and for those that keep others waiting;
// p.mu is held.
func (p *Pub) watch(now time.Time) {
	if p.backlog.len() == 0 {
		return
	}
	p.clock.round++
	first := p.backlog.peek()
	late := now.Sub(first.at) >= p.clock.age && p.others(first.message.Name)
	for _, s := range p.subscribers {
		if n, _ := s.peer.Out.Depth(); n == 0 {
			continue
		}
		still := s.pace.still(s.peer.Out.Progress(), p.clock.round, now)
		if s.pace.patience != patient {
			continue
		}
		switch {
		case still >= p.clock.still:
			s.pace.patience, s.pace.written = stopped, s.peer.Out.Written()
		case late && s.filter.matches(first.message.Name):
			s.pace.patience = slow
		}
	}
}

// still enters how far a queue is and returns for how long that has not changed,
// while it was looked at each time.
func (a *pace) still(progress int64, round uint64, now time.Time) time.Duration {
	if progress != a.progress || a.round+1 != round || a.since.IsZero() {
		a.progress, a.since = progress, now
	}
	a.round = round
	return now.Sub(a.since)
}

// others reports whether there are subscribers that do not want a name; p.mu is
// held.
func (p *Pub) others(name string) bool {
	for _, s := range p.subscribers {
		if s.heard && !s.filter.matches(name) {
			return true
		}
	}
	return false
}
