// SPDX-License-Identifier: Apache-2.0

package writer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// held lets a test decide when a sync ends, and how.
type held struct {
	began chan struct{}
	end   chan error
}

func hold(w *Writer) *held {
	h := &held{began: make(chan struct{}), end: make(chan error)}
	w.sync.mu.Lock()
	w.sync.data = func(*os.File) error {
		h.began <- struct{}{}
		return <-h.end
	}
	w.sync.mu.Unlock()
	return h
}

// let ends a sync that has begun and all that come.
func (h *held) let(w *Writer, err error) {
	w.sync.mu.Lock()
	w.sync.data = datasync
	w.sync.mu.Unlock()
	h.end <- err
}

func TestEachRecordIsConfirmedBySomeSync(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	w := open(t, path, Options{Sync: SyncEach})
	h := hold(w)
	var confirmed atomic.Int64
	count := func(_ int, _ uint64, err error) {
		if err != nil {
			t.Error(err)
		}
		confirmed.Add(1)
	}
	w.Append(plain("a", "1"), count)
	<-h.began
	for range 10 { // these are written while the first sync runs
		w.Append(plain("a", "2", "3"), count)
	}
	if got := len(messages(parse(t, path))); got != 21 {
		t.Errorf("%d records are in the file during the sync", got)
	}
	if got := confirmed.Load(); got != 0 {
		t.Errorf("%d are confirmed before any sync ended", got)
	}
	h.end <- nil
	<-h.began // one more sync for all the others
	if got := confirmed.Load(); got != 1 {
		t.Errorf("%d are confirmed after the first sync", got)
	}
	h.let(w, nil)
	closed(t, w)
	if got := confirmed.Load(); got != 21 {
		t.Errorf("%d are confirmed after the second", got)
	}
}

func TestAFailedSyncLeavesReceiptsUnknownAndEndsTheWriting(t *testing.T) {
	path := filepath.Join(folder(t), "orders.ss")
	w := open(t, path, Options{Sync: SyncEach, EndMark: true})
	h := hold(w)
	outcomes := make(chan error, 3)
	take := func(_ int, sequence uint64, err error) {
		if sequence != 0 {
			t.Errorf("a sequence: %d", sequence)
		}
		outcomes <- err
	}
	w.Append(plain("a", "1"), take)
	<-h.began
	w.Append(plain("a", "2"), take) // waits for the next sync, which does not come
	h.let(w, unix.EIO)
	var failed *SyncError
	for range 2 {
		if err := <-outcomes; !errors.As(err, &failed) || !failed.Unknown || !errors.Is(err, unix.EIO) || failed.Path != path {
			t.Errorf("got %v", err)
		}
	}
	if err := refused(t, w, plain("a", "3")...); !errors.As(err, &failed) || failed.Unknown {
		t.Errorf("later: %v", err)
	}
	before := contents(t, path)
	if err := w.Close(t.Context()); !errors.As(err, &failed) {
		t.Errorf("close: %v", err)
	}
	same(t, contents(t, path), before)
	w = open(t, path, Options{})
	if got := put(t, w, plain("a", "4")...); got[0] != 3 {
		t.Errorf("after reopening: %d", got)
	}
}

func TestIntervalsSyncWhatIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(folder(t), "orders.ss")
		w := open(t, path, Options{Sync: SyncInterval, SyncEvery: time.Minute})
		var syncs atomic.Int64
		w.sync.mu.Lock()
		w.sync.data = func(*os.File) error { syncs.Add(1); return nil }
		w.sync.mu.Unlock()
		for _, step := range []struct {
			records int
			want    int64
		}{{0, 0}, {3, 1}, {0, 1}, {1, 2}} {
			for range step.records {
				put(t, w, plain("a", "1")...) // confirmed without waiting
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := syncs.Load(); got != step.want {
				t.Errorf("%d syncs, want %d", got, step.want)
			}
		}
		put(t, w, plain("a", "1")...)
		closed(t, w)
		if got := syncs.Load(); got != 3 {
			t.Errorf("%d syncs after closing", got)
		}
	})
}

func TestAFailedIntervalEndsTheWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, filepath.Join(folder(t), "orders.ss"), Options{Sync: SyncInterval})
		w.sync.mu.Lock()
		w.sync.data = func(*os.File) error { return unix.EIO }
		w.sync.mu.Unlock()
		put(t, w, plain("a", "1")...)
		time.Sleep(DefaultSyncEvery)
		synctest.Wait()
		var failed *SyncError
		if err := refused(t, w, plain("a", "2")...); !errors.As(err, &failed) {
			t.Errorf("got %v", err)
		}
		if err := w.Close(t.Context()); !errors.As(err, &failed) {
			t.Errorf("close: %v", err)
		}
	})
}

func TestAppendWaitsWhereTooManyAreUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, filepath.Join(folder(t), "orders.ss"), Options{Sync: SyncEach})
		h := hold(w)
		var confirmed atomic.Int64
		count := func(int, uint64, error) { confirmed.Add(1) }
		w.Append(plain("a", "0"), count)
		<-h.began
		batch := plain("a", strings.Split(strings.Repeat(",", maxPending-1), ",")...)
		w.Append(batch, count)
		appended := make(chan struct{})
		go func() {
			w.Append(plain("a", "1"), count)
			close(appended)
		}()
		synctest.Wait()
		select {
		case <-appended:
			t.Error("one more was taken")
		default:
		}
		h.let(w, nil)
		<-appended
		closed(t, w)
		if got := confirmed.Load(); got != maxPending+2 {
			t.Errorf("%d are confirmed", got)
		}
	})
}

func TestCloseEndsWithItsContext(t *testing.T) {
	w := open(t, filepath.Join(folder(t), "orders.ss"), Options{Sync: SyncEach})
	h := hold(w)
	w.Append(plain("a", "1"), func(int, uint64, error) {})
	<-h.began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Close(ctx); err == nil {
		t.Error("it was closed during a sync")
	}
	h.let(w, nil)
	<-w.sync.ended
}
