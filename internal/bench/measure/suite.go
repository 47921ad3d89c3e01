// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Base is the row that the others vary.
var Base = Row{Frame: 256, Window: 1024, Payload: 512, Headers: 3}

// Rows are the lines of the table: the base row and one change each, or, full,
// every combination.
func Rows(full bool) []Row {
	frames, windows, payloads := []int{1, 16, 256}, []int{1, 64, 1024}, []int{64, 512, 16 << 10}
	if !full {
		rows := []Row{Base, Base, Base, Base, Base, Base, Base, Base}
		rows[1].Runs = true
		rows[2].Frame, rows[3].Frame = 16, 1
		rows[4].Window, rows[5].Window = 64, 1
		rows[6].Payload, rows[6].Headers = 64, 0
		rows[7].Payload = 16 << 10
		return rows
	}
	var rows []Row
	for _, p := range payloads {
		for _, w := range windows {
			for _, f := range frames {
				for _, runs := range []bool{false, true} {
					r := Row{Frame: f, Window: w, Payload: p, Headers: 3, Runs: runs}
					if p == 64 {
						r.Headers = 0
					}
					rows = append(rows, r)
				}
			}
		}
	}
	return rows
}

// Plan says how much is measured.
type Plan struct {
	Plugin   string
	Rows     []Row
	Subjects []string

	Handlings []string
	Copies    int // that wait, 0 = not measured
	Idle      int // subscriptions, 0 = not measured
	Files     FilePlan
	ZeroMQ    ZeroMQPlan
	MQTT      MQTTPlan
	Pulsar    PulsarPlan

	Rounds   int             // interleaved: every row and subject once a round
	Time     time.Duration   // of one measurement
	Latency  time.Duration   // of one latency measurement, 0 = none
	Progress func(round int) // called before each round
}

// part is what is measured once a round beside the hop.
type part interface {
	measure(ctx context.Context) error
	close() error
}

// Suite measures all that the plan asks for.
func Suite(ctx context.Context, p Plan) (*Report, error) {
	rep := newReport(p)
	subjects, err := open(ctx, p, rep)
	var parts []part
	if err == nil {
		parts, err = openParts(ctx, p, rep)
	}
	for round := 0; err == nil && round < p.Rounds; round++ {
		p.Progress(round + 1)
		err = measureRound(ctx, p, subjects, rep)
		for i := 0; err == nil && i < len(parts); i++ {
			err = parts[i].measure(ctx)
		}
	}
	for _, s := range parts {
		err = errors.Join(err, s.close())
	}
	for _, s := range subjects {
		err = errors.Join(err, s.Close())
	}
	if err == nil {
		err = measureMemory(ctx, p, rep)
	}
	rep.finish()
	return rep, err
}

// openParts opens what the plan asks for beside the hop; what it returns with an
// error is closed as well.
func openParts(ctx context.Context, p Plan, rep *Report) (parts []part, err error) {
	if p.ZeroMQ.Plugin != "" { // first: these can lack something
		z, err := openZeroMQ(ctx, p.ZeroMQ)
		if err != nil {
			return nil, err
		}
		parts, rep.ZeroMQ = append(parts, z), z.report
	}
	if p.MQTT.Plugin != "" {
		q, err := openMQTTSuite(ctx, p.MQTT)
		if err != nil {
			return parts, err
		}
		parts, rep.MQTT = append(parts, q), q.report
	}
	if p.Pulsar.Plugin != "" {
		q, err := openPulsarSuite(p.Pulsar)
		if err != nil {
			return parts, err
		}
		parts, rep.Pulsar = append(parts, q), q.report
	}
	if p.Files.Plugin != "" {
		fs, err := openFiles(ctx, p)
		if err != nil {
			return parts, err
		}
		parts, rep.Files = append(parts, fs), fs.report
	}
	return parts, nil
}

// open starts the subjects, and measures the start of a plugin on the way.
func open(ctx context.Context, p Plan, rep *Report) (subjects []*Subject, err error) {
	for _, name := range p.Subjects {
		var s *Subject
		switch name {
		case Hop:
			for range p.Rounds {
				if err := rep.start(ctx, p.Plugin); err != nil {
					return subjects, err
				}
			}
			s, _, err = StartHop(ctx, p.Plugin)
		case InProc:
			s, err = StartInProc(ctx)
		case Service:
			s = &Subject{Name: Service, path: p.Plugin, close: func() error { return nil }}
		default:
			s, err = StartBaseline(ctx, p.Plugin, name)
		}
		if err != nil {
			return subjects, fmt.Errorf("start %s: %w", name, err)
		}
		subjects = append(subjects, s)
	}
	return subjects, nil
}

func measureRound(ctx context.Context, p Plan, subjects []*Subject, rep *Report) error {
	for i, row := range p.Rows {
		for _, s := range subjects {
			if s.Name == Socket {
				continue
			}
			sample, err := s.throughput(ctx, row, p.Time)
			if err != nil {
				return fmt.Errorf("measure %s, %v: %w", s.Name, row, err)
			}
			rep.Rows[i].add(s.Name, sample)
		}
	}
	for i := range rep.Handlings {
		h := &rep.Handlings[i]
		sample, err := handling(ctx, p.Plugin, h.Name, p.Time)
		if err != nil {
			return err
		}
		h.Samples = append(h.Samples, sample)
	}
	if p.Latency == 0 {
		return nil
	}
	for _, s := range subjects {
		if s.Name == Service {
			continue
		}
		l, err := Latency(ctx, s, p.Latency)
		if err != nil {
			return fmt.Errorf("measure latency of %s: %w", s.Name, err)
		}
		rep.Latency[s.Name] = append(rep.Latency[s.Name], l)
	}
	return nil
}

// median returns the middle of what f gives for vs.
func median[T any](vs []T, f func(T) float64) float64 {
	if len(vs) == 0 {
		return 0
	}
	ns := make([]float64, len(vs))
	for i, v := range vs {
		ns[i] = f(v)
	}
	slices.Sort(ns)
	if n := len(ns); n%2 == 0 {
		return (ns[n/2-1] + ns[n/2]) / 2
	}
	return ns[len(ns)/2]
}
