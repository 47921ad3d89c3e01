// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/longshore-go/longshore/host"
)

// PulsarHold is what is resident before a backlog: while deliveries wait to be
// handled again and the rest is read, or while the handler does not return.
type PulsarHold struct {
	Payload int              `json:"payload"`
	Backlog int              `json:"backlog"`
	Held    int              `json:"held"` // deliveries that wait; 0 = the handler does not return
	Marks   []PulsarHoldMark `json:"marks"`
}

// PulsarHoldMark is what is resident once so many messages were handled; 0 where
// the system does not tell.
type PulsarHoldMark struct {
	Handled int   `json:"handled"`
	Plugin  int64 `json:"plugin"` // bytes
	Host    int64 `json:"host"`
}

// largePayload is that of messages of which the receiver queue has no room for as many as it could
// hold.
const largePayload = 1 << 20

// holding is how many deliveries wait, and holdFor how long: past the measurement.
const (
	holding = 1000
	holdFor = time.Hour
)

// measureHold reads a backlog with a handler that is slow with some of it.
func (q *pulsarSuite) measureHold(ctx context.Context, s PulsarHold) (_ PulsarHold, err error) {
	if s.Payload == 0 {
		s.Payload, s.Backlog = Base.Payload, q.plan.Backlog
	}
	row := PulsarRow{Kind: Consume, Batched: true, Payload: s.Payload}
	topic, err := q.fill(ctx, row, s.Backlog)
	if err != nil {
		return s, err
	}
	e, h, on := openPulsar(q.plan.Plugin, q.broker.URL(), false)
	release := make(chan struct{})
	host.Handle(on.Subscription(topic, earliest(q.name())), func(_ context.Context, m *host.Message[[]byte]) error {
		e.arrived.Add(1, m.Value)
		if s.Held == 0 {
			<-release
			return nil
		}
		if e.arrived.Count() <= uint64(s.Held) { //nolint:gosec // a constant
			return host.RetryAfter(holdFor, nil)
		}
		return nil
	})
	if err := e.serve(ctx, h, nil); err != nil {
		return s, err
	}
	defer func() {
		close(release)
		err = errors.Join(err, e.close())
	}()
	for _, part := range []int{0, s.Backlog / 2, s.Backlog} {
		if s.Held > 0 {
			if _, err := untilArrived(ctx, e, uint64(part)); err != nil { //nolint:gosec // of a plan
				return s, err
			}
		} else if _, err := untilArrived(ctx, e, uint64(min(part, 1))); err != nil { //nolint:gosec // 0 or 1
			return s, err
		} else if err := sleep(ctx, settleTime); err != nil {
			return s, err
		}
		s.Marks = append(s.Marks, PulsarHoldMark{
			Handled: int(e.arrived.Count()), Plugin: statusBytes(e.plugin(), "VmRSS:"), Host: statusBytes(os.Getpid(), "VmRSS:"), //nolint:gosec // of a plan
		})
	}
	return s, nil
}
