// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// stage is how far a lane is.
type stage int

const (
	idle    stage = iota // it has no place
	waiting              // for a place
	finding              // its partitions are looked up
	open
	closing // its producers close
)

// lane is one topic. All of it is under the outbox's mu.
type lane struct {
	o     *Outbox
	topic topic.Name
	base  string // the topic's name in full, without a partition

	stage stage
	queue list    // of messages that have no partition yet, in order
	parts []*part // of a lane that is open: one, or as many as the topic has partitions
	turn  uint32  // whose messages without a key are
	taken int64   // bytes that it has got for a batch, and
	count int     // messages
	busy  int     // messages of parts that have no receipt
	work  int     // goroutines for it and its parts

	partitioned bool
	looking     bool          // somebody looks for new partitions
	looked      time.Duration // when somebody did

	draining   bool          // nothing more goes to parts: another topic needs the place, or this one has changed
	made, used time.Duration // when it was opened, and last had nothing to do
	// why says what keeps it from being opened, nil = nothing that is known.
	why *core.Fault
}

// add takes a message; o.mu is held.
func (l *lane) add(e *entry) {
	l.queue.push(e)
	l.pump()
}

// pump passes on to its parts what waits, or has the lane opened; o.mu is held.
func (l *lane) pump() {
	if l.queue.first == nil {
		return
	}
	if l.stage == idle {
		l.need()
	}
	if l.stage != open || l.draining {
		return
	}
	l.discover()
	for e := l.queue.first; e != nil; e = l.queue.first {
		e.leave()
		at, keyed := route(&e.message, len(l.parts), l.turn)
		e.part = l.parts[at]
		if !keyed {
			l.count, l.taken = l.count+1, l.taken+e.room
			if l.count >= l.o.c.BatchMessages || l.taken >= maxBatch {
				l.turns(e.part)
			}
		}
		l.busy++
		e.part.add(e)
	}
}

// turns gives the next partition its turn, where a part has had it: with batches once
// one is whole. o.mu is held.
func (l *lane) turns(p *part) {
	if n := uint32(len(l.parts)); n > 1 && l.parts[l.turn%n] == p { //nolint:gosec // few, see client
		l.turn++
	}
	l.count, l.taken = 0, 0
}

// opened gives the lane its parts; o.mu is held.
func (l *lane) opened(partitions int) {
	if l.topic.Partition != topic.NoPartition {
		partitions = 0
	}
	now := l.o.clock()
	l.stage, l.why, l.draining = open, nil, false
	l.partitioned, l.looked = partitions > 0, now
	l.made, l.used = now, now
	l.turn = rand.Uint32()
	if l.partitioned {
		l.grow(partitions)
	} else {
		l.parts = []*part{{lane: l, index: int32(l.topic.Partition), name: l.topic.String()}} //nolint:gosec // at most client's limit
	}
	l.pump()
	l.rest()
	if len(l.o.waiting) > 0 {
		l.o.evict()
	}
}

// grow gives the lane as many parts as its topic has partitions. A topic does not
// lose any, unless it is made anew: then the broker refuses those that are gone.
func (l *lane) grow(partitions int) {
	for i := len(l.parts); i < partitions; i++ {
		l.parts = append(l.parts, &part{lane: l, index: int32(i), name: l.topic.At(i).String()}) //nolint:gosec // as above
	}
}

// rest closes the lane where it has nothing to do and somebody waits for its place,
// and has it forgotten where it has none; o.mu is held.
func (l *lane) rest() {
	o := l.o
	if l.stage == open && l.busy == 0 {
		l.used = o.clock()
		wanted := l.draining || l.queue.first == nil && len(o.waiting) > o.leaving
		if wanted && l.work == 0 {
			l.close()
		}
	}
	if l.stage == idle && l.queue.first == nil && o.lanes[l.topic] == l {
		delete(o.lanes, l.topic)
		if o.last == l {
			o.last = nil
		}
	}
}

// close closes the producers of a lane whose messages have their receipts; o.mu is
// held.
func (l *lane) close() {
	o := l.o
	var sessions []*session
	for _, p := range l.parts {
		if s := p.session; s != nil {
			p.session = nil
			sessions = append(sessions, s)
		}
		p.gathering.reset()
	}
	l.stage, l.parts = closing, nil
	o.leaving++
	o.work.Go(func() {
		var all sync.WaitGroup
		for _, s := range sessions {
			all.Go(s.close)
		}
		all.Wait()
		o.mu.Lock()
		o.leaving--
		l.vacate()
		o.leave()
	})
}

// vacate gives the lane's place to who waits for one; o.mu is held.
func (l *lane) vacate() {
	l.stage = idle
	l.o.slots--
	l.o.serve()
	l.pump()
	l.rest()
}

// refuse answers what no part has; o.mu is held.
func (l *lane) refuse(why *core.Fault) {
	for e := l.queue.first; e != nil; e = l.queue.first {
		e.finish(pluginapi.Refused(because(e.name, why)))
	}
}
