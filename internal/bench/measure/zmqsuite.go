// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/longshore-go/longshore/internal/bench/peer"
)

// zeroMQ measures ZeroMQ, once a round.
type zeroMQ struct {
	plan   ZeroMQPlan
	folder string // of sockets and of the peer
	libzmq string // the peer's file
	report *ZeroMQReport
	round  int
	number int // of sockets so far
}

// openZeroMQ builds what the rows need.
func openZeroMQ(ctx context.Context, p ZeroMQPlan) (z *zeroMQ, err error) {
	z = &zeroMQ{plan: p, report: newZeroMQReport(p.Rows)}
	if z.folder, err = os.MkdirTemp("", "longshore-bench-"); err != nil {
		return nil, err
	}
	if z.libzmq, err = peer.BuildLibZMQ(ctx, z.folder); err != nil {
		return nil, errors.Join(err, z.close())
	}
	return z, nil
}

// measure measures every row once, unless there were rounds enough.
func (z *zeroMQ) measure(ctx context.Context) error {
	if z.round++; z.round > z.plan.Rounds {
		return nil
	}
	for i := range z.report.Rows {
		r := &z.report.Rows[i]
		for _, way := range r.Row.ways() {
			s, err := z.measureRow(ctx, way, r.Row)
			if err != nil {
				return fmt.Errorf("measure %s, %v: %w", way, r.Row, err)
			}
			r.Samples[way] = append(r.Samples[way], s)
		}
	}
	if z.round > 1 || !slices.ContainsFunc(z.plan.Rows, func(r ZeroMQRow) bool { return r.Kind == FanOut }) {
		return nil
	}
	var err error
	z.report.Stalled, err = z.measureStalled(ctx)
	return err
}

// start starts one end of a row by a way.
func (z *zeroMQ) start(ctx context.Context, way, role string, row ZeroMQRow, listens bool, at string) (zmqEnd, error) {
	side := "connect"
	if listens {
		side = "bind"
	}
	args := []string{role, side, at, strconv.Itoa(row.Payload), strconv.Itoa(row.Headers)}
	program := z.plan.Peer
	switch way {
	case ZMQ:
		return openHost(ctx, z.plan.Plugin, row, 0, at)
	case ZMQWide:
		return openHost(ctx, z.plan.Plugin, row, Base.Window, at)
	case ZMQAlone:
		args = append([]string{"longshore"}, args...)
	case ZMQ4:
		args = append([]string{"zmq4"}, args...)
	default:
		sockets := 1
		if role == "sub" {
			sockets = row.Readers
		}
		program, args = z.libzmq, append(args, strconv.Itoa(sockets))
	}
	p, err := peer.Start(ctx, program, args...)
	return peerEnd{p}, err
}

// anywhere is an address to listen at.
func (z *zeroMQ) anywhere(row ZeroMQRow) string {
	if row.Link == "tcp" {
		return "tcp://127.0.0.1:0"
	}
	z.number++
	return "ipc://" + filepath.Join(z.folder, strconv.Itoa(z.number)+".sock")
}

// ends starts both ends of a row: the one that listens first.
func (z *zeroMQ) ends(ctx context.Context, way string, row ZeroMQRow) (subject, other zmqEnd, err error) {
	role, peerRole := row.roles()
	if row.listens() {
		if subject, err = z.start(ctx, way, role, row, true, z.anywhere(row)); err != nil {
			return nil, nil, err
		}
		if other, err = z.start(ctx, row.Peer, peerRole, row, false, subject.address()); err != nil {
			err = errors.Join(err, subject.close())
		}
		return subject, other, err
	}
	if other, err = z.start(ctx, row.Peer, peerRole, row, true, z.anywhere(row)); err != nil {
		return nil, nil, err
	}
	if subject, err = z.start(ctx, way, role, row, false, other.address()); err != nil {
		err = errors.Join(err, other.close())
	}
	return subject, other, err
}

// measureRow measures one row by one way, with processes of its own.
func (z *zeroMQ) measureRow(ctx context.Context, way string, row ZeroMQRow) (s ZeroMQSample, err error) {
	subject, other, err := z.ends(ctx, way, row)
	if err != nil {
		return s, err
	}
	m := measured{row: row, subject: subject, peer: other}
	s, err = m.sample(ctx, z.plan.Time)
	return s, errors.Join(err, subject.close(), other.close()) // zmq4 fails where its peer ends first
}

// measured are the two ends of a row.
type measured struct {
	row           ZeroMQRow
	subject, peer zmqEnd
}

// zmqMark is the state of all processes at one time.
type zmqMark struct {
	at            time.Time
	subject, peer peer.State
	plugin        time.Duration // CPU
}

func (m *measured) mark() (k zmqMark, err error) {
	if k.peer, err = m.peer.ask(); err != nil {
		return k, err
	}
	if k.subject, err = m.subject.ask(); err != nil {
		return k, err
	}
	if pid := m.subject.plugin(); pid != 0 {
		k.plugin = cpuOf(pid)
	}
	k.at = time.Now()
	return k, nil
}

// count counts what the row counts.
func (m *measured) count(k zmqMark) uint64 {
	if m.row.Kind == Push || m.row.Kind == FanOut {
		return k.peer.Messages
	}
	return k.subject.Messages
}

// sample waits for the first message, lets it run, and measures for d, and until
// there is something to measure.
func (m *measured) sample(ctx context.Context, d time.Duration) (ZeroMQSample, error) {
	if _, err := m.beyond(ctx, 0); err != nil {
		return ZeroMQSample{}, err
	}
	if err := sleep(ctx, warmUp); err != nil {
		return ZeroMQSample{}, err
	}
	before, err := m.mark()
	if err != nil {
		return ZeroMQSample{}, err
	}
	if err := sleep(ctx, d); err != nil {
		return ZeroMQSample{}, err
	}
	after, err := m.beyond(ctx, m.count(before))
	if err != nil {
		return ZeroMQSample{}, err
	}
	return m.between(before, after), nil
}

// beyond waits until more than n messages are counted.
func (m *measured) beyond(ctx context.Context, n uint64) (zmqMark, error) {
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	for {
		k, err := m.mark()
		if err != nil || m.count(k) > n {
			return k, err
		}
		if err := sleep(ctx, lookEvery); err != nil {
			return k, fmt.Errorf("wait for messages: %w", err)
		}
	}
}

// between is what was measured between two marks.
func (m *measured) between(before, after zmqMark) (s ZeroMQSample) {
	n, took := float64(m.count(after)-m.count(before)), after.at.Sub(before.at).Seconds()
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / n }
	s.Rate = n / took
	s.Sent = float64(after.subject.Messages-before.subject.Messages) / took
	s.HostCPU = micros(after.subject.CPU - before.subject.CPU)
	s.PluginCPU = micros(after.plugin - before.plugin)
	s.HostAllocs = float64(after.subject.Allocs-before.subject.Allocs) / n
	s.PeerCPU = micros(after.peer.CPU - before.peer.CPU)
	s.Trips = Percentiles{P50: after.subject.P50, P99: after.subject.P99}
	return s
}

// close removes what was built.
func (z *zeroMQ) close() error { return os.RemoveAll(z.folder) }
