// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
)

func TestMain(m *testing.M) {
	if task := os.Getenv(childTask); task != "" {
		writeUntilKilled(task)
		return
	}
	leaktest.Main(m)
}

// born is when the clocks of tests begin.
const born = 1_700_000_000_000

// clock goes on by a millisecond whenever it is asked.
type clock struct {
	mu sync.Mutex
	ms int64
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ms++
	return time.UnixMilli(c.ms - 1)
}

// folder is a test's folder under the one name that it has.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t testing.TB, path string, o Options) *Writer {
	t.Helper()
	w, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	return w
}

func closed(t testing.TB, w *Writer) {
	t.Helper()
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// kill leaves a writer's file as it stands, as the end of its process would.
func kill(t testing.TB, w *Writer) {
	t.Helper()
	if w.sync != nil {
		_ = w.sync.stop()
	}
	w.stopped = ErrClosed
	if err := errors.Join(w.file.Close(), w.lock.Unlock()); err != nil {
		t.Fatal(err)
	}
}

func plain(key string, payloads ...string) []Entry {
	list := make([]Entry, len(payloads))
	for i, p := range payloads {
		list[i] = Entry{Key: key, Payload: []byte(p)}
	}
	return list
}

// try appends a batch and waits for its outcomes.
func try(w *Writer, batch []Entry) ([]uint64, []error) {
	sequences, errs := make([]uint64, len(batch)), make([]error, len(batch))
	var wg sync.WaitGroup
	wg.Add(len(batch))
	w.Append(batch, func(i int, sequence uint64, err error) {
		sequences[i], errs[i] = sequence, err
		wg.Done()
	})
	wg.Wait()
	return sequences, errs
}

func put(t testing.TB, w *Writer, batch ...Entry) []uint64 {
	t.Helper()
	sequences, errs := try(w, batch)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return sequences
}

func refused(t testing.TB, w *Writer, batch ...Entry) error {
	t.Helper()
	_, errs := try(w, batch)
	for i, err := range errs {
		if err == nil {
			t.Fatalf("entry %d was taken", i)
		}
	}
	return errs[0]
}

func contents(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// parsed is a record of a file.
type parsed struct {
	Key      string
	Sequence uint64
	Payload  string
}

// parse takes a whole file apart. It may end with an end mark, but not within
// anything.
func parse(t testing.TB, path string) []parsed {
	t.Helper()
	list, err := parseBytes(contents(t, path))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return list
}

func parseBytes(b []byte) ([]parsed, error) {
	h, err := format.ParseHeader(b)
	if err != nil {
		return nil, err
	}
	var list []parsed
	p := format.Parser{Interval: h.Interval}
	for off := int64(format.HeaderSize); off < int64(len(b)); {
		if off%int64(h.Interval) == 0 {
			beacon, n, err := format.ParseBeacon(b[off:])
			if err == nil && beacon.Remaining == 0 && off+int64(n) == int64(len(b)) {
				return list, nil
			}
		}
		var r format.Record
		n, err := p.Next(b[off:], off, &r)
		if err != nil {
			return list, fmt.Errorf("at offset %d of %d: %w", off, len(b), err)
		}
		off += int64(n)
		list = append(list, parsed{Key: string(r.Key), Sequence: r.Sequence, Payload: string(r.Payload)})
		p.Spill = nil
	}
	return list, nil
}

// messages leaves out what the format itself writes.
func messages(list []parsed) []parsed {
	var out []parsed
	for _, r := range list {
		if r.Key != format.PrimeKey && r.Key != format.EndKey {
			out = append(out, r)
		}
	}
	return out
}

// entryOf takes a record's payload apart, as a reader does.
func entryOf(t testing.TB, key string, payload []byte) Entry {
	t.Helper()
	headers, body, err := envelope.Decode(payload)
	if err != nil {
		t.Fatal(err)
	}
	return Entry{Key: key, Headers: headers, Payload: body}
}
