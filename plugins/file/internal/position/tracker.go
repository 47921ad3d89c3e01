// SPDX-License-Identifier: Apache-2.0

package position

import (
	"os"
	"sync"
	"time"
)

// MaxUnsettled is how many unsettled records a position holds. With more of them
// it stays where it is: records behind it are handed out and settled as ever,
// and come again when the group is opened again.
const MaxUnsettled = 1 << 16

// Tracker is the position of one group in one stream. Its methods may be called
// from any goroutine; Waiting, Again and Drop belong to one that hands out.
type Tracker struct {
	// mu is held over writes, which are to be in the order of what they say. It
	// is shared by the two goroutines of one subscription alone.
	mu    sync.Mutex
	store store
	fresh bool

	stored state // but for the unsettled ones
	list   entries
	queue  queue
	slab   slab
	frozen bool // more unsettled ones than MaxUnsettled

	released int // of the list

	whole   bool     // the next write is a state
	dirty   bool     // there is something to write
	moved   bool     // of that, stored.next alone
	again   []uint32 // handed out again,
	settled []uint32 // settled
	pending []byte   // changes
	sum     uint32   // of the last change
	ids     uint32   // given in the active slot
	from    Place    // the last entry in it
}

// Outcome is what became of a verdict.
type Outcome uint8

// The outcomes.
const (
	Done  Outcome = iota
	Stale         // the delivery is not there any more
)

// Verdict settles one delivery.
type Verdict struct {
	Entry   *Entry
	Requeue bool // handed out again; else settled for good
	Outcome Outcome
}

// Open opens the position of a group for a subscription: a key, a prefix with
// "*", or "*". It lies in a folder of the group's name in folder. owner is told
// to others who try. Errors are *NameError, *LockedError, *CorruptError and those
// of the file system.
func Open(folder, group, name, owner string) (*Tracker, error) {
	if err := checkNames(group, name); err != nil {
		return nil, err
	}
	f, err := openFile(folder, group, name, owner)
	if err != nil {
		return nil, err
	}
	again := func() (*os.File, error) { return openFile(folder, group, name, owner) }
	t, err := open(&file{File: f, open: again, looked: time.Now()}, f.Name())
	if err != nil {
		f.Close() //nolint:errcheck // nothing was written
		return nil, err
	}
	return t, nil
}

func open(d disk, path string) (*Tracker, error) {
	t := &Tracker{store: store{disk: d, path: path}, whole: true}
	s, err := t.store.load()
	if err != nil {
		return nil, err
	}
	if s == nil {
		t.fresh = true
		return t, nil
	}
	for _, u := range s.unsettled {
		e := t.slab.take()
		*e = Entry{Place: u.place, Attempt: u.count, stage: waiting}
		t.list.push(e)
		t.queue.push(e)
	}
	s.unsettled = nil
	t.stored = *s
	return t, nil
}

// Path is the position's file.
func (t *Tracker) Path() string { return t.store.path }

// Fresh reports whether the group has no position yet.
func (t *Tracker) Fresh() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fresh
}

// Next is where reading goes on for records that were not handed out yet.
func (t *Tracker) Next() Place {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stored.next
}

// Last is the last record that was handed out, false if none was since the
// position was begun or moved.
func (t *Tracker) Last() (Mark, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stored.last, t.stored.hasLast
}

// Unsettled is how many records before Next are not settled.
func (t *Tracker) Unsettled() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.list.n
}

// Idle reports whether nothing is with the host and nothing is to be handed out
// again. What was released is neither.
func (t *Tracker) Idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.list.all == t.released
}

// Full reports whether the position stays where it is, see MaxUnsettled.
func (t *Tracker) Full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.frozen
}

// Begin sets where reading goes on and forgets what is unsettled: verdicts on it
// are stale from now on. It is written at once; where that fails it holds all the
// same and is written with the next change.
func (t *Tracker) Begin(at Place) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for e := t.list.first; e != nil; e = e.next {
		e.stage = over
	}
	t.list, t.queue, t.released, t.frozen, t.fresh = entries{}, queue{}, 0, false, false
	t.stored = state{next: at}
	t.whole, t.dirty = true, true
	return t.flush()
}

// Moved says where reading goes on although nothing was handed out. It is written
// with the next change or at Save.
func (t *Tracker) Moved(next Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.frozen && next != t.stored.next {
		t.stored.next, t.moved, t.dirty = next, true, true
	}
}

// Save writes what is not written yet.
func (t *Tracker) Save() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.flush()
}

// Close writes the rest and lets go of the file.
func (t *Tracker) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.flush()
	if cerr := t.store.disk.Close(); err == nil {
		err = cerr
	}
	return err
}
