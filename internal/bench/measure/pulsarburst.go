// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/internal/bench/peer"
)

// pulsarMark is the state of all processes at one time.
type pulsarMark struct {
	subject        peer.State
	plugin, broker time.Duration // CPU
}

func (q *pulsarSuite) mark(subject clientEnd) (k pulsarMark, err error) {
	if k.subject, err = subject.ask(); err != nil {
		return k, err
	}
	if pid := subject.plugin(); pid != 0 {
		k.plugin = cpuOf(pid)
	}
	k.broker = cpuOf(q.broker.PID())
	return k, nil
}

// stalledAfter is how long nothing arrives before a measurement fails.
const stalledAfter = 2 * time.Minute

// untilArrived waits for as many messages since a client has started, and returns
// its state with the first time that it tells of meanwhile.
func untilArrived(ctx context.Context, to clientEnd, messages uint64) (peer.State, error) {
	var first peer.State // with arrivals
	for last, at := uint64(0), time.Now(); ; {
		now, err := to.ask()
		if err != nil {
			return now, err
		}
		if first.First == 0 {
			first = now
		}
		now.First, now.P50, now.P99 = first.First, first.P50, first.P99
		if now.Messages >= messages {
			return now, nil
		}
		if now.Messages != last {
			last, at = now.Messages, time.Now()
		}
		if time.Since(at) > stalledAfter {
			return now, fmt.Errorf("%d of %d messages have come in %v", now.Messages, messages, stalledAfter)
		}
		if err := sleep(ctx, arriveEvery); err != nil {
			return now, err
		}
	}
}

// started is the part of a backlog that is read before the measurement begins.
const started = 5

// consume measures how a backlog of n messages is read, once it flows.
func (q *pulsarSuite) consume(ctx context.Context, subject clientEnd, n uint64) (s PulsarSample, err error) {
	now, err := untilArrived(ctx, subject, n/started)
	if err != nil {
		return s, err
	}
	before, err := q.mark(subject)
	if err != nil {
		return s, err
	}
	if before.subject.Messages >= n { // all has come before it was looked: from the beginning, then
		before = pulsarMark{subject: peer.State{Last: now.First}}
	}
	if _, err := untilArrived(ctx, subject, n); err != nil {
		return s, err
	}
	after, err := q.mark(subject)
	if err != nil {
		return s, err
	}
	return before.sample(after, before.subject.Last), nil
}

// publish measures how n messages are published, from the first call to the last
// receipt.
func (q *pulsarSuite) publish(ctx context.Context, subject clientEnd, n uint64) (s PulsarSample, err error) {
	warm := max(n/started, 1)
	if err := subject.publish(int(warm), 0); err != nil { //nolint:gosec // of a plan
		return s, err
	}
	if _, err := untilArrived(ctx, subject, warm); err != nil {
		return s, err
	}
	before, err := q.mark(subject)
	if err != nil {
		return s, err
	}
	if err := subject.publish(int(n), 0); err != nil { //nolint:gosec // of a plan
		return s, err
	}
	now, err := untilArrived(ctx, subject, warm+n)
	if err != nil {
		return s, err
	}
	after, err := q.mark(subject)
	if err != nil {
		return s, err
	}
	return before.sample(after, now.First), nil
}

// markBoth is the state of a subject, with what another client has counted.
func (q *pulsarSuite) markBoth(subject, counts clientEnd) (k pulsarMark, err error) {
	if k, err = q.mark(subject); err != nil || counts == subject {
		return k, err
	}
	s, err := counts.ask()
	k.subject.Messages, k.subject.Last = s.Messages, s.Last
	return k, err
}

// time measures what n messages take from one client to another, one each pause; one of
// them is the subject.
func (q *pulsarSuite) time(ctx context.Context, subject, from, to clientEnd, n uint64) (s PulsarSample, err error) {
	warm := max(n/started, 1)
	for i, more := range []uint64{warm, n} {
		before, err := q.markBoth(subject, to)
		if err != nil {
			return s, err
		}
		if err := from.publish(int(more), pause); err != nil { //nolint:gosec // of a plan
			return s, err
		}
		if err := sleep(ctx, pause*time.Duration(more)); err != nil { //nolint:gosec // of a plan
			return s, err
		}
		// All but the last few are in the first answer, where the machine is not busy.
		now, err := to.ask()
		if err != nil {
			return s, err
		}
		all := warm
		if i == 1 {
			all += n
		}
		later, err := untilArrived(ctx, to, all)
		if err != nil {
			return s, err
		}
		if now.First == 0 {
			now = later
		}
		after, err := q.markBoth(subject, to)
		if err != nil {
			return s, err
		}
		s = before.sample(after, now.First)
		s.Trips = Percentiles{P50: now.P50, P99: now.P99}
	}
	return s, nil
}

// sample is what was done between two marks, since a time in Unix nanoseconds.
func (k pulsarMark) sample(after pulsarMark, since int64) (s PulsarSample) {
	n := float64(after.subject.Messages - k.subject.Messages)
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / n }
	s.Rate = n / time.Duration(after.subject.Last-since).Seconds()
	s.HostCPU = micros(after.subject.CPU - k.subject.CPU)
	s.HostAllocs = float64(after.subject.Allocs-k.subject.Allocs) / n
	s.PluginCPU = micros(after.plugin - k.plugin)
	s.BrokerCPU = micros(after.broker - k.broker)
	return s
}
