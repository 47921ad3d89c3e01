// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// The pauses between two tries to make a producer.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 3 * time.Second
)

// need has a producer made for the lane, once there is a place for it; o.mu is held.
func (l *lane) need() {
	o := l.o
	switch {
	case l.making || l.waits:
	case o.slots < o.c.Producers:
		o.slots++
		l.making = true
		o.work.Add(1)
		go l.make()
	default:
		l.waits = true
		o.waiting = append(o.waiting, l)
		o.evict()
	}
}

// serve gives places that are free to lanes that wait; o.mu is held.
func (o *Outbox) serve() {
	for o.slots < o.c.Producers && len(o.waiting) > 0 {
		l := o.waiting[0]
		o.waiting = slices.Delete(o.waiting, 0, 1)
		l.waits = false
		if l.queue.first != nil {
			l.need()
		}
		l.rest()
	}
}

// evict closes the producer that was idle longest for a lane that waits. Where none
// is idle, the one that is open longest gets no more messages, and is closed when it
// has answered: so topics take turns where there are more than places. o.mu is held.
func (o *Outbox) evict() {
	var idle, oldest *producer
	closing := o.leaving
	for p := range o.producers {
		l := p.lane
		switch {
		case p.draining:
			closing++
		case l.queue.first == nil && p.lent == 0 && !l.sending:
			if idle == nil || p.used.Before(idle.used) {
				idle = p
			}
		case oldest == nil || p.made.Before(oldest.made):
			oldest = p
		}
	}
	switch {
	case closing >= len(o.waiting):
	case idle != nil:
		idle.discard()
	case oldest != nil:
		oldest.draining = true
		oldest.lane.rest()
	}
}

// make makes a producer, and tries again what passes as long as a message waits for
// it.
func (l *lane) make() {
	o := l.o
	defer o.work.Done()
	l.awaitFormer()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		p, err := l.create()
		o.mu.Lock()
		if err == nil {
			l.opened(p)
			o.leave()
			return
		}
		f := l.explain(err)
		l.why = f
		if l.queue.first == nil || o.stopped() || !passes(f) {
			l.gaveUp(f)
			o.leave()
			return
		}
		o.mu.Unlock()
		o.sleep(pause)
	}
}

// passes reports whether an error may be over in a moment, as one is when a topic
// moves to another broker. What stands longer, such as a quota, the sender is told
// at once.
func passes(f *core.Fault) bool {
	return f.Transient && (f.Code == core.FaultUnavailable || f.Code == core.FaultTimeout)
}

// explain is why the lane has no producer.
func (l *lane) explain(err error) *core.Fault {
	return client.Explain("open the topic "+l.topic.String(), err)
}

// awaitFormer waits until the lane's former producer is closed: two of one name
// cannot be open.
func (l *lane) awaitFormer() {
	l.o.mu.Lock()
	former := l.former
	l.o.mu.Unlock()
	if former == nil {
		return
	}
	select {
	case <-former: // within closeLimit
	case <-l.o.stop:
	}
}

// sleep waits, unless nothing more is to be made.
func (o *Outbox) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-o.stop:
	}
}

func (o *Outbox) stopped() bool {
	select {
	case <-o.stop:
		return true
	default:
		return false
	}
}

// opened gives the lane its producer; o.mu is held.
func (l *lane) opened(p *producer) {
	o := l.o
	l.making, l.why = false, nil
	l.producer = p
	p.made = time.Now()
	p.used = p.made
	o.producers[p] = struct{}{}
	if o.stopped() {
		p.discard()
		return
	}
	l.pump()
	if len(o.waiting) > 0 {
		o.evict()
	}
}

// gaveUp refuses what waits for a producer that cannot be made; o.mu is held.
func (l *lane) gaveUp(why *core.Fault) {
	l.making = false
	l.o.slots--
	l.refuse(why)
	l.o.serve()
	l.rest()
}

// create makes a producer of the library.
func (l *lane) create() (*producer, error) {
	o := l.o
	ctx, cancel := context.WithTimeout(context.Background(), o.c.Timeout)
	defer cancel()
	n, err := o.c.Client.Partitions(ctx, l.topic.Base())
	if err != nil {
		return nil, err
	}
	p := &producer{lane: l, partitioned: n > 0 && l.topic.Partition == topic.NoPartition}
	options := o.options(l)
	options.Interceptors = pulsar.ProducerInterceptors{p}
	options.BackOffPolicyFunc = client.Backoff(client.Hooks{Began: p.lost, Back: p.back})
	p.library, err = o.c.Client.Library().CreateProducer(options)
	return p, err
}

// options are those of a lane's producer. The library's own timer is off: it looks
// at a queue that a blocked connection locks, may take twice its time, and lives on
// for as long after Close; and nothing of the library's is to wait, since no more is
// given to it than it has room for.
func (o *Outbox) options(l *lane) pulsar.ProducerOptions {
	return pulsar.ProducerOptions{
		Topic: l.topic.String(), Name: o.c.Name,
		SendTimeout:                     -1,
		DisableBlockIfQueueFull:         true,
		MaxPendingMessages:              o.c.Window,
		CompressionType:                 o.c.Compression,
		DisableBatching:                 o.c.Batch <= 0,
		BatchingMaxPublishDelay:         o.c.Batch,
		BatchingMaxMessages:             uint(max(o.c.BatchMessages, 0)),
		PartitionsAutoDiscoveryInterval: o.c.Discovery,
	}
}
