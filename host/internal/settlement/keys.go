// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"errors"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

var errKeyExited = errors.New("key function ended its goroutine with runtime.Goexit")

// key is what several deliveries have in common that are to be begun one after
// the other. It exists while one of them is with a worker or not begun, so that
// the window bounds the number of keys. All of it is guarded by the lane's lock.
type key struct {
	name    string
	busy    bool   // a worker has it
	batch   *batch // which has it and still gathers; nil = none
	flights int    // of it that are not begun
	first   *flight
	last    *flight // from first on by f.behind: they wait until it is free
	listed  bool    // it is among the freed ones
	next    *key    // there
}

// push has f wait for its key.
func (k *key) push(f *flight) {
	f.behind = nil
	if k.last == nil {
		k.first = f
	} else {
		k.last.behind = f
	}
	k.last = f
}

// pop takes the first that waits, nil = none does.
func (k *key) pop() *flight {
	f := k.first
	if f == nil {
		return nil
	}
	k.first, f.behind = f.behind, nil
	if k.first == nil {
		k.last = nil
	}
	return f
}

// keys are the keys of a lane.
type keys struct {
	byName  map[string]*key
	waiting int // deliveries that wait for their keys
	freed   *key
	newest  *key // of the freed ones, in the order in which they became free
	spare   *key
	names   map[string]string // of some that were there: one that comes back needs no memory
}

// The bounds of keys.names.
const (
	namesMost  = 256
	namesBytes = 128 // of one
)

// of returns the key of that name for one more delivery that is not begun. The
// name may lie in a frame.
func (t *keys) of(name string) *key {
	k := t.byName[name]
	if k == nil {
		known, ok := t.names[name]
		if !ok {
			known = t.keep(strings.Clone(name))
		}
		k = t.add(known)
	}
	k.flights++
	return k
}

// read is of with the bytes of a name.
func (t *keys) read(name []byte) *key {
	k := t.byName[string(name)]
	if k == nil {
		known, ok := t.names[string(name)]
		if !ok {
			known = t.keep(string(name))
		}
		k = t.add(known)
	}
	k.flights++
	return k
}

// keep remembers a name.
func (t *keys) keep(name string) string {
	if len(name) > namesBytes {
		return name
	}
	if t.names == nil {
		t.names = make(map[string]string)
	}
	if len(t.names) >= namesMost {
		clear(t.names)
	}
	t.names[name] = name
	return name
}

// add makes a key.
func (t *keys) add(name string) *key {
	k := t.spare
	if k != nil {
		t.spare, k.next = k.next, nil
	} else {
		k = &key{}
	}
	if t.byName == nil {
		t.byName = make(map[string]*key)
	}
	k.name = name
	t.byName[name] = k
	return k
}

// begun takes the key off a delivery that is begun or has ended before. It
// returns the key, nil for none.
func (t *keys) begun(f *flight) *key {
	k := f.key
	if k == nil {
		return nil
	}
	f.key = nil
	k.flights--
	t.drop(k)
	return k
}

// drop forgets k where nothing has it any more.
func (t *keys) drop(k *key) {
	if k.busy || k.listed || k.flights > 0 {
		return
	}
	delete(t.byName, k.name)
	*k = key{next: t.spare}
	t.spare = k
}

// claim gives k to a worker, or to a batch that gathers.
func (t *keys) claim(k *key, b *batch) {
	k.busy, k.batch = true, b
	if b != nil {
		b.keys = append(b.keys, k)
	}
}

// free is the end of claim: those that wait for k are next.
func (t *keys) free(k *key) {
	k.busy, k.batch = false, nil
	if k.first == nil {
		t.drop(k)
		return
	}
	k.listed, k.next = true, nil
	if t.newest == nil {
		t.freed = k
	} else {
		t.newest.next = k
	}
	t.newest = k
}

// pop takes the first delivery that has waited for a key that is free now, and
// claims the key.
func (t *keys) pop(b *batch) *flight {
	for t.freed != nil {
		k := t.freed
		t.freed, k.next, k.listed = k.next, nil, false
		if t.freed == nil {
			t.newest = nil
		}
		f := k.pop()
		if f == nil { // a sweep has ended those that waited
			t.drop(k)
			continue
		}
		t.waiting--
		t.claim(k, b)
		if b != nil {
			b.draining = k
		}
		return f
	}
	return nil
}

// wait has f wait for its key, which is busy.
func (t *keys) wait(f *flight) {
	f.key.push(f)
	t.waiting++
}

// sweep ends those of the waiting deliveries that end says it has ended.
func (t *keys) sweep(end func(*flight) bool) (some bool) {
	if t.waiting == 0 {
		return false
	}
	for _, k := range t.byName {
		f := k.first
		k.first, k.last = nil, nil
		for f != nil {
			behind := f.behind
			f.behind = nil
			if end(f) {
				some = true
				t.waiting--
			} else {
				k.push(f)
			}
			f = behind
		}
	}
	return some
}

// askKeys asks LaneOptions.Key about the deliveries of a frame, from the first
// on that it has not been asked about. It is the user's code, which may end the
// reader's goroutine: the next reader goes on behind that delivery.
func (g *generation) askKeys(d *frame.Deliveries) {
	g.asking = d
	for i := len(g.names); i < len(d.Items); i++ {
		g.names = append(g.names, named{err: errKeyExited})
		item := &d.Items[i]
		if item.Undecodable != nil { // no handler sees it
			g.names[i] = named{}
			continue
		}
		g.asked = item.Message
		g.asked.Headers = item.Message.Headers.Without(core.JournalHeader)
		name, err := g.l.o.Key(&g.asked)
		g.names[i] = named{name, err}
	}
	g.asking, g.asked = nil, core.Message{}
}

// keyed gives the key to a delivery that is queued. l.mu is held.
func (g *generation) keyed(f *flight, i int) {
	l := g.l
	switch item := f.item(); {
	case l.o.KeyHeader != "":
		if name, _ := item.Message.Headers.Get(l.o.KeyHeader); len(name) > 0 && item.Undecodable == nil {
			f.key = l.keys.read(name)
		}
	case i < len(g.names):
		if f.unkeyed = g.names[i].err; f.unkeyed == nil && g.names[i].key != "" {
			f.key = l.keys.of(g.names[i].key)
		}
	}
}

// forgetKeys gives up what Key said of the last frame.
func (g *generation) forgetKeys() {
	clear(g.names)
	g.names = g.names[:0]
}

// named is what LaneOptions.Key said.
type named struct {
	key string
	err error
}
