// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/bench/source"
)

// Slow is what is resident while a handler is far slower than the messages come.
// At QoS 1 they wait at the server, at QoS 0 the plugin keeps some and drops the
// rest. Mosquitto 2.0.11 sends more than the receive maximum of a client
// that acks slowly: then they wait in the plugin.
type Slow struct {
	QoS     int           `json:"qos"`
	Payload int           `json:"payload"`
	Takes   time.Duration `json:"takes_ns"` // the handler for a message, 0 = it does not return
	Marks   []SlowMark    `json:"marks"`
}

// SlowMark is what is resident once so many messages were published; 0 where the
// system does not tell.
type SlowMark struct {
	Published int   `json:"published"`
	Plugin    int64 `json:"plugin"` // bytes
	Host      int64 `json:"host"`
}

// settleTime lets the server pass on what was published.
const settleTime = 500 * time.Millisecond

// measureSlow publishes more and more to a handler that takes its time.
func (q *mqtt) measureSlow(ctx context.Context, s Slow) (_ Slow, err error) {
	row := MQTTRow{Kind: Consume, QoS: s.QoS, Payload: Base.Payload}
	s.Payload = row.Payload
	e, h, on := openMQTT(q.plan.Plugin, q.server.Address)
	release := make(chan struct{})
	sub := on.Subscription(source.Options{}.Messages()[0].Name, host.Options(map[string]any{"qos": s.QoS}))
	host.Handle(sub, func(_ context.Context, m *host.Message[[]byte]) error {
		e.arrived.Add(1, m.Value)
		if s.Takes == 0 {
			<-release
			return nil
		}
		t := time.NewTimer(s.Takes)
		defer t.Stop()
		select {
		case <-release:
		case <-t.C:
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
	feeder, err := q.start(ctx, Packets, true, row)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, feeder.close()) }()
	// The first mark is without any, the second one once everything is full.
	published := 0
	for _, more := range []int{0, q.plan.Waiting, q.plan.Waiting, q.plan.Waiting} {
		if more > 0 {
			if err := feeder.publish(more, 0); err != nil {
				return s, err
			}
		}
		published += more
		for sent := -1; sent < published; {
			if err := sleep(ctx, settleTime); err != nil {
				return s, err
			}
			state, err := feeder.ask()
			if err != nil {
				return s, err
			}
			sent = int(state.Messages)
		}
		s.Marks = append(s.Marks, SlowMark{
			Published: published, Plugin: statusBytes(e.plugin(), "VmRSS:"), Host: statusBytes(os.Getpid(), "VmRSS:"),
		})
	}
	return s, nil
}
