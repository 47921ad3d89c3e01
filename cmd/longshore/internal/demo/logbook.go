// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"context"
	_ "embed" // the file of another system
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// reference is a stream file as the RustStream runtime left it: an order, two
// copies of it for a retry, and its dead letter.
//
//go:embed reference.ss
var reference []byte

// The keys of the stream file: what the other system wrote, and what the demo
// appends.
const (
	keyOrders     = "orders"
	keyOrdersDead = "orders.dead"
	keyFiled      = "airports"
)

// restartAfter is how many airports the group acks before it is stopped.
const restartAfter = 100

// logbook is the stream file, in a folder of its own: the second stage appends to
// it, a replay and a group read it.
type logbook struct {
	dir, path string
}

// newLogbook makes a folder with the file of the other system.
func newLogbook() (*logbook, error) {
	dir, err := os.MkdirTemp("", "longshore-demo")
	if err != nil {
		return nil, fmt.Errorf("make the stream file: %w", err)
	}
	l := &logbook{dir: dir, path: filepath.Join(dir, "logbook.ss")}
	if err := os.WriteFile(l.path, reference, 0o600); err != nil {
		l.remove()
		return nil, fmt.Errorf("make the stream file: %w", err)
	}
	return l, nil
}

// remove removes the folder with all that is in it.
func (l *logbook) remove() { _ = os.RemoveAll(l.dir) } // a temporary folder; what is left is the system's

// queue is the address of the queue between the stages: a socket beside the file.
func (l *logbook) queue() string { return "ipc://" + filepath.Join(l.dir, "queue") }

// endpoint attaches the file to a host that reads it or appends to it.
func (l *logbook) endpoint(h *host.Host) *host.Endpoint {
	return h.Endpoint("logbook", host.Plugin{Name: "file"}, settings.Settings{Path: l.path, ExistingOnly: true})
}

// read shows what is in the file: by a replay, and by a group that is stopped and
// started again. It shows nothing when ctx ends before.
func (l *logbook) read(ctx context.Context, s *screen, o Options) error {
	records, err := l.replay(ctx, s, o)
	if err != nil {
		return err
	}
	before, err := l.group(ctx, s, o, restartAfter)
	if err != nil {
		return err
	}
	after, err := l.group(ctx, s, o, 0)
	if err != nil || ctx.Err() != nil {
		return err
	}
	s.logbook(records, before, after)
	return nil
}

// record is a record of the file as a handler sees it.
type record struct {
	key, sequence string
	attempt       uint64
	tenant        string
	payload       string
}

// replay reads what the other system wrote. It ends where the file ends.
func (l *logbook) replay(ctx context.Context, s *screen, o Options) ([]record, error) {
	h := host.New(host.WithLogger(watch(s, o)))
	file := l.endpoint(h)
	var mu sync.Mutex
	var records []record
	for _, key := range []string{keyOrders, keyOrdersDead} {
		sub := file.Subscription(key, host.Options(settings.Subscription{Replay: true}))
		host.Handle(sub, func(_ context.Context, m *host.Message[[]byte]) error {
			mu.Lock()
			defer mu.Unlock()
			records = append(records, record{key, m.Header("stream-sequence"), m.Attempt(), m.Header("x-tenant"), string(m.Value)})
			return nil
		})
	}
	err := run(ctx, h, o)
	slices.SortFunc(records, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.sequence, b.sequence))
	})
	return records, err
}

// resumption is one run of the group.
type resumption struct {
	first, last string // sequences
	airports    int
}

// group reads the airports as a group that has what it acked kept beside the
// file. With a limit it is stopped after so many; the next run goes on there.
func (l *logbook) group(ctx context.Context, s *screen, o Options, limit int) (resumption, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	h := host.New(host.WithLogger(watch(s, o)))
	var r resumption
	airports := l.endpoint(h).Subscription(keyFiled, host.Options(settings.Subscription{Group: "demo", Replay: true}))
	host.Handle(airports, func(_ context.Context, m *host.Message[airport]) error {
		r.last = m.Header("stream-sequence")
		if r.first == "" {
			r.first = r.last
		}
		if r.airports++; r.airports == limit {
			airports.Pause() // begins none of those that have arrived
			stop()
		}
		return nil
	})
	err := run(ctx, h, o)
	return r, err
}

// run runs a host until it has read all there is, or ctx ends.
func run(ctx context.Context, h *host.Host, o Options) error {
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-o.Abort:
		h.Abort()
		return <-ended
	}
}
