// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/longshore-go/longshore/internal/bench/peer"
)

// mqtt measures MQTT, once a round.
type mqtt struct {
	plan   MQTTPlan
	folder string // of the servers' settings
	server *peer.Mosquitto
	// prompt is a server that sends small packets at once. By its defaults
	// Mosquitto waits for the ack of the last one, which takes up to 40 ms where
	// the client has nothing to say.
	prompt *peer.Mosquitto
	report *MQTTReport
	round  int
}

// openMQTTSuite starts the servers.
func openMQTTSuite(ctx context.Context, p MQTTPlan) (q *mqtt, err error) {
	q = &mqtt{plan: p, report: newMQTTReport(p.Rows)}
	if q.folder, err = os.MkdirTemp("", "longshore-bench-"); err != nil {
		return nil, err
	}
	if q.server, err = peer.StartMosquitto(ctx, q.folder); err != nil {
		return nil, errors.Join(err, q.close())
	}
	if q.prompt, err = peer.StartMosquitto(ctx, q.folder, "set_tcp_nodelay true"); err != nil {
		return nil, errors.Join(err, q.close())
	}
	return q, nil
}

// of is the server of a row.
func (q *mqtt) of(row MQTTRow) *peer.Mosquitto {
	if row.Kind == Arriving {
		return q.prompt
	}
	return q.server
}

// measure measures every row once, unless there were rounds enough.
func (q *mqtt) measure(ctx context.Context) error {
	if q.round++; q.round > q.plan.Rounds {
		return nil
	}
	for i := range q.report.Rows {
		r := &q.report.Rows[i]
		for _, way := range r.Row.ways() {
			s, err := q.measureRow(ctx, way, r.Row)
			if err != nil {
				return fmt.Errorf("measure %s, %v: %w", way, r.Row, err)
			}
			r.Samples[way] = append(r.Samples[way], s)
		}
	}
	if q.round > 1 || q.plan.Waiting == 0 {
		return nil
	}
	for _, of := range []Slow{{QoS: 0}, {QoS: 1}, {QoS: 1, Takes: time.Millisecond}} {
		s, err := q.measureSlow(ctx, of)
		if err != nil {
			return fmt.Errorf("measure a slow handler: %w", err)
		}
		q.report.Slow = append(q.report.Slow, s)
	}
	return nil
}

// start starts a client of a row by a way.
func (q *mqtt) start(ctx context.Context, way string, publishes bool, row MQTTRow) (clientEnd, error) {
	window := 0
	switch way {
	case MQTTWide:
		window = Base.Window
		fallthrough
	case MQTT:
		if publishes {
			return openMQTTPublisher(ctx, q.plan.Plugin, q.of(row).Address, row)
		}
		return openMQTTConsumer(ctx, q.plan.Plugin, q.of(row).Address, row, window)
	}
	role := "subscribe"
	if publishes {
		role = "publish"
	}
	library := map[string]string{MQTTAlone: "longshore", Autopaho: "autopaho", Buffered: "buffered", Packets: "plain"}[way]
	p, err := peer.Start(ctx, q.plan.Peer, library, role, q.of(row).Address,
		strconv.Itoa(row.QoS), strconv.Itoa(row.Payload), strconv.Itoa(row.Headers))
	return clientPeer{peerEnd{p}}, err
}

// measureRow measures one row by one way, with clients of its own.
func (q *mqtt) measureRow(ctx context.Context, way string, row MQTTRow) (s MQTTSample, err error) {
	subject, err := q.start(ctx, way, row.Kind == Publish, row)
	if err != nil {
		return s, err
	}
	other, err := q.start(ctx, Packets, row.Kind != Publish, row)
	if err != nil {
		return s, errors.Join(err, subject.close())
	}
	m := mqttMeasured{subject: subject, from: other, to: subject, other: other, server: q.of(row).PID()}
	if row.Kind == Publish {
		m.from, m.to = subject, other
	}
	n, every := q.plan.messages(row), time.Duration(0)
	if row.Kind == Arriving {
		n, every = int(q.plan.Latency/pause), pause
	}
	if _, err = m.burst(ctx, max(n/10, 1), 0, q.plan.Lost); err == nil { // fills pools and windows
		s, err = m.burst(ctx, n, every, q.plan.Lost)
	}
	return s, errors.Join(err, subject.close(), other.close())
}

// pause is the time between messages whose way is timed: far more than it takes.
const pause = 2 * time.Millisecond

// close ends the servers.
func (q *mqtt) close() (err error) {
	for _, s := range []*peer.Mosquitto{q.server, q.prompt} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return errors.Join(err, os.RemoveAll(q.folder))
}
