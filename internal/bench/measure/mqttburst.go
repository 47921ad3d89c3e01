// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-go/longshore/internal/bench/peer"
)

// mqttMeasured are the clients of a row: from publishes what arrives at to.
type mqttMeasured struct {
	subject, other clientEnd
	from, to       clientEnd
	server         int // process
}

// mqttMark is the state of all processes at one time.
type mqttMark struct {
	subject, other peer.State
	plugin, server time.Duration // CPU
}

func (m *mqttMeasured) mark() (k mqttMark, err error) {
	if k.subject, err = m.subject.ask(); err != nil {
		return k, err
	}
	if k.other, err = m.other.ask(); err != nil {
		return k, err
	}
	if pid := m.subject.plugin(); pid != 0 {
		k.plugin = cpuOf(pid)
	}
	k.server = cpuOf(m.server)
	return k, nil
}

// arrived is the state of the client that messages arrive at.
func (m *mqttMeasured) arrived(k mqttMark) peer.State {
	if m.to == m.subject {
		return k.subject
	}
	return k.other
}

// arriveEvery is how often a client is asked for what has arrived, which stops
// its program for a moment.
const arriveEvery = 10 * time.Millisecond

var errNothing = errors.New("nothing has arrived")

// burst publishes messages and measures from the first of them that arrives to
// the last one.
func (m *mqttMeasured) burst(ctx context.Context, messages int, every, lostAfter time.Duration) (s MQTTSample, err error) {
	before, err := m.mark()
	if err != nil {
		return s, err
	}
	if err := m.from.publish(messages, every); err != nil {
		return s, err
	}
	if err := sleep(ctx, every*time.Duration(messages)); err != nil {
		return s, err
	}
	first, all := int64(0), m.arrived(before).Messages+uint64(messages)
	var now peer.State
	for last, at := uint64(0), time.Now(); now.Messages < all && time.Since(at) < lostAfter; {
		if err := sleep(ctx, arriveEvery); err != nil {
			return s, err
		}
		if now, err = m.to.ask(); err != nil {
			return s, err
		}
		if first == 0 {
			first = now.First
		}
		if now.Messages != last {
			last, at = now.Messages, time.Now()
		}
		if s.Trips.P50 == 0 { // what comes later are the last few
			s.Trips = Percentiles{P50: now.P50, P99: now.P99}
		}
	}
	n := float64(now.Messages - m.arrived(before).Messages)
	if n < 2 && messages > 1 {
		return s, errNothing
	}
	after, err := m.mark()
	if err != nil {
		return s, err
	}
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / n }
	s.Rate = (n - 1) / time.Duration(now.Last-first).Seconds()
	s.Lost = float64(all - now.Messages)
	s.HostCPU = micros(after.subject.CPU - before.subject.CPU)
	s.HostAllocs = float64(after.subject.Allocs-before.subject.Allocs) / n
	s.PluginCPU = micros(after.plugin - before.plugin)
	s.PeerCPU = micros(after.other.CPU - before.other.CPU)
	s.ServerCPU = micros(after.server - before.server)
	return s, nil
}
