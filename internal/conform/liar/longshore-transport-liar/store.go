// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/internal/conform/liar"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// store is a folder of queues. One process has it at a time.
type store struct {
	frozen atomic.Bool // nothing is settled any more

	mu      sync.Mutex
	dir     string
	lock    *os.File // nil = not open
	keeping *liar.Keeping
	queues  map[string]*queue // those in use
}

func newStore() *store { return &store{queues: map[string]*queue{}} }

// lockEvery is how often a folder that somebody else has is tried again.
const lockEvery = 5 * time.Millisecond

// open takes the folder. A former process may still be ending, so open waits
// for it as long as the call may take.
func (s *store) open(ctx context.Context, dir string, keeping *liar.Keeping) *pb.Fault {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return passing(unavailable, "connect: make the folder of the queues: %v", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return passing(unavailable, "connect: open the lock of %s: %v", dir, err)
	}
	if !keeping.Shares {
		if fault := flock(ctx, f, dir); fault != nil {
			_ = f.Close()
			return fault
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dir, s.lock, s.keeping = dir, f, keeping
	return nil
}

// flock waits for the lock until shortly before the call's deadline, so that the
// answer still arrives.
func flock(ctx context.Context, f *os.File, dir string) *pb.Fault {
	const spare, most = 100 * time.Millisecond, 10 * time.Second
	end := time.Now().Add(most)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(end.Add(spare)) {
		end = deadline.Add(-spare)
	}
	retry := time.NewTicker(lockEvery)
	defer retry.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return fault(unavailable, "connect: lock %s: %v", dir, err)
		case time.Now().After(end):
			return passing(timedOut, "connect: another process has the queues in %s; end it, or give another dir", dir)
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return fault(canceled, "connect: the call was cut short")
		}
	}
}

// get returns a queue, to be given back with release. Unused ones are closed.
func (s *store) get(name string) (*queue, *pb.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return nil, fault(closed, "the endpoint is closed")
	}
	q, ok := s.queues[name]
	if !ok {
		file := fmt.Sprintf("%x.queue", sha256.Sum256([]byte(name)))
		var err error
		if q, err = openQueue(filepath.Join(s.dir, file), name, s.keeping); err != nil {
			return nil, passing(unavailable, "open the queue %q: %v", name, err)
		}
		s.queues[name] = q
	}
	q.users++
	return q, nil
}

func (s *store) release(q *queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.users--; q.users == 0 {
		q.close()
		delete(s.queues, q.name)
	}
}

// close ends all writing and lets the next process have the folder.
func (s *store) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queues {
		q.close()
	}
	if s.lock != nil {
		_ = s.lock.Close()
		s.lock = nil
	}
}
