// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
)

// What is waited for a producer of the library.
const (
	// stuckAfter is how long one may reconnect while a broker can be reached, before
	// it is looked after.
	stuckAfter = 2 * time.Second
	// maxProbes is how often another one may be made in the place of one that still
	// has messages. The library pauses for 3 s at most between its own tries.
	maxProbes = 4
	// closeLimit is how long one that closes keeps its place in the cache.
	closeLimit = 10 * time.Second
)

// producer is a producer of the library. All of it but began is under the outbox's
// mu.
type producer struct {
	lane        *lane
	library     pulsar.Producer
	partitioned bool // the topic has partitions

	sent list      // what the library has not answered
	lent int       // entries that the library has, with and without a receipt
	used time.Time // when it was last idle
	made time.Time

	// current is the entry that was given to the library last, and began says that
	// the library found itself open when it was.
	current *entry
	began   atomic.Bool

	numbered bool // the last message had a number of its own
	draining bool // nothing more is given to it, another topic needs the place
	gone     bool
	released bool
	freed    chan struct{} // closed when released
	down     int           // partitions that reconnect
	probes   int           // since it is down
	watch    *time.Timer   // set while down
}

// takes reports whether the library may be given an entry. It may have closed the
// producer instead. o.mu is held.
func (p *producer) takes(e *entry) bool {
	if p.down > 0 || p.draining || p.lent >= p.lane.o.c.Window {
		return false
	}
	if p.numbered && e.message.SequenceID == nil {
		// The library's own numbers stand where they stood before the others, and a
		// broker with deduplication would drop what has one. A new producer is told
		// the last number.
		if p.lent == 0 {
			p.discard()
		}
		return false
	}
	return true
}

// BeforeSend is called by the library once it has found itself open.
func (p *producer) BeforeSend(pulsar.Producer, *pulsar.ProducerMessage) { p.began.Store(true) }

// OnSendAcknowledgement is part of the same interface.
func (p *producer) OnSendAcknowledgement(pulsar.Producer, *pulsar.ProducerMessage, pulsar.MessageID) {
}

// lost is called by the library when a partition begins to reconnect. What comes
// meanwhile stays in the queue: nobody can have stored it.
func (p *producer) lost() {
	o := p.lane.o
	o.mu.Lock()
	defer o.mu.Unlock()
	p.down++
	if p.watch == nil && !p.gone {
		p.watch = time.AfterFunc(stuckAfter, p.stuck)
	}
}

// back is called by the library when a partition has reconnected.
func (p *producer) back() {
	o := p.lane.o
	o.mu.Lock()
	p.down--
	if p.down == 0 {
		p.probes = 0
		p.unwatch()
		if !p.gone {
			p.lane.pump()
		}
	}
	o.leave()
}

// stuck looks after a producer that does not come back although a broker is there:
// the library tries on for ever where it is refused, or has given up without a word.
func (p *producer) stuck() {
	o := p.lane.o
	up, _ := o.c.Client.Up()
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case p.gone || p.down == 0:
	case up:
		o.work.Add(1)
		go p.probe()
	default:
		p.watch.Reset(stuckAfter)
	}
}

// probe tries another producer in the place of one that is stuck, and puts it there,
// or refuses the queue with the reason why there is none. As long as the library has
// messages, what passes is left to it, for it sends them again.
func (p *producer) probe() {
	l := p.lane
	o := l.o
	defer o.work.Done()
	other, err := l.create()
	o.mu.Lock()
	defer o.leave()
	p.probes++
	waits := p.lent > 0 && p.probes < maxProbes
	switch {
	case p.gone || p.down == 0:
	case err == nil && !waits:
		p.discard()
		o.slots++ // p gives its own back
		l.opened(other)
		return
	case err == nil, mayPass(err):
		p.watch.Reset(stuckAfter)
	default:
		p.discard()
		l.refuse(l.explain(err))
		l.rest()
	}
	if err == nil {
		o.work.Go(other.closeLibrary)
	}
}

// mayPass reports whether a producer that is stuck may come back by itself. To the
// broker it may still be there, and the name taken.
func mayPass(err error) bool {
	f := client.Explain("", err)
	return passes(f) || f.Code == core.FaultConflict
}

func (p *producer) unwatch() {
	if p.watch != nil {
		p.watch.Stop()
		p.watch = nil
	}
}

// discard closes a producer; its lane has none any more. o.mu is held.
func (p *producer) discard() {
	if p.gone {
		return
	}
	l := p.lane
	o := l.o
	p.gone = true
	p.unwatch()
	p.freed = make(chan struct{})
	l.producer, l.former = nil, p.freed
	delete(o.producers, p)
	o.closing[p] = struct{}{}
	o.leaving++
	o.work.Add(1)
	go p.close()
}

// close closes the library's producer, which answers what it has. What it forgets
// is answered here.
func (p *producer) close() {
	o := p.lane.o
	defer o.work.Done()
	limit := time.AfterFunc(closeLimit, func() {
		o.mu.Lock()
		p.release()
		o.leave()
	})
	p.closeLibrary()
	limit.Stop()
	o.mu.Lock()
	for e := p.sent.first; e != nil; e = p.sent.first {
		e.finish(pluginapi.Unknown(abandoned(e)))
	}
	delete(o.closing, p)
	p.release()
	o.leave()
}

// closeLibrary contains a panic of Close on a producer that closes itself at that
// moment: it sends to a closed channel.
func (p *producer) closeLibrary() {
	defer func() {
		if v := recover(); v != nil {
			p.lane.o.c.Log.Debug("Pulsar producer closed twice", "topic", p.lane.base, "panic", v)
		}
	}()
	p.library.Close()
}

// release gives the producer's place to who waits for one; o.mu is held.
func (p *producer) release() {
	if p.released {
		return
	}
	p.released = true
	close(p.freed)
	l := p.lane
	if l.former == p.freed {
		l.former = nil
	}
	l.o.leaving--
	l.o.slots--
	l.o.serve()
	l.rest()
}
