// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// seek is a move of one partition, which its keeper carries out.
type seek struct {
	target
	ctx  context.Context // of who waits
	err  error
	done chan error // answered once
}

// target is where partitions move to.
type target struct {
	ledger, entry int64
	time          time.Time // zero = to the entry
}

// answer says what became of the seek, once the partition is read again.
func (s *seek) answer() {
	if s != nil {
		s.done <- s.err
	}
}

// Seek moves the subscription to a position, in all partitions at once; an exact
// position concerns its own partition, the others stay where they are, and in a batch
// it is the batch. The time is that of publishing. Seek returns when the partitions are
// read from there, or ctx ends: what was read before is stale then. One runs at a time.
// A fault says how many partitions could not be moved: the others have, and it is within a
// [*pluginapi.PartlyMovedError].
func (f *Feed) Seek(ctx context.Context, to pluginapi.Position) error {
	where, partitions, err := f.target(to)
	if err != nil {
		return err
	}
	select {
	case f.moving <- struct{}{}:
	case <-ctx.Done():
		return fault.Of("seek", context.Cause(ctx))
	}
	defer func() { <-f.moving }()
	if f.ctx.Err() != nil {
		return fault.Closed("seek")
	}
	results := make(chan error, len(partitions))
	for _, p := range partitions {
		go func() { results <- p.seek(ctx, where) }()
	}
	failed, moved := 0, false
	var first error
	for range partitions {
		if err := <-results; err != nil {
			failed++
			moved = moved || errors.As(err, new(*pluginapi.PartlyMovedError))
			first = cmp.Or(first, err)
		}
	}
	if first == nil {
		return nil
	}
	if len(partitions) > 1 {
		first = fault.Of(fmt.Sprintf("%d of %d partitions have not moved, the others have", failed, len(partitions)), first)
	}
	if moved || failed < len(partitions) {
		return &pluginapi.PartlyMovedError{Err: first}
	}
	return first
}

// target is where a position is, and what moves there.
func (f *Feed) target(to pluginapi.Position) (target, []*Partition, error) {
	switch to.Kind {
	case pluginapi.PositionBeginning:
		return target{ledger: -1, entry: -1}, f.all(), nil
	case pluginapi.PositionEnd:
		return target{ledger: math.MaxInt64, entry: math.MaxInt64}, f.all(), nil
	case pluginapi.PositionTime:
		return target{time: to.Time}, f.all(), nil
	case pluginapi.PositionExact:
		return f.exact(to.Value)
	default:
		return target{}, nil, fault.Refusal(core.FaultInvalid, "seek: there is no position of kind %d", to.Kind)
	}
}

func (f *Feed) exact(position []byte) (target, []*Partition, error) {
	n, id, err := topic.DecodePosition(position)
	if err != nil {
		return target{}, nil, fault.Of("seek", err)
	}
	f.mu.Lock()
	p := f.partitions[n]
	f.mu.Unlock()
	if p == nil {
		return target{}, nil, fault.Refusal(core.FaultNotFound, "seek: subscription %q does not read %s", f.Subscription, n)
	}
	return target{ledger: id.Ledger, entry: id.Entry}, []*Partition{p}, nil
}

// seek has the partition's keeper move it.
func (p *Partition) seek(ctx context.Context, where target) error {
	s := &seek{target: where, ctx: ctx, done: make(chan error, 1)}
	what := "seek in " + p.Scope
	select {
	case p.seeks <- s:
	case <-p.done:
		return fault.Refusal(core.FaultClosed, "%s: it is read no more", what)
	case <-ctx.Done():
		return fault.Of(what+": it has no consumer at the moment", context.Cause(ctx))
	}
	select {
	case err := <-s.done:
		switch _, refused := client.Refused(err); {
		case err == nil:
			return nil
		case refused, errors.Is(err, errUnanswered):
			return client.Explain(what, err)
		default: // the broker may have heard of it
			return &pluginapi.PartlyMovedError{Err: client.Explain(what, err)}
		}
	case <-ctx.Done():
		return &pluginapi.PartlyMovedError{Err: fault.Of(what+": it may have moved", context.Cause(ctx))}
	}
}

// move moves the subscription by means of a consumer, which the broker closes with that.
// Acks are over before: one that came after would take a message away that is to come
// again.
func (m *member) move(s *seek) error {
	m.halt()
	if !m.shut(m.p.feed.times.closing) {
		return errUnanswered
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.p.ctx, func() { cancel(errClosed) })()
	_, err := m.conn.Ask(ctx, wire.TypeSuccess, func(dst []byte, number uint64) []byte {
		if s.time.IsZero() {
			return wire.AppendSeek(dst, number, m.id, s.ledger, s.entry)
		}
		return wire.AppendSeekTime(dst, number, m.id, s.time.UnixMilli())
	})
	return err
}

var errUnanswered = errors.New("the broker does not answer acks")
