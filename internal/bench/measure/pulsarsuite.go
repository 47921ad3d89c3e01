// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/longshore-go/longshore/internal/bench/peer"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
)

// pulsarSuite measures Pulsar, once a round.
type pulsarSuite struct {
	plan   PulsarPlan
	broker *pulsarbroker.Process
	report *PulsarReport
	round  int
	names  int             // given so far
	filled map[string]bool // topics that keep messages
}

// prompt has the broker tell a consumer that waits of a message at once. By default
// it does so only 10 ms after that one has read the last message before.
const prompt = "managedLedgerNewEntriesCheckDelayInMillis=0"

// openPulsarSuite starts the broker.
func openPulsarSuite(p PulsarPlan) (*pulsarSuite, error) {
	b, err := pulsarbroker.Open(pulsarbroker.Config{Load: true, Lines: []string{prompt}})
	if err != nil {
		return nil, err
	}
	return &pulsarSuite{plan: p, broker: b, report: newPulsarReport(p.Rows), filled: make(map[string]bool)}, nil
}

// measure measures every row once, unless there were rounds enough. The ways take
// turns in being the first: the broker, compiled on the way, gets faster.
func (q *pulsarSuite) measure(ctx context.Context) error {
	if q.round++; q.round > q.plan.Rounds {
		return nil
	}
	for i := range q.report.Rows {
		r := &q.report.Rows[i]
		ways := r.Row.ways()
		first := q.round % len(ways)
		for _, way := range slices.Concat(ways[first:], ways[:first]) {
			s, err := q.measureRow(ctx, way, r.Row)
			if err != nil {
				return fmt.Errorf("measure %s, %v: %w", way, r.Row, err)
			}
			r.Samples[way] = append(r.Samples[way], s)
		}
	}
	if q.round > 1 || q.plan.Backlog == 0 {
		return nil
	}
	for _, s := range []PulsarHold{{Held: holding}, {}, {Payload: largePayload, Backlog: q.plan.Large}} {
		held, err := q.measureHold(ctx, s)
		if err != nil {
			return fmt.Errorf("measure a backlog: %w", err)
		}
		q.report.Holds = append(q.report.Holds, held)
	}
	return nil
}

// name is one that nobody has: of a topic, or of a subscription.
func (q *pulsarSuite) name() string {
	q.names++
	return fmt.Sprintf("bench-%d", q.names)
}

// start starts a client of a row by a way.
func (q *pulsarSuite) start(ctx context.Context, way, role, topic string, row PulsarRow) (clientEnd, error) {
	if way == Pulsar {
		if role == "publish" {
			return openPulsarPublisher(ctx, q.plan.Plugin, q.broker.URL(), topic, row)
		}
		return openPulsarConsumer(ctx, q.plan.Plugin, q.broker.URL(), topic, q.name(), row)
	}
	library := map[string]string{PulsarAlone: "longshore", PulsarClient: "client", PulsarDefaults: "defaults"}[way]
	p, err := peer.Start(ctx, q.plan.Peer, library, role, q.broker.URL(), topic,
		strconv.FormatBool(row.Batched), strconv.Itoa(row.Payload), strconv.Itoa(row.Headers))
	if err != nil {
		return nil, err
	}
	return clientPeer{peerEnd{p}}, nil
}

// fill returns a topic that keeps n messages of a row.
func (q *pulsarSuite) fill(ctx context.Context, row PulsarRow, n int) (string, error) {
	topic := fmt.Sprintf("filled-%t-%d-%d-%d", row.Batched, row.Payload, row.Headers, n)
	if q.filled[topic] {
		return topic, nil
	}
	feeder, err := q.start(ctx, PulsarClient, "fill", topic, row)
	if err != nil {
		return "", err
	}
	if err = feeder.publish(n, 0); err == nil {
		_, err = untilArrived(ctx, feeder, uint64(n))
	}
	q.filled[topic] = true
	return topic, errors.Join(err, feeder.close())
}

// measureRow measures one row by one way, with clients of its own.
func (q *pulsarSuite) measureRow(ctx context.Context, way string, row PulsarRow) (s PulsarSample, err error) {
	n := q.plan.messages(row)
	switch row.Kind {
	case Consume:
		topic, err := q.fill(ctx, row, n)
		if err != nil {
			return s, err
		}
		subject, err := q.start(ctx, way, "subscribe", topic, row)
		if err != nil {
			return s, err
		}
		s, err = q.consume(ctx, subject, uint64(n))
		return s, errors.Join(err, subject.close())
	case Publish:
		subject, err := q.start(ctx, way, "publish", q.name(), row)
		if err != nil {
			return s, err
		}
		s, err = q.publish(ctx, subject, uint64(n))
		return s, errors.Join(err, subject.close())
	}
	topic := q.name()
	reads, publishes := way, PulsarClient
	if row.Kind == Leaving {
		reads, publishes = PulsarClient, way
	}
	to, err := q.start(ctx, reads, "subscribe", topic, row)
	if err != nil {
		return s, err
	}
	from, err := q.start(ctx, publishes, "publish", topic, row)
	if err != nil {
		return s, errors.Join(err, to.close())
	}
	subject := to
	if row.Kind == Leaving {
		subject = from
	}
	s, err = q.time(ctx, subject, from, to, uint64(n))
	return s, errors.Join(err, from.close(), to.close())
}

// close ends the broker.
func (q *pulsarSuite) close() error { return q.broker.Close() }
