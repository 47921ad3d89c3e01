// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/internal/transportpb"
)

// reading is how deliveries of stream files are taken.
type reading struct {
	released bool // there is nothing to ack
	stamped  bool // payloads begin with the time of writing
}

// key is what the messages of the source are called.
const key = "orders.created"

// fileSettings are those of the plugin of stream files.
func fileSettings(path, fsync string) ([]byte, error) {
	return json.Marshal(map[string]any{"path": path, "fsync": fsync})
}

// fileReading is a subscription to all of a file, or to what is written to it.
func fileReading(replay bool, group string) (*transportpb.Registration, error) {
	o := map[string]any{"replay": replay}
	if group != "" {
		o["group"] = group
	}
	b, err := json.Marshal(o)
	return &transportpb.Registration{Name: key, Options: b}, err
}

// startFile starts the plugin of stream files.
func startFile(ctx context.Context, plugin, path, fsync string) (*Subject, error) {
	settings, err := fileSettings(path, fsync)
	if err != nil {
		return nil, err
	}
	s, p, err := startPlugin(ctx, File, "file", plugin, settings)
	if err != nil {
		return nil, err
	}
	s.pid = p.PID()
	return s, nil
}

// with starts the plugin for one measurement.
func with[T any](ctx context.Context, plugin, path, fsync string, do func(*Subject) (T, error)) (t T, err error) {
	s, err := startFile(ctx, plugin, path, fsync)
	if err != nil {
		return t, err
	}
	t, err = do(s)
	return t, errors.Join(err, s.Close())
}

// replayLimit bounds one replay, many times what it takes.
const replayLimit = 2 * time.Minute

// warmPart is the part of a file that is not measured.
const warmPart = 5

// replayFile measures the replay of a file with n messages, from a part of it
// to its end.
func replayFile(ctx context.Context, s *Subject, row FileRow, group string, n uint64) (Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, replayLimit)
	defer cancel()
	r, err := fileReading(true, group)
	if err != nil {
		return Sample{}, err
	}
	s.reads.released = !row.Group
	var marks []mark
	var failed error
	over := make(chan struct{})
	f, err := openFlow(ctx, s, r, row.hop(), func(f *flow) {
		f.marks = []uint64{max(n/warmPart, 1), n}
		f.reached = func() {
			m, err := s.mark(ctx, &f.messages)
			marks, failed = append(marks, m), errors.Join(failed, err)
			if len(marks) == 2 {
				close(over)
			}
		}
	})
	if err != nil {
		return Sample{}, err
	}
	select {
	case <-over:
	case <-ctx.Done():
		err = fmt.Errorf("%d of %d messages: %w", f.messages.Load(), n, ctx.Err())
	}
	if err = errors.Join(err, f.end(), failed); err != nil {
		return Sample{}, err
	}
	return marks[1].since(marks[0]), nil
}

// tailFile measures reading what the same endpoint writes meanwhile.
func tailFile(ctx context.Context, s *Subject, row FileRow, d time.Duration) (Sample, error) {
	r, err := fileReading(false, "")
	if err != nil {
		return Sample{}, err
	}
	s.reads.released = true
	f, err := openFlow(ctx, s, r, row.hop(), nil)
	if err != nil {
		return Sample{}, err
	}
	p, err := publish(ctx, s.link, row.options().Messages(), row.Open, nil)
	if err != nil {
		return Sample{}, errors.Join(err, f.end())
	}
	sample, err := f.measure(ctx, d)
	return sample, errors.Join(err, p.end(), f.end())
}

// tailLatency measures a thousand messages a second from before they are
// published to their delivery.
func tailLatency(ctx context.Context, s *Subject, d time.Duration) (Percentiles, error) {
	r, err := fileReading(false, "")
	if err != nil {
		return Percentiles{}, err
	}
	s.reads = reading{released: true, stamped: true}
	var ages []time.Duration
	f, err := openFlow(ctx, s, r, usual, func(f *flow) { f.seen = func(age time.Duration) { ages = append(ages, age) } })
	if err != nil {
		return Percentiles{}, err
	}
	p, err := publish(ctx, s.link, usual.messages(), usual.Window, func(p *publishing) {
		p.stamped, p.pace = true, time.NewTicker(time.Millisecond)
	})
	if err != nil {
		return Percentiles{}, errors.Join(err, f.end())
	}
	err = sleep(ctx, d)
	err = errors.Join(err, p.end(), f.end())
	return percentiles(ages), err
}
