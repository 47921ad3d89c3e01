// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// maxSettle is the most verdicts of one script: the server does nothing else
// meanwhile.
const maxSettle = 512

// Settle carries verdicts out, in order.
func (s *subscription) Settle(ctx context.Context, vs []pluginapi.Verdict) []pluginapi.Result {
	results := make([]pluginapi.Result, 0, len(vs))
	for part := range slices.Chunk(vs, maxSettle) {
		results = append(results, s.settle(ctx, part)...)
	}
	return results
}

// settle carries out what one script takes.
func (s *subscription) settle(ctx context.Context, vs []pluginapi.Verdict) []pluginapi.Result {
	results := make([]pluginapi.Result, len(vs))
	steps := make([]any, 0, 3*len(vs))
	for _, v := range vs {
		x := v.Handle.(*lease)
		steps = append(steps, x.id, x.count, s.step(v))
	}
	asked := time.Now()
	there, err := s.runSettle(ctx, steps)
	if err == nil && len(there) != len(vs) {
		err = errAnswer
	}
	for i := range vs {
		switch {
		case err != nil:
			results[i] = pluginapi.Result{Status: pluginapi.ResultFailed, Fault: s.conn.endpoint.fault(err)}
		case there[i] == 0:
			results[i] = pluginapi.Result{Status: pluginapi.ResultStale}
		default:
			results[i] = pluginapi.Result{Status: pluginapi.ResultDone}
		}
		s.settled(vs[i], results[i].Status, asked)
	}
	s.wake()
	return results
}

// step is what settle.lua does for a verdict: ack, or set the time that the entry
// has been idle for. At hold it is due.
func (s *subscription) step(v pluginapi.Verdict) any {
	left := v.Delay // until it is due
	switch v.Kind {
	case core.VerdictAck:
		return "ack"
	case core.VerdictExtend:
		left = v.Hold
	}
	return (s.hold - left).Milliseconds()
}

// settled keeps the leases as the server does. What could not be carried out stays
// with its consumer, and is due when its hold is over.
func (s *subscription) settled(v pluginapi.Verdict, status pluginapi.ResultStatus, asked time.Time) {
	x := v.Handle.(*lease)
	switch {
	case status == pluginapi.ResultStale:
		s.leases.end(x, false)
	case status != pluginapi.ResultDone:
	case v.Kind == core.VerdictAck:
		s.leases.end(x, true)
	case v.Kind == core.VerdictExtend:
		s.leases.move(x, asked.Add(v.Hold), true)
	case v.Kind == core.VerdictRequeue:
		s.leases.move(x, time.Now().Add(v.Delay+time.Millisecond), false) // the server counts whole ones
	}
}

// AckLate acks what became void. The group knows an entry by its id, whoever has
// it now.
func (s *subscription) AckLate(ctx context.Context, handles []any) []pluginapi.Result {
	vs := make([]pluginapi.Verdict, len(handles))
	for i, h := range handles {
		vs[i] = pluginapi.Verdict{Handle: h, Kind: core.VerdictAck}
	}
	return s.Settle(ctx, vs)
}
