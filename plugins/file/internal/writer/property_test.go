// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// machine is a path that is written and reopened, and what it must hold.
type machine struct {
	t    *rapid.T
	path string
	o    Options
	now  time.Time

	w         *Writer
	confirmed []parsed
	last      map[string]uint64
	changed   bool // opened anew since the last check
}

func (m *machine) open() {
	w, err := Open(context.Background(), m.path, m.o)
	if err != nil {
		m.t.Fatal(err)
	}
	m.w, m.changed = w, true
}

func (m *machine) batch() []Entry {
	keys := []string{"a", "b", "c.1", "D", strings.Repeat("long", 60)}
	batch := make([]Entry, rapid.IntRange(1, 6).Draw(m.t, "entries"))
	for i := range batch {
		n := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(900, 4000)).Draw(m.t, "size")
		batch[i] = Entry{Key: rapid.SampledFrom(keys).Draw(m.t, "key"), Payload: []byte(strings.Repeat("x", n))}
	}
	return batch
}

// Append appends a batch; all of it must be confirmed.
func (m *machine) Append(*rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(-5, 2000).Draw(m.t, "ms")) * time.Millisecond)
	batch := m.batch()
	sequences, errs := try(m.w, batch)
	if err := errors.Join(errs...); err != nil {
		m.t.Fatal(err)
	}
	for i, e := range batch {
		m.last[e.Key]++
		if sequences[i] != m.last[e.Key] {
			m.t.Fatalf("%s: sequence %d, want %d", e.Key, sequences[i], m.last[e.Key])
		}
		m.confirmed = append(m.confirmed, parsed{e.Key, sequences[i], string(e.Payload)})
	}
}

// Reopen closes the writer and opens the path anew, perhaps otherwise.
func (m *machine) Reopen(*rapid.T) {
	if err := m.w.Close(context.Background()); err != nil {
		m.t.Fatal(err)
	}
	m.another()
}

// Kill ends the writer in the middle of a batch, of which any part is in the
// file, but not the whole.
func (m *machine) Kill(*rapid.T) {
	if m.w.size > m.w.block.off {
		return // a mark stands there, which is cut off first
	}
	m.w.begin()
	for _, e := range m.batch()[:1] {
		m.w.block.record(m.w.table, e.Key, nil, e.Payload, len(e.Payload), false, m.now.UnixMilli())
	}
	length := format.RecordLen(m.w.table.before[0].name, 0) // no more than the first record surely has
	part := rapid.IntRange(0, length-1).Draw(m.t, "part")
	if _, err := m.w.file.Write(m.w.block.bytes[:part]); err != nil {
		m.t.Fatal(err)
	}
	if m.w.sync != nil {
		_ = m.w.sync.stop()
	}
	if err := errors.Join(m.w.file.Close(), m.w.lock.Unlock()); err != nil {
		m.t.Fatal(err)
	}
	m.another()
}

func (m *machine) another() {
	if rapid.IntRange(0, 3).Draw(m.t, "side file") == 0 && m.o.Keep == 0 {
		if err := removed(m.path + sideSuffix); err != nil {
			m.t.Fatal(err)
		}
	}
	m.o.EndMark = rapid.Bool().Draw(m.t, "mark")
	m.o.Sync = rapid.SampledFrom([]Sync{SyncNone, SyncNone, SyncNone, SyncInterval, SyncEach}).Draw(m.t, "sync")
	m.o.RotateBytes = int64(rapid.SampledFrom([]int{0, 0, 3000, 20_000}).Draw(m.t, "rotate bytes"))
	m.o.RotateAge = time.Duration(rapid.SampledFrom([]int{0, 0, 5}).Draw(m.t, "rotate age")) * time.Second
	m.open()
}

// Check compares the files with what was confirmed, as far as files are kept.
func (m *machine) Check(t *rapid.T) {
	if !m.changed {
		return
	}
	m.changed = false
	list, err := segment.List(m.path)
	if err != nil {
		t.Fatal(err)
	}
	var got []parsed
	for _, s := range list {
		b, err := os.ReadFile(s.Path)
		if err != nil {
			t.Fatal(err)
		}
		records, err := parseBytes(b)
		if err != nil {
			t.Fatalf("%s: %v", s.Path, err)
		}
		got = append(got, messages(records)...)
	}
	want := m.confirmed
	if m.o.Keep > 0 && len(got) < len(want) {
		want = want[len(want)-len(got):]
	}
	if !slices.Equal(want, got) {
		t.Fatalf("(-want +got)\n%s", cmp.Diff(want, got))
	}
}

// Whatever happens to a path, its files hold what was confirmed, once and in
// order.
func TestFilesHoldWhatWasConfirmed(t *testing.T) {
	dir := folder(t)
	rapid.Check(t, func(rt *rapid.T) {
		sub, err := os.MkdirTemp(dir, "")
		if err != nil {
			rt.Fatal(err)
		}
		m := &machine{t: rt, path: filepath.Join(sub, "orders.ss"), now: time.UnixMilli(born), last: map[string]uint64{}}
		m.o = Options{Now: func() time.Time { return m.now }}
		m.o.Interval = uint32(1024 * rapid.SampledFrom([]int{1, 2, 5}).Draw(rt, "interval"))
		m.o.Keep = rapid.SampledFrom([]int{0, 0, 2}).Draw(rt, "keep")
		m.open()
		defer func() {
			_ = m.w.Close(context.Background())
			_ = os.RemoveAll(sub)
		}()
		rt.Repeat(map[string]func(*rapid.T){
			"append": m.Append, "append more": m.Append, "reopen": m.Reopen, "kill": m.Kill, "": m.Check,
		})
		m.Reopen(rt)
		m.Check(rt)
	})
}
