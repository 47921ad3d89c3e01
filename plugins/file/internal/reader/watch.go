// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Polling without notifications begins with leastPoll after progress and
// doubles up to mostPoll; with them it is only there for file systems that
// lose some.
const (
	leastPoll  = time.Millisecond
	mostPoll   = 1024 * time.Millisecond
	behindPoll = time.Second
)

// perWaiter is for how long no further wake follows one, for each of those it
// woke: a thousand cursors that wait are not all woken for every write.
const perWaiter = 5 * time.Microsecond

// watch wakes those who wait for a change of the files of a path. A generation
// counts the wakes: who looked at the files after reading it misses nothing by
// waiting for the next one.
type watch struct {
	base, stem string // "orders.ss", "orders."
	notify     *fsnotify.Watcher
	least      time.Duration // of the polling
	most       time.Duration
	log        *slog.Logger
	stop       chan struct{}
	stopped    chan struct{}
	arm        chan struct{} // capacity 1: somebody waits and the timer is to be set
	nudged     chan struct{} // capacity 1: somebody knows of a change

	mu       sync.Mutex
	gen      uint64
	changed  chan struct{} // closed by the next wake; nil while nobody waits
	waiters  int
	interval time.Duration // of the next poll
	armed    time.Duration // the timer runs with this; 0 = it does not
}

// newWatch watches the folder of path, as far as that can be had.
func newWatch(path string, o Options) *watch {
	base := filepath.Base(path)
	w := &watch{
		base: base, stem: strings.TrimSuffix(base, filepath.Ext(base)) + ".",
		log: o.Logger, least: leastPoll, most: mostPoll,
		stop: make(chan struct{}), stopped: make(chan struct{}), arm: make(chan struct{}, 1), nudged: make(chan struct{}, 1),
	}
	if !o.NoNotify {
		w.notify = w.folder(filepath.Dir(path))
	}
	if w.notify != nil {
		w.least, w.most = behindPoll, behindPoll
	}
	if o.Poll > 0 {
		w.least, w.most = o.Poll, o.Poll
	}
	w.interval = w.least
	go w.run()
	return w
}

// folder returns a watcher of dir, or nil where there is none to be had.
func (w *watch) folder(dir string) *fsnotify.Watcher {
	n, err := fsnotify.NewWatcher()
	if err == nil {
		if err = n.Add(dir); err == nil {
			return n
		}
		_ = n.Close()
	}
	w.log.Warn("no notifications of changes to the folder: it is polled", "path", dir, "error", err)
	return nil
}

// close stops the watching and waits for its goroutine.
func (w *watch) close() {
	close(w.stop)
	<-w.stopped
}

// run turns notifications and polls into wakes.
func (w *watch) run() {
	defer close(w.stopped)
	var events chan fsnotify.Event
	var faults chan error
	if w.notify != nil {
		defer func() {
			if err := w.notify.Close(); err != nil {
				w.log.Warn("stop notifications of changes", "path", w.base, "error", err)
			}
		}()
		events, faults = w.notify.Events, w.notify.Errors
	}
	timer, hold := stoppedTimer(), stoppedTimer()
	defer timer.Stop()
	defer hold.Stop()
	var next time.Time // no wake for a change before
	hear := func() {
		now := time.Now()
		if wait := next.Sub(now); wait > 0 {
			hold.Reset(wait)
			return
		}
		next = now.Add(time.Duration(w.wake()) * perWaiter)
	}
	for {
		select {
		case <-w.stop:
			return
		case e, ok := <-events:
			if !ok {
				events = nil
			} else if w.concerns(e) {
				hear()
			}
		case <-w.nudged:
			hear()
		case <-hold.C:
			hear()
		case err, ok := <-faults:
			if !ok {
				faults = nil
			} else if w.wake(); !errors.Is(err, fsnotify.ErrEventOverflow) {
				w.log.Warn("notifications of changes fail: polling goes on", "path", w.base, "error", err)
			}
		case <-w.arm:
			timer.Reset(w.set())
		case <-timer.C:
			w.polled()
		}
	}
}

// stoppedTimer returns a timer that does not run.
func stoppedTimer() *time.Timer {
	t := time.NewTimer(mostPoll)
	t.Stop()
	return t
}

// concerns reports whether an event is about one of the segments.
func (w *watch) concerns(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	name := filepath.Base(e.Name)
	return name == w.base || strings.HasPrefix(name, w.stem) && filepath.Ext(name) == filepath.Ext(w.base)
}

// generation returns the count of wakes so far.
func (w *watch) generation() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gen
}

// nudge has the goroutine wake those who wait.
func (w *watch) nudge() {
	select {
	case w.nudged <- struct{}{}:
	default:
	}
}

// wake begins another generation and says how many waited for it.
func (w *watch) wake() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wakeLocked()
}

func (w *watch) wakeLocked() int {
	n := w.waiters
	w.gen++
	w.waiters = 0
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
	return n
}

// progress makes polls quick again.
func (w *watch) progress() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.interval = w.least
}

// set returns the time until the next poll.
func (w *watch) set() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = w.interval
	return w.armed
}

// polled wakes everybody. Who waits again sets the timer again.
func (w *watch) polled() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = 0
	w.interval = min(2*w.interval, w.most)
	w.wakeLocked()
}

// wait returns when a generation after gen has begun: at once when it has.
func (w *watch) wait(ctx context.Context, closed <-chan struct{}, gen uint64) error {
	w.mu.Lock()
	if w.gen != gen {
		w.mu.Unlock()
		return nil
	}
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	changed := w.changed
	w.waiters++
	if w.armed == 0 || w.interval < w.armed {
		select {
		case w.arm <- struct{}{}:
		default:
		}
	}
	w.mu.Unlock()
	select {
	case <-changed:
		return nil
	case <-closed:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}
