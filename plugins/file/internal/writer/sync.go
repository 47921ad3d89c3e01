// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"os"
	"sync"
	"time"

	"github.com/longshore-go/longshore/plugins/file/internal/segment"
)

// maxPending is how many records wait for a sync at most; then Append waits.
const maxPending = 1 << 16

// syncer brings a file to disk on a goroutine of its own, while the writer goes
// on. One sync answers for all that was written before it began.
type syncer struct {
	path  string
	every time.Duration // 0 = whenever something was written
	data  func(*os.File) error

	mu      sync.Mutex
	changed *sync.Cond // written, synced, err
	file    *os.File
	written uint64 // counts writes
	synced  uint64 // of them, those on disk
	pending []receipt
	err     error

	wake  chan struct{} // there is something to do at once
	quit  chan struct{}
	ended chan struct{}
	spare []receipt // of the goroutine
}

// receipt is a record that waits to be confirmed.
type receipt struct {
	done     Done
	index    int
	sequence uint64
}

func newSyncer(path string, f *segment.File, every time.Duration) *syncer {
	s := &syncer{
		path: path, every: every, data: datasync, file: f.File,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{}),
	}
	s.changed = sync.NewCond(&s.mu)
	go s.run()
	return s
}

// wrote says that something was written, and which records are confirmed when
// it is on disk.
func (s *syncer) wrote(records []record, done Done) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.pending) >= maxPending {
		s.changed.Wait()
	}
	s.written++
	for _, r := range records {
		s.pending = append(s.pending, receipt{done: done, index: r.index, sequence: r.sequence})
	}
	if s.every == 0 {
		s.nudge()
	}
}

func (s *syncer) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// flush waits until all that was written is on disk.
func (s *syncer) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nudge()
	for s.err == nil && s.synced < s.written {
		s.changed.Wait()
	}
	if s.err == nil {
		return nil
	}
	return &SyncError{Path: s.path, Err: s.err}
}

// turn goes over to another file. All of the one before must be on disk.
func (s *syncer) turn(f *segment.File) {
	s.mu.Lock()
	s.file = f.File
	s.mu.Unlock()
}

// failed returns why nothing can be brought to disk any more.
func (s *syncer) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return nil
	}
	return &SyncError{Path: s.path, Err: s.err}
}

// stop brings the rest to disk, answers for it and ends the goroutine.
func (s *syncer) stop() error {
	close(s.quit)
	<-s.ended
	return s.failed()
}

func (s *syncer) run() {
	defer close(s.ended)
	var tick <-chan time.Time
	if s.every > 0 {
		t := time.NewTicker(s.every)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-s.wake:
		case <-tick:
		case <-s.quit:
			s.sync()
			return
		}
		s.sync()
	}
}

// sync brings to disk what was written before it began.
func (s *syncer) sync() {
	s.mu.Lock()
	if s.synced == s.written {
		s.mu.Unlock()
		return
	}
	file, written, err := s.file, s.written, s.err
	s.pending, s.spare = s.spare[:0], s.pending
	s.mu.Unlock()

	if err == nil { // after a failure the kernel may claim success for pages that it has dropped
		err = s.data(file)
	}

	s.mu.Lock()
	s.err = err
	s.synced = written
	s.changed.Broadcast()
	s.mu.Unlock()
	for i, r := range s.spare {
		if err != nil {
			r.done(r.index, 0, &SyncError{Path: s.path, Unknown: true, Err: err})
		} else {
			r.done(r.index, r.sequence, nil)
		}
		s.spare[i] = receipt{}
	}
}
