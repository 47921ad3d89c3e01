// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/interop"
	"github.com/longshore-go/longshore/internal/programtest"
)

func filePlugin(t *testing.T) string {
	t.Helper()
	return programtest.Path(t, "github.com/longshore-go/longshore/plugins/file/longshore-transport-file")
}

// read is a delivery of a stream file.
type read struct {
	sequence uint64 // as its header says
	attempt  uint64
	payload  string
}

// readers collects what a subscription delivers.
type readers struct {
	mu  sync.Mutex
	got []read
}

func (r *readers) all() []read {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func (r *readers) sequences() []uint64 {
	var out []uint64
	for _, d := range r.all() {
		out = append(out, d.sequence)
	}
	return out
}

// file attaches the file transport to a stream file.
func (s *service) file(path string) *host.Endpoint {
	s.t.Helper()
	return s.Endpoint("file", host.Plugin{Name: "file", Path: filePlugin(s.t)}, map[string]any{"path": path})
}

// reads subscribes to a key; handle says what becomes of a delivery.
func (s *service) reads(e *host.Endpoint, key string, options map[string]any, handle func() error, rules ...host.Rule) *readers {
	s.t.Helper()
	r := &readers{}
	host.Handle(e.Subscription(key, host.Options(options)), func(_ context.Context, m *host.Message[[]byte]) error {
		n, err := strconv.ParseUint(m.Header("stream-sequence"), 10, 64)
		if err != nil {
			s.t.Errorf("the header stream-sequence: %v", err)
		}
		r.mu.Lock()
		r.got = append(r.got, read{n, m.Attempt(), string(m.Value)})
		r.mu.Unlock()
		return handle()
	}, rules...)
	return r
}

func ack() error { return nil }

// replays reads a key of a file from the beginning to its end.
func replays(t *testing.T, path, key string) (*readers, *service) {
	t.Helper()
	s := newService(t)
	r := s.reads(s.file(path), key, map[string]any{"replay": true}, ack)
	s.start()
	if err := s.ends(); err != nil {
		t.Errorf("the replay ended with %v", err)
	}
	return r, s
}

// follows reads a key of a file from its end on.
func follows(t *testing.T, path, key string) (*readers, *service) {
	t.Helper()
	s := newService(t)
	r := s.reads(s.file(path), key, nil, ack)
	s.serve()
	return r, s
}

// reports returns what subscriptions said of damage.
func (s *service) reports() []line { return s.log.of("L-STREAM", "") }

// streamFile writes a file by the SeaStreamer client: key orders, payloads as
// given.
func streamFile(t *testing.T, interval uint32, payloads ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "orders.ss")
	var records []interop.Record
	for _, p := range payloads {
		records = append(records, interop.Record{Key: "orders", Payload: interop.Bytes(p)})
	}
	interop.Write(t, path, interop.WriteOptions{Interval: interval}, records...)
	return path
}

// offsets returns where the records of a file stand, and where they end.
func offsets(t *testing.T, path string) []int64 {
	t.Helper()
	at, err := interop.Dump(t, path).Layout()
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
