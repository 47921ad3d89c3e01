// SPDX-License-Identifier: Apache-2.0

// Package reader reads the stream files of one path: the rotated ones and the
// active one behind them as one sequence of records.
//
// A [Cursor] delivers the records of a key or pattern from a place on, either
// what there is (a replay) or what comes, too (live). Files are read in chunks
// which are parsed once and shared by all cursors that pass them; each cursor
// goes at its own pace, and what is kept for them is bounded.
//
// Damaged records are never delivered: a [Problem] says which bytes were
// passed. So it does where a file shrank, was replaced or is missing.
//
// # Caveats
//
// Payloads that are kept keep the chunk they came in, [Options].Chunk bytes or
// one larger record.
package reader

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

const (
	defaultChunk = 256 << 10
	defaultCache = 32 << 20
	// leastChunk holds a record's head and a beacon.
	leastChunk = 1 << 10
	// mostKeys is how many keys are kept to be named again.
	mostKeys = 1 << 16
)

// Options tune a [Reader]. The zero value has the defaults.
type Options struct {
	// Poll is how often the file is looked at while a cursor waits. The default
	// is 1 s behind notifications; without them 1 ms after progress, doubling up
	// to 1,024 ms.
	Poll time.Duration
	// NoNotify does without notifications of the file system.
	NoNotify bool
	// Chunk is how many bytes are read at a time. The default is 256 KiB.
	Chunk int
	// Cache is how many bytes of chunks are kept at most, the last one whatever
	// its size. The default is 32 MiB.
	Cache int64
	// Logger gets what concerns the reader and not the file. The default is
	// none.
	Logger *slog.Logger
}

// Reader reads the files of one path. It is safe for concurrent use.
type Reader struct {
	path  string
	chunk int
	log   *slog.Logger
	watch *watch
	cache cache
	slab  slab

	settle time.Duration // the constant, but in tests
	parsed atomic.Int64  // bytes, for tests
	loaded atomic.Int64  // bytes read from files to be parsed, for tests

	mu      sync.Mutex
	closed  bool
	sources map[sourceKey]*source
	cursors map[*Cursor]struct{}
	reading atomic.Int32 // how many there are

	keysMu sync.Mutex
	keys   map[string]string
}

// New returns a reader of the files of path, of which one must exist. It has a
// goroutine until Close.
func New(path string, o Options) (*Reader, error) {
	full, err := segment.Resolve(path)
	if err != nil {
		return nil, err
	}
	list, err := segment.List(full)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("read stream file: %w", &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist})
	}
	f, err := segment.Open(list[len(list)-1])
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("close stream file: %w", err)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Chunk <= 0 {
		o.Chunk = defaultChunk
	}
	if o.Cache <= 0 {
		o.Cache = defaultCache
	}
	return &Reader{
		path: full, chunk: max(o.Chunk, leastChunk), log: o.Logger, watch: newWatch(full, o),
		cache: cache{limit: o.Cache}, settle: settle,
		sources: make(map[sourceKey]*source), cursors: make(map[*Cursor]struct{}), keys: make(map[string]string),
	}, nil
}

// Poke tells the reader that the file was written, which waiting cursors then
// look at without waiting for the file system to say so.
func (r *Reader) Poke() { r.watch.nudge() }

// Close closes all cursors, whose calls return [ErrClosed], and waits for the
// reader's goroutine.
func (r *Reader) Close(ctx context.Context) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	cursors := make([]*Cursor, 0, len(r.cursors))
	for c := range r.cursors {
		cursors = append(cursors, c)
	}
	r.mu.Unlock()
	r.watch.close()
	for _, c := range cursors {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("close the reader of %s: %w", r.path, err)
		}
		c.Close()
	}
	return nil
}

// join opens a segment, or takes part in it where it is open.
func (r *Reader) join(seg segment.Segment) (*source, error) {
	f, err := segment.Open(seg)
	if err != nil {
		return nil, err
	}
	s, err := newSource(r, f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if there := r.sources[s.key()]; there != nil {
		there.refs++
		there.number = s.number // it is another one once those before it were removed
		return there, f.Close()
	}
	s.refs = 1
	r.sources[s.key()] = s
	return s, nil
}

// number returns the number that the segment of a source was last seen with.
func (r *Reader) number(s *source) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return s.number
}

// kill keeps others from joining a source whose file has changed.
func (r *Reader) kill(s *source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sources[s.key()] == s {
		delete(r.sources, s.key())
	}
}

// leave gives up a part in a source, which is closed after the last one.
func (r *Reader) leave(s *source) {
	r.mu.Lock()
	s.refs--
	last := s.refs == 0
	if last && r.sources[s.key()] == s {
		delete(r.sources, s.key())
	}
	r.mu.Unlock()
	if !last {
		return
	}
	r.cache.drop(s)
	if err := s.file.Close(); err != nil {
		r.log.Warn("close stream file", "path", s.file.Path, "error", err)
	}
}

// intern returns a key as a string that is shared.
func (r *Reader) intern(key []byte) string {
	r.keysMu.Lock()
	defer r.keysMu.Unlock()
	if s, ok := r.keys[string(key)]; ok {
		return s
	}
	if len(r.keys) >= mostKeys {
		clear(r.keys)
	}
	s := string(key)
	r.keys[s] = s
	return s
}
