// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// files measures stream files, once a round.
type files struct {
	plan    FilePlan
	latency time.Duration
	folder  string
	hop     *Subject
	report  *FileReport
	counts  map[int]uint64 // messages of the replayed file of each row
	round   int
}

// mostLatency keeps the rows of stream files within a minute.
const mostLatency = 500 * time.Millisecond

// openFiles writes the files that are replayed.
func openFiles(ctx context.Context, p Plan) (f *files, err error) {
	f = &files{plan: p.Files, latency: min(p.Latency, mostLatency), counts: map[int]uint64{}}
	if f.folder, err = os.MkdirTemp(p.Files.Folder, "longshore-bench-"); err != nil {
		return nil, err
	}
	f.report = newFileReport(fileSystem(f.folder))
	if f.hop, _, err = StartHop(ctx, p.Plugin); err != nil {
		return nil, errors.Join(err, f.close())
	}
	for i := range f.report.Rows {
		if row := f.report.Rows[i].Row; row.Kind == Replay {
			f.counts[i] = uint64(max(f.plan.Bytes/row.Payload, 1))
			if err := f.fill(ctx, f.replayed(row), row, int(f.counts[i])); err != nil {
				return nil, errors.Join(err, f.close())
			}
		}
	}
	return f, nil
}

// replayed is the file that a row replays; rows with the same messages share it.
func (f *files) replayed(row FileRow) string {
	return filepath.Join(f.folder, fmt.Sprintf("replay-%d-%d.ss", row.Payload, row.Headers))
}

// fill writes n messages to a new file; one that is there already has them.
func (f *files) fill(ctx context.Context, path string, row FileRow, n int) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err := withAlone(ctx, path, "none", func(a *alone) (struct{}, error) {
		return struct{}{}, a.fill(ctx, row.options().Messages(), n)
	})
	return err
}

// measure measures every row once.
func (f *files) measure(ctx context.Context) error {
	f.round++
	hops := map[FileRow]Sample{}
	for i := range f.report.Rows {
		r := &f.report.Rows[i]
		same := FileRow{Payload: r.Row.Payload, Headers: r.Row.Headers, Open: r.Row.Open}
		if r.Row.Kind == Write {
			same.Kind = Write
		}
		hop, ok := hops[same]
		if !ok {
			var err error
			if hop, err = f.measureHop(ctx, r.Row); err != nil {
				return fmt.Errorf("measure hop, %v: %w", r.Row, err)
			}
			hops[same] = hop
		}
		r.Samples[Hop] = append(r.Samples[Hop], hop)
		for _, way := range []string{File, Alone} {
			s, err := f.measureRow(ctx, way, r.Row, f.counts[i])
			if err != nil {
				return fmt.Errorf("measure %s, %v: %w", way, r.Row, err)
			}
			r.Samples[way] = append(r.Samples[way], s)
		}
	}
	if f.latency == 0 {
		return nil
	}
	for _, way := range []string{File, Alone} {
		p, err := f.measureLatency(ctx, way)
		if err != nil {
			return fmt.Errorf("measure latency, %s: %w", way, err)
		}
		f.report.Latency[way] = append(f.report.Latency[way], p)
	}
	return nil
}

// measureHop measures what a row is compared with: a source that has the
// messages in memory, or forgets what is published.
func (f *files) measureHop(ctx context.Context, row FileRow) (Sample, error) {
	if row.Kind == Write {
		return publishRate(ctx, f.hop, row, f.plan.Time)
	}
	return Throughput(ctx, f.hop, row.hop(), f.plan.Time)
}

func (f *files) measureRow(ctx context.Context, way string, row FileRow, n uint64) (s Sample, err error) {
	path, group := f.written(), ""
	if row.Kind == Replay {
		path = f.replayed(row)
	}
	if row.Group {
		group = fmt.Sprintf("%s-%d", map[string]string{File: "host", Alone: "alone"}[way], f.round)
	}
	if way == File {
		s, err = with(ctx, f.plan.Plugin, path, row.Fsync, func(s *Subject) (Sample, error) {
			switch row.Kind {
			case Replay:
				return replayFile(ctx, s, row, group, n)
			case Tail:
				return tailFile(ctx, s, row, f.plan.Time)
			default:
				return publishRate(ctx, s, row, f.plan.Time)
			}
		})
	} else {
		s, err = withAlone(ctx, path, row.Fsync, func(a *alone) (Sample, error) {
			switch row.Kind {
			case Replay:
				return a.replay(ctx, row, group, n)
			case Tail:
				return a.tail(ctx, row, f.plan.Time)
			default:
				return a.write(ctx, row, f.plan.Time)
			}
		})
	}
	return s, errors.Join(err, f.forget())
}

func (f *files) measureLatency(ctx context.Context, way string) (p Percentiles, err error) {
	if way == File {
		p, err = with(ctx, f.plan.Plugin, f.written(), "none", func(s *Subject) (Percentiles, error) {
			return tailLatency(ctx, s, f.latency)
		})
	} else {
		p, err = withAlone(ctx, f.written(), "none", func(a *alone) (Percentiles, error) { return a.latency(ctx, f.latency) })
	}
	return p, errors.Join(err, f.forget())
}

// written is the file that one measurement writes.
func (f *files) written() string { return filepath.Join(f.folder, "written.ss") }

// forget removes what a measurement has written.
func (f *files) forget() error {
	names, err := filepath.Glob(f.written() + "*")
	for _, name := range names {
		err = errors.Join(err, os.RemoveAll(name))
	}
	return err
}

// close removes the files.
func (f *files) close() error {
	var err error
	if f.hop != nil {
		err = f.hop.Close()
	}
	return errors.Join(err, os.RemoveAll(f.folder))
}
