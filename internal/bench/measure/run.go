// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/internal/bench/source"
	"github.com/longshore-go/longshore/internal/transportpb"
)

var errEmpty = errors.New("delivery without content")

// windowBytes is the window's second count, far above what any row has
// unsettled, so that a row's window is the one of messages.
const windowBytes = 256 << 20

// Row is one line of the table: what is sent and how it is settled.
type Row struct {
	Frame   int  `json:"frame"`
	Window  int  `json:"window"`
	Payload int  `json:"payload"`
	Headers int  `json:"headers"`
	Runs    bool `json:"runs"` // one verdict for a frame, not one each
}

// String names the row.
func (r Row) String() string {
	verdicts := "each"
	if r.Runs {
		verdicts = "runs"
	}
	return fmt.Sprintf("%5d B + %d  frame %-3d window %-4d %s", r.Payload, r.Headers, r.Frame, r.Window, verdicts)
}

// Sample is one measurement of a row.
type Sample struct {
	Rate       float64 `json:"rate"`        // messages a second
	HostCPU    float64 `json:"host_cpu"`    // microseconds a message
	PluginCPU  float64 `json:"plugin_cpu"`  // likewise
	HostAllocs float64 `json:"host_allocs"` // heap objects a message
	PlugAllocs float64 `json:"plugin_allocs"`
}

// warmUp lets a stream fill its window and pools before it is measured.
const warmUp = 100 * time.Millisecond

// Throughput measures one row for a time.
func Throughput(ctx context.Context, s *Subject, row Row, d time.Duration) (Sample, error) {
	r, err := registration(source.Options{Frame: row.Frame, Payload: row.Payload, Headers: row.Headers})
	if err != nil {
		return Sample{}, err
	}
	f, err := openFlow(ctx, s, r, row, nil)
	if err != nil {
		return Sample{}, err
	}
	sample, err := f.measure(ctx, d)
	return sample, errors.Join(err, f.end())
}

// flow is one subscription under way: one goroutine receives, one settles.
type flow struct {
	subject *Subject
	stream  consumer
	cancel  context.CancelFunc
	row     Row
	seen    func(age time.Duration) // of each lone message; nil = not asked

	messages atomic.Uint64
	marks    []uint64 // numbers of messages, ascending,
	reached  func()   // that are told of before more is received
	tasks    sync.WaitGroup
	mu       sync.Mutex
	first    uint64 // received and not settled: ids from first to next-1
	next     uint64
	ended    bool // the subscription has
	over     bool // nothing more is received
	ready    chan struct{}
	stopping chan struct{}
	errs     [2]error // of the receiver and the settler
}

func openFlow(ctx context.Context, s *Subject, r *transportpb.Registration, row Row, change func(*flow)) (*flow, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := s.open(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	f := &flow{
		subject: s, stream: stream, cancel: cancel, row: row,
		first: 1, next: 1, ready: make(chan struct{}, 1), stopping: make(chan struct{}),
	}
	if change != nil {
		change(f)
	}
	if err := errors.Join(stream.start(r), stream.credit(uint64(row.Window), windowBytes)); err != nil {
		cancel()
		return nil, err
	}
	f.tasks.Go(func() { f.errs[0] = f.receive() })
	f.tasks.Go(func() { f.errs[1] = f.settle() })
	return f, nil
}

// receive takes frames until the stream ends.
func (f *flow) receive() error {
	defer func() {
		f.mu.Lock()
		f.over = true
		f.mu.Unlock()
		f.wake()
	}()
	for {
		first, n, age, err := f.stream.receive()
		if ended(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		if n == nothingMore {
			f.mu.Lock()
			f.ended = true
			f.mu.Unlock()
			f.wake()
			continue
		}
		if f.seen != nil {
			f.seen(age)
		}
		for total := f.messages.Add(uint64(n)); len(f.marks) > 0 && total >= f.marks[0]; f.marks = f.marks[1:] {
			f.reached()
		}
		f.mu.Lock()
		if first != f.next {
			f.mu.Unlock()
			return fmt.Errorf("delivery %d comes where %d should", first, f.next)
		}
		f.next += uint64(n)
		f.mu.Unlock()
		f.wake()
	}
}

func (f *flow) wake() {
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

// settle acks what was received, all that is there at a time. It half-closes
// once the subscription has ended and nothing is left.
func (f *flow) settle() error {
	stopping, closed := f.stopping, false
	for {
		f.mu.Lock()
		first, n, last, over := f.first, int(f.next-f.first), f.ended, f.over
		f.first = f.next
		f.mu.Unlock()
		if n > 0 {
			if err := f.stream.settle(first, n, !f.row.Runs); err != nil {
				return err
			}
			continue
		}
		if over {
			return nil
		}
		if last && !closed {
			if err := f.stream.closeSend(); err != nil {
				return err
			}
			closed = true
		}
		select {
		case <-f.ready:
		case <-stopping:
			if err := f.stream.stop(); err != nil {
				return err
			}
			stopping = nil
		}
	}
}

// end stops intake and waits for the end of the stream.
func (f *flow) end() error {
	close(f.stopping)
	t := time.AfterFunc(endLimit, f.cancel)
	f.tasks.Wait()
	t.Stop()
	f.cancel()
	return errors.Join(f.errs[0], f.errs[1])
}

// measure counts for d after a warm-up.
func (f *flow) measure(ctx context.Context, d time.Duration) (Sample, error) {
	if err := sleep(ctx, warmUp); err != nil {
		return Sample{}, err
	}
	return f.subject.during(ctx, &f.messages, d)
}

// during measures what count counts for d, and until there is something of it.
func (s *Subject) during(ctx context.Context, count *atomic.Uint64, d time.Duration) (Sample, error) {
	return s.between(ctx, count, func() error {
		first := count.Load()
		err := sleep(ctx, d)
		for err == nil && count.Load() == first {
			err = sleep(ctx, lookEvery)
		}
		return err
	})
}

// between measures what count counts while wait waits.
func (s *Subject) between(ctx context.Context, count *atomic.Uint64, wait func() error) (Sample, error) {
	before, err := s.mark(ctx, count)
	if err != nil {
		return Sample{}, err
	}
	if err := wait(); err != nil {
		return Sample{}, err
	}
	after, err := s.mark(ctx, count)
	return after.since(before), err
}

// mark is the state of both processes at one time.
type mark struct {
	at       time.Time
	messages uint64
	host     source.Usage
	plugin   source.Usage
}

// since is what was measured between two marks.
func (m mark) since(before mark) Sample {
	n := float64(m.messages - before.messages)
	host, plugin := m.host.Since(before.host), m.plugin.Since(before.plugin)
	return Sample{
		Rate:       n / m.at.Sub(before.at).Seconds(),
		HostCPU:    float64(host.CPU.Nanoseconds()) / 1e3 / n,
		PluginCPU:  float64(plugin.CPU.Nanoseconds()) / 1e3 / n,
		HostAllocs: float64(host.Allocs) / n,
		PlugAllocs: float64(plugin.Allocs) / n,
	}
}

// mark takes the state with what count has counted so far.
func (s *Subject) mark(ctx context.Context, count *atomic.Uint64) (m mark, err error) {
	if m.plugin, err = s.used(ctx); err != nil {
		return m, err
	}
	m.host, err = source.Used()
	m.at, m.messages = time.Now(), count.Load()
	return m, err
}

// sleep waits for d.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
