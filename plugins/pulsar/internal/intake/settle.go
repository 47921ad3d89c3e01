// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"slices"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// Settle carries out acks and requeues. Each is answered at once, by DONE where the
// delivery is there: an ack leaves with the next ones of its partition, is sent again
// while the broker cannot take it, and is waited for by Close; a requeue leaves with
// this call. An ack of a delivery that is void counts as well, for the broker takes
// acks by id.
func (in *Intake) Settle(_ context.Context, vs []pluginapi.Verdict) []pluginapi.Result {
	now := time.Now()
	out := make([]pluginapi.Result, len(vs)) // Held may settle more before these are read
	in.mu.Lock()
	full, patient := in.full(), len(in.patient)
	for i := range vs {
		out[i].Status = in.carryOut(&vs[i], now)
	}
	nacks := in.takeNacks()
	news := len(in.again) > 0 || len(in.returns) > 0 || len(in.patient) > patient || full && !in.full()
	in.mu.Unlock()
	in.nack(nacks)
	if news {
		wake(in.changed)
	}
	return out
}

// carryOut carries out one verdict. in.mu is held.
func (in *Intake) carryOut(v *pluginapi.Verdict, now time.Time) pluginapi.ResultStatus {
	e, ok := v.Handle.(*entry)
	if !ok {
		return pluginapi.ResultUnsupported
	}
	there := e.state == stateHanded || e.state == stateHeld
	switch {
	case v.Kind == core.VerdictAck && there:
		e.lane.settle(e)
	case v.Kind == core.VerdictAck:
		return in.ackLate(e, now)
	case v.Kind != core.VerdictRequeue:
		return pluginapi.ResultUnsupported
	case !there && e.returns: // as the host wants it to
		in.returns = slices.DeleteFunc(in.returns, func(x *entry) bool { return x == e })
	case !there:
		return pluginapi.ResultStale
	default:
		in.giveBack(e, now)
	}
	return pluginapi.ResultDone
}

// giveBack makes a delivery come again: from the broker where that can bring back
// single messages, else from here. in.mu is held.
func (in *Intake) giveBack(e *entry, now time.Time) {
	switch {
	case e.lane.lost:
		e.lane.drop(e, now)
	case e.late:
		e.lane.drop(e, now)
		e.lane.remember(e, now)
	case in.counts:
		if e.batch != nil {
			e.batch.again = true
		}
		in.askAgain(e, now)
		e.lane.drop(e, now)
	default:
		e.lane.rewind(e, now)
	}
}

func (in *Intake) takeNacks() []nack {
	n := in.nacks
	in.nacks = nil
	return n
}

// nack asks the broker for messages again. in.mu is not held.
func (in *Intake) nack(ns []nack) {
	var ids []wire.MessageID
	for len(ns) > 0 {
		p, others := ns[0].partition, ns[:0]
		ids = ids[:0]
		for _, n := range ns {
			if n.partition == p {
				ids = append(ids, n.id)
			} else {
				others = append(others, n)
			}
		}
		in.calls.nack(p, ids)
		ns = others
	}
}

// Release lets deliveries go: nothing is said to the broker. They come again by the
// ack timeout, or when the consumer is gone (S-PUL-33, S-PUL-34).
func (in *Intake) Release(handles []any) {
	now := time.Now()
	in.mu.Lock()
	defer in.mu.Unlock()
	full := in.full()
	for _, h := range handles {
		e, ok := h.(*entry)
		switch {
		case !ok || e.state != stateHanded && e.state != stateHeld:
		case e.late:
			e.lane.drop(e, now)
			e.lane.remember(e, now)
		case in.timeout > 0:
			e.leave(stateReleased)
		default:
			e.lane.drop(e, now)
		}
	}
	if full && !in.full() || len(in.nacks) > 0 {
		wake(in.changed)
	}
}

// Hold is told of deliveries that are handed back when their wait is over: no ack
// timeout counts for them until then (S-PUL-06).
func (in *Intake) Hold(handles []any) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, h := range handles {
		if e, ok := h.(*entry); ok && e.state == stateHanded {
			e.leave(stateHeld)
			in.hands.remove(e)
			e.part()
		}
	}
	if len(in.nacks) > 0 {
		wake(in.changed)
	}
}

// AckLate acks deliveries that are void, by their ids: what has come again since runs
// once more, and that is all (S-PUL-22).
func (in *Intake) AckLate(_ context.Context, handles []any) []pluginapi.Result {
	now := time.Now()
	out := make([]pluginapi.Result, len(handles))
	in.mu.Lock()
	defer in.mu.Unlock()
	for i, h := range handles {
		out[i].Status = pluginapi.ResultStale
		if e, ok := h.(*entry); ok {
			out[i].Status = in.ackLate(e, now)
		}
	}
	return out
}

// ackLate acks a message by the id of a delivery that is over. One that waits to be
// handed out again is not; one that the host has again stays, with a verdict of its
// own. in.mu is held.
func (in *Intake) ackLate(e *entry, now time.Time) pluginapi.ResultStatus {
	l := e.lane
	if e.state != stateOver || e.spent || l.lost {
		return pluginapi.ResultStale
	}
	l.alert(now)
	n := in.blocks.take()
	*n = entry{lane: l, at: e.at, epoch: e.epoch, batch: e.batch}
	e.spent = true
	switch other := l.table[e.at]; {
	case other == nil:
		n.batch = nil
		if e.batch != nil {
			n.batch = l.join(e.at, e.batch.size)
		}
		l.enter(n)
	case other.state == stateQueued || other.state == stateReleased:
		if n.batch != nil {
			n.batch.open++
		}
		l.drop(other, now)
		l.table[n.at] = n
	default:
		other.late = true
	}
	l.ack(n)
	return pluginapi.ResultDone
}
