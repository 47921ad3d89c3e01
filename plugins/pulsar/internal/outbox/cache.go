// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
)

// The pauses between two tries to open something: the first, then twice as long each
// time up to the last, each from half of that to the whole.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 3 * time.Second
)

// need has the lane opened, once there is a place for it; o.mu is held.
func (l *lane) need() {
	o := l.o
	switch {
	case o.life.Err() != nil:
	case o.slots < o.c.Producers && len(o.waiting) == 0:
		l.start()
	default:
		l.stage = waiting
		o.waiting = append(o.waiting, l)
		o.evict()
	}
}

// start gives the lane a place and has its partitions looked up; o.mu is held.
func (l *lane) start() {
	l.o.slots++
	l.stage = finding
	l.o.work.Go(l.find)
}

// serve gives places that are free to lanes that wait; o.mu is held.
func (o *Outbox) serve() {
	for o.slots < o.c.Producers && len(o.waiting) > 0 && o.life.Err() == nil {
		l := o.waiting[0]
		o.waiting = slices.Delete(o.waiting, 0, 1)
		l.stage = idle
		if l.queue.first != nil {
			l.start()
		}
		l.rest()
	}
}

// evict closes the lane that was idle longest for one that waits. Where none is idle,
// the one that is open longest gets no more messages, and is closed when it has
// answered: so topics take turns where there are more than places. o.mu is held.
func (o *Outbox) evict() {
	var unused, oldest *lane
	leaving := o.leaving
	for _, l := range o.lanes {
		switch {
		case l.stage != open:
		case l.draining:
			leaving++
		case l.queue.first == nil && l.busy == 0 && l.work == 0:
			if unused == nil || l.used < unused.used {
				unused = l
			}
		case oldest == nil || l.made < oldest.made:
			oldest = l
		}
	}
	switch {
	case leaving >= len(o.waiting):
	case unused != nil:
		unused.close()
	case oldest != nil:
		oldest.draining = true
		oldest.rest()
	}
}

// find looks up how many partitions the topic has, and tries again what passes as
// long as a message waits for it.
func (l *lane) find() {
	o := l.o
	var pause time.Duration
	for {
		n, err := l.partitions()
		o.mu.Lock()
		if err == nil {
			l.opened(n)
			o.leave()
			return
		}
		f := client.Explain("open the topic "+l.topic.String(), err)
		l.why = f
		busy := f.Transient && f.Code == core.FaultExhausted // with look-ups: a quota is not among them
		if l.queue.first == nil || o.life.Err() != nil || !passes(f) && !busy {
			l.refuse(f)
			l.vacate()
			o.leave()
			return
		}
		o.mu.Unlock()
		pause = longer(pause)
		o.sleep(pause)
	}
}

func (l *lane) partitions() (int, error) {
	ctx, cancel := context.WithTimeout(l.o.life, l.o.c.Timeout)
	defer cancel()
	return l.o.c.Client.Partitions(ctx, l.topic.Base())
}

// discover has new partitions looked for where it is time; o.mu is held.
func (l *lane) discover() {
	o := l.o
	if !l.partitioned || l.looking || o.life.Err() != nil || o.clock()-l.looked < o.c.Discovery {
		return
	}
	l.looking = true
	l.work++
	o.work.Go(func() {
		n, err := l.partitions()
		if err != nil {
			o.c.Log.Debug("Pulsar topic not looked up, its partitions stay as they are", "topic", l.base, "error", err)
		}
		o.mu.Lock()
		l.looking, l.looked = false, o.clock()
		l.work--
		if err == nil {
			l.grow(n)
		}
		l.rest()
		o.leave()
	})
}

// passes reports whether an error may be over in a moment, as one is when a topic
// moves to another broker. What stands longer, such as a quota, the sender is told
// at once.
func passes(f *core.Fault) bool {
	return f.Transient && (f.Code == core.FaultUnavailable || f.Code == core.FaultTimeout)
}

// longer is the step of the pause behind one of a step.
func longer(step time.Duration) time.Duration { return min(max(2*step, firstPause), lastPause) }

// sleep waits, less by chance so that not all come back in one moment, and until
// nothing more is to be opened. Where no broker can be reached it ends when one can.
func (o *Outbox) sleep(step time.Duration) {
	up, changed := o.c.Client.Up()
	if up {
		changed = nil
	}
	t := time.NewTimer(step/2 + rand.N(step/2+1))
	defer t.Stop()
	select {
	case <-t.C:
	case <-changed:
	case <-o.life.Done():
	}
}
