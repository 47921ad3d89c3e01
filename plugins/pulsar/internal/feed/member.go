// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/backoff"
)

// member is one consumer of the library, for one connection: it is not brought back
// but made anew.
type member struct {
	p        *Partition
	consumer pulsar.Consumer
	arrived  chan pulsar.ConsumerMessage
	epoch    uint64
	back     bool // the pump says first that the partition is back

	lost     chan struct{} // closed: the broker or the connection has left the consumer
	loseOnce sync.Once
	stop     chan struct{} // closed: the pump ends
	stopOnce sync.Once
	pumped   chan struct{} // closed: it has ended

	asking atomic.Bool // the next policy is for prove
	proved chan error  // what prove has found

	doubted chan (<-chan struct{}) // capacity 1: acks without an answer, each until it has one
	mute    bool                   // the keeper's: the library still waits for an answer

	mu     sync.Mutex
	calls  int           // into the consumer, that are out
	closed bool          // none begins any more
	idle   chan struct{} // closed: none is out, and none begins
}

func newMember(p *Partition) *member {
	return &member{
		p:       p,
		arrived: make(chan pulsar.ConsumerMessage, places(p.feed.ReceiverQueue, 1, batchMessages)),
		lost:    make(chan struct{}),
		stop:    make(chan struct{}),
		pumped:  make(chan struct{}),
		proved:  make(chan error, 1),
		doubted: make(chan (<-chan struct{}), 1),
		idle:    make(chan struct{}),
	}
}

// policy is what the library asks for its pauses between tries. It does so when the
// consumer has lost its connection, before the first try, of which the options allow
// none; and when it is asked for the last id. It comes from a goroutine of the library,
// but for the question.
func (m *member) policy() backoff.Policy {
	if m.asking.CompareAndSwap(true, false) {
		return once{m}
	}
	m.lose()
	return once{m}
}

// lose says that the consumer is lost: nothing of it is passed on any more.
func (m *member) lose() {
	m.loseOnce.Do(func() { close(m.lost) })
	m.quit()
}

// mistrust has the keeper look after a consumer whose acks have no answer yet. over is
// closed when they are out no more.
func (m *member) mistrust(over <-chan struct{}) {
	select {
	case m.doubted <- over:
	default: // it does already
	}
}

// once is a policy with no second try. After a question it would wait for ever for an
// answer from a consumer that is closed meanwhile.
type once struct{ m *member }

func (o once) Next() time.Duration {
	o.m.found(errNoProof)
	return never
}

func (once) IsMaxBackoffReached() bool { return false }
func (once) Reset()                    {}

var errNoProof = errors.New("the broker does not know the consumer any more")

// prove asks the broker for something that only a living consumer is answered.
func (m *member) prove() {
	if !m.enter() {
		return
	}
	m.p.feed.library.Go(func() {
		defer m.exit()
		m.asking.Store(true)
		_, err := m.consumer.GetLastMessageIDs()
		m.asking.Store(false) // where the consumer was closed before it asked for a policy
		m.found(err)
	})
}

func (m *member) found(err error) {
	select {
	case m.proved <- err:
	default: // told already
	}
}

// enter says that a call into the consumer begins. A call that races the consumer's
// Close would wait for ever, so none begins after close has.
func (m *member) enter() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.calls++
	return true
}

func (m *member) exit() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls--; m.calls == 0 && m.closed {
		close(m.idle)
	}
}

// shut ends calls, and waits for those that are out. It reports false when some are
// out after the limit.
func (m *member) shut(limit time.Duration) bool {
	m.mu.Lock()
	if !m.closed {
		m.closed = true
		if m.calls == 0 {
			close(m.idle)
		}
	}
	m.mu.Unlock()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-m.idle:
		return true
	case <-t.C:
		return false
	}
}

// quit has the pump end.
func (m *member) quit() { m.stopOnce.Do(func() { close(m.stop) }) }

// halt ends the pump: nothing of the consumer is passed on any more.
func (m *member) halt() {
	m.quit()
	<-m.pumped
}

// close closes the consumer, and waits for the library until ctx ends: it may wait for
// a broker that does not answer. Its goroutine ends with the client at the latest.
func (m *member) close(ctx context.Context) {
	f := m.p.feed
	// Answers come in milliseconds. What is out then is in the library's queue, in front
	// of the close.
	m.shut(f.times.answers)
	done := make(chan struct{})
	f.library.Go(func() {
		defer close(done)
		m.consumer.Close()
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}
