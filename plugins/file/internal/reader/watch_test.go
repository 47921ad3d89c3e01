// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// polls waits n times and returns how long each took.
func polls(t *testing.T, w *watch, n int) []time.Duration {
	t.Helper()
	var out []time.Duration
	for range n {
		from := time.Now()
		if err := w.wait(t.Context(), nil, w.generation()); err != nil {
			t.Fatal(err)
		}
		out = append(out, time.Since(from))
	}
	return out
}

func TestPollingBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch("/nowhere/orders.ss", Options{NoNotify: true, Logger: slog.New(slog.DiscardHandler)})
		defer w.close()
		var want []time.Duration
		for d := leastPoll; d <= mostPoll; d *= 2 {
			want = append(want, d)
		}
		want = append(want, mostPoll)
		if got := polls(t, w, len(want)); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		w.progress()
		if got := polls(t, w, 2); !slices.Equal(got, want[:2]) {
			t.Errorf("after progress: got %v, want %v", got, want[:2])
		}
		// Progress shortens a poll that others already wait for.
		polls(t, w, 10)
		gen, from := w.generation(), time.Now()
		waited := make(chan error)
		go func() { waited <- w.wait(t.Context(), nil, gen) }()
		synctest.Wait()
		w.progress()
		if err := w.wait(t.Context(), nil, gen); err != nil {
			t.Fatal(err)
		}
		if err := <-waited; err != nil || time.Since(from) != leastPoll {
			t.Errorf("waited for %v, %v", time.Since(from), err)
		}
	})
}

func TestPollingAtAFixedInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch("/nowhere/orders.ss", Options{NoNotify: true, Poll: time.Minute})
		defer w.close()
		if got := polls(t, w, 3); !slices.Equal(got, []time.Duration{time.Minute, time.Minute, time.Minute}) {
			t.Errorf("got %v", got)
		}
	})
}

// TestWakesAreSpread has a thousand waiters: changes that follow one another
// wake them together.
func TestWakesAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		w := newWatch("/nowhere/orders.ss", Options{NoNotify: true, Poll: time.Hour})
		defer w.close()
		done := make(chan struct{}, n)
		for range n {
			go func() {
				for range 2 {
					if err := w.wait(t.Context(), nil, w.generation()); err != nil {
						t.Error(err)
					}
				}
				done <- struct{}{}
			}()
		}
		synctest.Wait()
		from := time.Now()
		for range 5 {
			w.nudge()
			synctest.Wait()
		}
		for range n {
			<-done
		}
		if took := time.Since(from); took != n*perWaiter {
			t.Errorf("the second wake came after %v, want %v", took, n*perWaiter)
		}
		if gen := w.generation(); gen != 2 {
			t.Errorf("%d wakes for five changes in a row, want 2", gen)
		}
	})
}

func TestFolderThatCannotBeWatched(t *testing.T) {
	w := newWatch(filepath.Join(t.TempDir(), "missing", "orders.ss"), Options{Logger: slog.New(slog.DiscardHandler)})
	defer w.close()
	if w.notify != nil {
		t.Fatal("it is watched")
	}
	polls(t, w, 3)
}

func TestWaitEnds(t *testing.T) {
	w := newWatch(filepath.Join(t.TempDir(), "orders.ss"), Options{Poll: time.Hour})
	closed := make(chan struct{})
	close(closed)
	if err := w.wait(t.Context(), closed, w.generation()); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if err := w.wait(t.Context(), nil, w.generation()-1); err != nil {
		t.Errorf("a generation that has passed: %v", err)
	}
	w.close()
}

func TestConcerns(t *testing.T) {
	w := &watch{base: "orders.ss", stem: "orders."}
	for _, c := range []struct {
		name string
		op   fsnotify.Op
		want bool
	}{
		{"orders.ss", fsnotify.Write, true},
		{"orders.ss", fsnotify.Rename, true},
		{"orders.ss", fsnotify.Chmod, false},
		{"orders.000001.ss", fsnotify.Create, true},
		{"orders.ss.lock", fsnotify.Create, false},
		{"orders.ss.keys", fsnotify.Write, false},
		{"others.ss", fsnotify.Write, false},
	} {
		if got := w.concerns(fsnotify.Event{Name: "/data/" + c.name, Op: c.op}); got != c.want {
			t.Errorf("%v of %s: got %v, want %v", c.op, c.name, got, c.want)
		}
	}
}
