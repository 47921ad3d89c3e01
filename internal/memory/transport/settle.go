// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"slices"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/wire"
	"github.com/longshore-go/longshore/pluginapi"
)

// voidLimit is how long a verdict that a lost connection overtook waits for the
// voids to be handed on, so that the host hears of them first.
const voidLimit = time.Second

// Settle carries out verdicts at the broker.
func (s *subscription) Settle(ctx context.Context, vs []pluginapi.Verdict) []pluginapi.Result {
	s.link.panicAt(memory.PanicSettle)
	s.link.hangSettle()
	results := make([]pluginapi.Result, len(vs))
	from := 0
	for i := range vs {
		if vs[i].Kind != core.VerdictAck {
			continue
		}
		last, before := s.link.countAck()
		if !last {
			continue
		}
		if before {
			s.settle(ctx, vs[from:i], results[from:i])
		} else {
			s.settle(ctx, vs[from:i+1], results[from:i+1])
		}
		from = i + 1
		s.link.exit(exitStatus)
	}
	s.settle(ctx, vs[from:], results[from:])
	return results
}

// settle sends one frame of verdicts and fills in their results.
func (s *subscription) settle(ctx context.Context, vs []pluginapi.Verdict, results []pluginapi.Result) {
	f := &wire.Frame{Kind: wire.Settle, Sub: s.number}
	var which []int
	s.mu.Lock()
	for i := range vs {
		v := &vs[i]
		results[i] = pluginapi.Result{Status: pluginapi.ResultStale}
		d, ok := v.Handle.(*delivery)
		if _, live := s.out[d]; !ok || !live {
			continue
		}
		if v.Kind == core.VerdictRelease {
			delete(s.out, d)
			results[i].Status = pluginapi.ResultDone
			continue
		}
		it := wire.Item{ID: d.id, Kind: uint8(v.Kind), Dur: v.Delay, Text: v.Reason}
		if v.Kind == core.VerdictExtend {
			it.Dur = v.Hold
		}
		f.Items = append(f.Items, it)
		which = append(which, i)
	}
	s.mu.Unlock()
	if len(which) == 0 {
		return
	}
	answer, err := s.link.call(ctx, f)
	if err != nil || len(answer.Items) != len(which) {
		s.overtaken(ctx)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, i := range which {
		results[i] = result(&answer.Items[n])
		if vs[i].Kind == core.VerdictExtend {
			continue
		}
		d := vs[i].Handle.(*delivery)
		delete(s.out, d)
		if vs[i].Kind == core.VerdictAck && results[i].Status == pluginapi.ResultDone && s.cumulative() {
			s.covered(d)
		}
	}
}

// covered forgets what a cumulative ack of d has settled as well. s.mu is held.
func (s *subscription) covered(d *delivery) {
	for o := range s.out {
		if o.d.Scope == d.d.Scope && o.id < d.id {
			delete(s.out, o)
		}
	}
}

// overtaken waits until the voids of a lost connection are handed on.
func (s *subscription) overtaken(ctx context.Context) {
	s.mu.Lock()
	told := s.told
	s.mu.Unlock()
	if told == nil {
		return
	}
	t := time.NewTimer(voidLimit)
	defer t.Stop()
	select {
	case <-told:
	case <-t.C:
	case <-ctx.Done():
	}
}

// Release forgets deliveries; the broker is told where it wants to know.
func (s *subscription) Release(handles []any) {
	f := &wire.Frame{Kind: wire.Released, Sub: s.number}
	s.mu.Lock()
	for _, h := range handles {
		if d, ok := h.(*delivery); ok {
			delete(s.out, d)
			f.Items = append(f.Items, wire.Item{ID: d.id})
		}
	}
	s.mu.Unlock()
	if !s.link.transport.tells {
		return
	}
	for items := range slices.Chunk(f.Items, wire.MaxItems) {
		f.Items = items
		_ = s.link.tell(f) // without a connection nobody wants to know
	}
}

func result(it *wire.Item) pluginapi.Result {
	r := pluginapi.Result{Fault: it.Fault}
	switch it.Kind {
	case wire.StatusDone:
		r.Status = pluginapi.ResultDone
	case wire.StatusStale:
		r.Status = pluginapi.ResultStale
	case wire.StatusUnsupported:
		r.Status = pluginapi.ResultUnsupported
	default:
		r.Status = pluginapi.ResultFailed
	}
	return r
}

// lateSubscription takes acks of deliveries that became void.
type lateSubscription struct{ *subscription }

// AckLate acks by the message's identity.
func (s lateSubscription) AckLate(ctx context.Context, handles []any) []pluginapi.Result {
	results := make([]pluginapi.Result, len(handles))
	f := &wire.Frame{Kind: wire.Settle, Sub: s.number}
	for i, h := range handles {
		results[i].Status = pluginapi.ResultStale
		if d, ok := h.(*delivery); ok {
			f.Items = append(f.Items, wire.Item{ID: d.id, Kind: uint8(core.VerdictAck), Flag: true, Position: d.d.Position})
		}
	}
	answer, err := s.link.call(ctx, f)
	if err != nil || len(answer.Items) != len(handles) {
		return results
	}
	for i := range results {
		results[i] = result(&answer.Items[i])
	}
	return results
}
