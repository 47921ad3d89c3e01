// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// queueSub reads one queue.
type queueSub struct {
	q      *queues
	name   string
	x      *queue
	mine   map[*item]bool
	caught bool
	receipts
}

func (s *queueSub) Profiles() []core.Capabilities {
	if s.q.narrowed != nil {
		return s.q.narrowed(s.name)
	}
	return s.q.profilesOf(s.name)
}

func (s *queueSub) Receive(ctx context.Context, room pluginapi.Room) (pluginapi.Batch, error) {
	s.passedOn(room)
	for {
		s.q.mu.Lock()
		n := min(room.Messages, len(s.x.ready))
		if b := (pluginapi.Batch{Reports: s.x.strange}); len(b.Reports) > 0 {
			s.x.strange = nil
			s.q.mu.Unlock()
			return b, nil
		}
		if n > 0 {
			s.takeReceipts()
			var b pluginapi.Batch
			for _, i := range s.x.ready[:n] {
				i.count++
				s.x.out[i], s.mine[i] = true, true
				s.x.received++
				d := pluginapi.Delivery{
					Handle: i, Message: i.m, Identity: i.m.Payload, Carry: i.carry,
					Position: strconv.AppendInt(nil, int64(s.x.received), 10),
				}
				if s.q.source.Counts == core.CountNative {
					d.Attempt = i.count
				}
				if s.q.delivered != nil {
					s.q.delivered(i.m)
				}
				b.Deliveries = append(b.Deliveries, d)
			}
			s.x.ready = slices.Clone(s.x.ready[n:])
			s.caught = false
			s.q.mu.Unlock()
			return b, nil
		}
		if err := s.x.fault; err != nil {
			s.x.fault = nil
			s.q.mu.Unlock()
			return pluginapi.Batch{}, err
		}
		if s.x.ended && len(s.x.ready) == 0 {
			s.q.mu.Unlock()
			return pluginapi.Batch{}, io.EOF
		}
		if s.x.replays && !s.caught && len(s.x.ready) == 0 {
			s.caught = true
			s.q.mu.Unlock()
			return pluginapi.Batch{CaughtUp: true}, nil
		}
		wake := s.x.wake
		s.q.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return pluginapi.Batch{}, ctx.Err()
		}
	}
}

func (s *queueSub) Settle(_ context.Context, vs []pluginapi.Verdict) []pluginapi.Result {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	out := make([]pluginapi.Result, len(vs))
	for n, v := range vs {
		out[n] = s.settle(v)
	}
	return out
}

func (s *queueSub) settle(v pluginapi.Verdict) pluginapi.Result {
	i, ok := v.Handle.(*item)
	if !ok || !s.mine[i] {
		return pluginapi.Result{Status: pluginapi.ResultStale}
	}
	words := map[core.VerdictKind]string{
		core.VerdictAck: "ack", core.VerdictReject: "reject", core.VerdictRequeue: "requeue", core.VerdictRelease: "release",
	}
	if s.q.settled != nil {
		s.q.settled(i.m, v)
	}
	s.x.verdicts = append(s.x.verdicts, words[v.Kind]+" "+string(i.m.Payload))
	switch v.Kind {
	case core.VerdictAck, core.VerdictReject:
		delete(s.mine, i)
		delete(s.x.out, i)
	case core.VerdictRequeue:
		delete(s.mine, i)
		delete(s.x.out, i)
		s.x.ready = append(s.x.ready, i)
		s.x.bell()
	}
	return pluginapi.Result{Status: pluginapi.ResultDone}
}

func (s *queueSub) Close(context.Context) error {
	s.StopIntake()
	return nil
}

// errBroken is what a broken fake says.
var errBroken = errors.New("broken on purpose")

// refuseFor refuses every publish to a name for a reason that may pass.
func refuseFor(name string) func(pluginapi.Outgoing) *pluginapi.Receipt {
	return func(m pluginapi.Outgoing) *pluginapi.Receipt {
		if m.Message.Name != name {
			return nil
		}
		return &pluginapi.Receipt{
			Status: pluginapi.ReceiptRefused,
			Fault:  &core.Fault{Code: core.FaultUnavailable, Message: "no peer", Transient: true},
		}
	}
}

// unavailable is a passing fault.
func unavailable(text string) error {
	return &core.Fault{Code: core.FaultUnavailable, Message: text, Transient: true, RetryAfter: time.Millisecond}
}
