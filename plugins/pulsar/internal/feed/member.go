// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// member is one consumer of a broker, on one connection: it is not brought back but made
// anew. It is a client.ConsumerHandler.
type member struct {
	p     *Partition
	conn  *client.Conn
	id    uint64 // of the consumer, within the connection
	epoch uint64 // set before the broker may send

	life  context.Context // ends when the broker or the connection has left the consumer
	leave context.CancelCauseFunc
	gone  atomic.Bool // the broker has it no more, or cannot be told

	pace pace         // of what the broker may send
	held atomic.Int64 // bytes that its batches keep

	// Of the goroutine that reads the connection.
	building *Batch // what has come since the last pause, nil = nothing

	mute    bool          // the keeper's: the broker answers nothing
	doubted chan struct{} // capacity 1: acks had no answer in time
	proved  chan error    // capacity 1: what prove has found
	flooded chan struct{} // capacity 1: too much of it waits

	stop  chan struct{}  // closed with stopped
	idle  chan struct{}  // closed: no ack is out, and none begins
	pumps sync.WaitGroup // those that see to the queue, one at a time

	mu      sync.Mutex
	queue   []*Batch // for which there was no room
	pumping bool     // somebody sees to them
	stopped bool     // nothing is passed on any more
	acks    int      // that are out
	closed  bool     // none begins any more
}

func newMember(p *Partition, conn *client.Conn) *member {
	m := &member{
		p: p, conn: conn,
		stop: make(chan struct{}), doubted: make(chan struct{}, 1), proved: make(chan error, 1), flooded: make(chan struct{}, 1), idle: make(chan struct{}),
	}
	m.life, m.leave = context.WithCancelCause(context.Background())
	return m
}

var (
	errSentAway = errors.New("the broker has closed the consumer")
	errClosed   = errors.New("the subscription has ended")
	errNoProof  = fmt.Errorf("the broker does not answer it: %w", context.DeadlineExceeded)
	errFlooded  = errors.New("its messages are larger than those before, and too many of them wait")
	errNoAnswer = fmt.Errorf("no answer yet: %w", context.DeadlineExceeded)
)

// Active says whose turn it is on Failover.
func (m *member) Active(now bool) {
	if turn := m.p.feed.Turn; turn != nil {
		turn(m.p, now)
	}
}

// Closed says that the broker has closed the consumer.
func (m *member) Closed() { m.lose(errSentAway) }

// Lost says that the connection has ended.
func (m *member) Lost(err error) { m.lose(err) }

// lose says that the broker has the consumer no more: nothing of it is passed on.
func (m *member) lose(why error) {
	m.gone.Store(true)
	m.leave(why)
	m.quit()
}

// flow lets the broker send so many messages more.
func (m *member) flow(permits int) {
	if permits <= 0 || m.gone.Load() {
		return
	}
	m.conn.Send(func(dst []byte) []byte {
		return wire.AppendFlow(dst, m.id, uint32(min(permits, math.MaxInt32))) //nolint:gosec // in range
	})
}

// give gives permits back. Any goroutine may call it.
func (m *member) give(permits int) { m.flow(m.pace.left(permits)) }

// ack acks entries. It waits for the answer no longer than a living consumer needs for
// it, and has the keeper look after one that has none.
func (m *member) ack(acks []wire.Acked) error {
	ctx, cancel := context.WithTimeoutCause(m.life, m.p.feed.times.doubt, errNoAnswer)
	defer cancel()
	_, err := m.conn.Ask(ctx, wire.TypeAckResponse, func(dst []byte, number uint64) []byte {
		return wire.AppendAck(dst, number, m.id, acks)
	})
	switch {
	case err == nil:
		return nil
	case m.life.Err() != nil:
		return m.p.gone()
	case errors.Is(err, context.DeadlineExceeded):
		select {
		case m.doubted <- struct{}{}:
		default: // it is being looked after
		}
		return fault.Passing(core.FaultTimeout, "ack them again", "ack messages of %s: no answer within %v", m.p.Scope, m.p.feed.times.doubt)
	default:
		return client.Explain("ack messages of "+m.p.Scope, err)
	}
}

// nacksAtOnce is how many entries one command asks for: far less than a frame may have.
const nacksAtOnce = 4096

// nack asks for the entries of messages again.
func (m *member) nack(ids []wire.MessageID) {
	if m.gone.Load() {
		return
	}
	for some := range slices.Chunk(ids, nacksAtOnce) {
		m.conn.Send(func(dst []byte) []byte { return wire.AppendRedeliver(dst, m.id, some) })
	}
}

// prove asks the broker for something that only a living consumer is answered.
func (m *member) prove() {
	f := m.p.feed
	f.calls.Go(func() {
		ctx, cancel := context.WithTimeoutCause(m.life, f.times.proof, errNoProof)
		defer cancel()
		_, err := m.conn.Ask(ctx, wire.TypeLastIDResponse, func(dst []byte, number uint64) []byte {
			return wire.AppendLastID(dst, number, m.id)
		})
		m.proved <- err
	})
}

// enter says that an ack begins. None does after shut.
func (m *member) enter() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.acks++
	return true
}

func (m *member) exit() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.acks--; m.acks == 0 && m.closed {
		close(m.idle)
	}
}

// shut ends acks, and waits for those that are out. It reports false when some are out
// after the limit.
func (m *member) shut(limit time.Duration) bool {
	m.mu.Lock()
	if !m.closed {
		m.closed = true
		if m.acks == 0 {
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

// close ends the consumer: the broker gives to others what it has not acked. Where it
// does not say so within a limit, which is a short one where the feed ends, it is left to
// it: the consumer ends with its connection at the latest.
func (m *member) close(limit time.Duration) {
	if !m.gone.Load() {
		m.shut(min(limit, m.p.feed.times.answers)) // what is out has its answer in milliseconds
		ctx, cancel := context.WithTimeoutCause(m.life, limit, errNoAnswer)
		defer cancel()
		defer context.AfterFunc(m.p.feed.ctx, func() { time.AfterFunc(m.p.feed.times.parting, cancel) })()
		_, _ = m.conn.Ask(ctx, wire.TypeSuccess, func(dst []byte, number uint64) []byte {
			return wire.AppendCloseConsumer(dst, number, m.id)
		})
	}
	m.conn.ForgetConsumer(m.id)
	m.lose(errClosed)
}
