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

	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
)

// member is one consumer of the library for one partition, and what is known of it.
type member struct {
	p        *Partition
	consumer pulsar.Consumer
	arrived  chan pulsar.ConsumerMessage
	policy   func() backoff.Policy

	// asking says that the next policy the library makes is for a question of ours and
	// for no reconnect.
	asking atomic.Bool
	back   atomic.Bool   // a batch with Back is owed
	wake   chan struct{} // for the pump
	stop   chan struct{} // ends the pump
	pumped chan struct{} // it has ended

	proved  chan error    // of prove
	changed chan struct{} // the keeper looks again
	mu      sync.Mutex
	lost    time.Time // since when it reconnects, zero = it does not
	failed  int       // tries
	calls   int       // that are out
	closed  bool      // no call begins any more
	idle    chan struct{}
}

func newMember(p *Partition) *member {
	m := &member{
		p:       p,
		arrived: make(chan pulsar.ConsumerMessage, batchMessages),
		wake:    make(chan struct{}, 1),
		stop:    make(chan struct{}),
		pumped:  make(chan struct{}),
		proved:  make(chan error, 1),
		changed: make(chan struct{}, 1),
		idle:    make(chan struct{}),
	}
	m.policy = client.Backoff(client.Hooks{Began: m.began, Failed: m.missed, Back: m.returned})
	return m
}

// backoff is what the library calls when it begins to reconnect, and when it is asked
// for the last id.
func (m *member) backoff() backoff.Policy {
	if m.asking.CompareAndSwap(true, false) {
		return once{m}
	}
	return m.policy()
}

func (m *member) began() {
	m.p.began(m)
	m.mu.Lock()
	m.lost, m.failed = time.Now(), 0
	m.mu.Unlock()
	signal(m.changed)
}

func (m *member) missed(tries int) {
	m.mu.Lock()
	m.failed = tries
	m.mu.Unlock()
	signal(m.changed)
}

func (m *member) returned() {
	m.mu.Lock()
	m.lost, m.failed = time.Time{}, 0
	m.mu.Unlock()
	m.p.back(m)
	signal(m.changed)
}

// state is since when the consumer reconnects, zero = it does not, and how often that
// has failed.
func (m *member) state() (lost time.Time, failed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost, m.failed
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

// halt ends the pump: nothing of the consumer is passed on any more.
func (m *member) halt() {
	select {
	case <-m.stop:
	default:
		close(m.stop)
	}
	<-m.pumped
}

// once is the policy for a question: it is not asked again, for the library would wait
// for ever for the answer of a consumer that is closed meanwhile.
type once struct{ m *member }

func (o once) Next() time.Duration {
	select {
	case o.m.proved <- errNoProof:
	default:
	}
	return never
}

func (once) IsMaxBackoffReached() bool { return false }
func (once) Reset()                    {}

var errNoProof = errors.New("the broker does not know the consumer any more")

// prove asks the broker for something that only a living consumer is answered. The
// result is in proved.
func (m *member) prove() {
	if !m.enter() {
		return
	}
	m.p.feed.library.Go(func() {
		defer m.exit()
		m.asking.Store(true)
		_, err := m.consumer.GetLastMessageIDs()
		m.asking.Store(false)
		select {
		case m.proved <- err:
		default:
		}
	})
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

// close closes the consumer, and waits for the library until ctx ends: it may wait for
// a broker that does not answer. Its goroutine ends with the client at the latest.
func (m *member) close(ctx context.Context) {
	f := m.p.feed
	m.halt()
	// Answers come in milliseconds. What waits for a broker that is gone is in the
	// library's queue by then, in front of the close.
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

// signal wakes who waits for c.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
