// SPDX-License-Identifier: Apache-2.0

package position

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// truth is what a position should say: how often each unsettled record was
// handed out and not taken back, and from where on none was.
type truth struct {
	counts map[int]uint32
	next   int
}

func (t truth) clone() truth { return truth{counts: maps.Clone(t.counts), next: t.next} }

// model compares a tracker with the plain truth, through crashes and writes that
// fail.
type model struct {
	records []Mark
	disk    *memory
	tracker *Tracker
	now     truth  // in memory
	kept    truth  // on disk
	prior   truth  // on disk before the last write
	half    *truth // of a write that failed: the disk is between kept and this
	whole   bool   // the write before the last one did not fail
	seen    int    // writes
	index   map[Place]int
	out     map[int]*Entry // with the host
	queued  []int          // to be handed out again, in order
}

// wrote takes note of a call that may have written the truth.
func (m *model) wrote(err error) {
	if m.disk.writes == m.seen {
		return
	}
	m.seen = m.disk.writes
	switch {
	case err == nil:
		m.prior, m.kept, m.whole, m.half = m.kept, m.now.clone(), m.half == nil, nil
	case m.half == nil:
		said := m.now.clone()
		m.half = &said
	}
}

func (m *model) deliver(t *rapid.T) {
	n := min(rapid.IntRange(1, 40).Draw(t, "n"), len(m.records)-1-m.now.next)
	from := m.now.next
	es := m.tracker.Deliver(nil, m.records[from:from+n], m.records[from+n].Place)
	for i, e := range es {
		if e.Attempt != 1 {
			t.Fatalf("first delivery is number %d", e.Attempt)
		}
		m.now.counts[from+i] = 1
		m.out[from+i] = e
	}
	m.now.next += n
	m.wrote(m.tracker.Save())
}

func (m *model) again(t *rapid.T) {
	for range rapid.IntRange(1, 5).Draw(t, "n") {
		e := m.tracker.Waiting()
		if (e == nil) != (len(m.queued) == 0) {
			t.Fatalf("waiting %v, want %v", e, m.queued)
		}
		if e == nil {
			break
		}
		i := m.queued[0]
		m.queued = m.queued[1:]
		if e.Place != m.records[i].Place {
			t.Fatalf("place %v is handed out again, want %v", e.Place, m.records[i].Place)
		}
		if rapid.IntRange(0, 9).Draw(t, "drop") == 0 {
			m.tracker.Drop()
			delete(m.now.counts, i)
			continue
		}
		m.now.counts[i]++
		e = m.tracker.Again()
		m.out[i] = e
		if e.Attempt != m.now.counts[i] {
			t.Fatalf("attempt %d, want %d", e.Attempt, m.now.counts[i])
		}
	}
	m.wrote(m.tracker.Save())
}

func (m *model) settle(t *rapid.T) {
	all := slices.Sorted(maps.Keys(m.out))
	if len(all) == 0 {
		return
	}
	chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, min(len(all), 30), rapid.ID[int]).Draw(t, "chosen")
	vs := make([]Verdict, len(chosen))
	for k, i := range chosen {
		vs[k] = Verdict{Entry: m.out[i], Requeue: rapid.IntRange(0, 3).Draw(t, "requeue") == 0}
	}
	err := m.tracker.Settle(vs)
	for k, i := range chosen {
		if vs[k].Outcome != Done {
			t.Fatalf("outcome %d, want done", vs[k].Outcome)
		}
		if vs[k].Requeue {
			m.queued = append(m.queued, i)
		} else {
			delete(m.now.counts, i)
		}
		delete(m.out, i)
	}
	m.wrote(err)
	for k := range vs {
		vs[k].Requeue = k%2 == 0
		vs[k].Outcome = Done
	}
	m.wrote(m.tracker.Settle(vs))
	if slices.ContainsFunc(vs, func(v Verdict) bool { return v.Outcome != Stale }) {
		t.Fatal("a second verdict is not stale")
	}
}

func (m *model) release(t *rapid.T) {
	for i, e := range m.out {
		if i%7 == 0 {
			m.tracker.Release(e)
			delete(m.out, i)
		}
	}
}

func (m *model) seek(t *rapid.T) {
	to := rapid.IntRange(0, m.now.next).Draw(t, "to")
	old := slices.Collect(maps.Values(m.out))
	m.now, m.out, m.queued = truth{counts: map[int]uint32{}, next: to}, map[int]*Entry{}, nil
	m.wrote(m.tracker.Begin(m.records[to].Place))
	vs := acks(old...)
	m.wrote(m.tracker.Settle(vs))
	if slices.ContainsFunc(vs, func(v Verdict) bool { return v.Outcome != Stale }) {
		t.Fatal("a verdict from before a seek is not stale")
	}
}

// read opens what is on a disk.
func (m *model) read(t *rapid.T, d *memory) (*Tracker, truth) {
	tr := mustOpen(t, d)
	got := truth{counts: map[int]uint32{}, next: m.index[tr.Next()]}
	last := -1
	for _, u := range pending(tr) {
		i := m.index[u.place]
		if i <= last {
			t.Fatalf("record %d comes behind record %d", i, last)
		}
		got.counts[i], last = u.count, i
	}
	return tr, got
}

// crash leaves the tracker where it is.
func (m *model) crash(t *rapid.T) { m.reopen(t, m.disk.again()) }

// reopen opens a disk and compares it with the truth.
func (m *model) reopen(t *rapid.T, d *memory) {
	tr, got := m.read(t, d)
	if m.half != nil {
		m.between(t, m.kept, *m.half, m.now, got)
		m.kept = got
	} else if diff := cmp.Diff(m.kept, got, cmp.AllowUnexported(truth{})); diff != "" {
		t.Fatalf("position (-want +got):\n%s", diff)
	}
	*m = model{
		records: m.records, index: m.index, disk: d, tracker: tr, now: m.kept.clone(), kept: m.kept, prior: m.kept.clone(),
		out: map[int]*Entry{}, queued: slices.Sorted(maps.Keys(m.kept.counts)),
	}
}

// finish ends in order and takes back what is out, but for some. The last write
// may fail or be torn.
func (m *model) finish(t *rapid.T) {
	var kept []*Entry
	for i, e := range m.out {
		if i%3 == 0 {
			kept = append(kept, e)
		}
	}
	m.wrote(m.tracker.TakeBack(kept...))
	for i := range m.out {
		if i%3 != 0 {
			m.now.counts[i]--
		}
	}
	m.disk.fail = rapid.IntRange(0, 1).Draw(t, "fails")
	m.disk.short = rapid.IntRange(0, 2000).Draw(t, "bytes")
	m.wrote(m.tracker.Close())
	m.tear(t)
	m.reopen(t, m.disk.again())
}

// close ends in order.
func (m *model) close(t *rapid.T) {
	m.disk.fail = 0
	if err := m.tracker.Close(); err != nil || !m.disk.closed {
		t.Fatalf("close: %v", err)
	}
	m.kept, m.half = m.now.clone(), nil
	m.reopen(t, m.disk.again())
}

// tear loses a part of the last write.
func (m *model) tear(t *rapid.T) {
	if m.half != nil || !m.whole || m.disk.writes < 2 {
		return
	}
	_, got := m.read(t, m.disk.torn(rapid.IntRange(0, 300).Draw(t, "bytes"), rapid.Bool().Draw(t, "first")))
	m.between(t, m.prior, m.kept, m.kept, got)
}

// between checks what writes left that were cut off: the first of them said first,
// the last one last. No record is left out that they did not settle, and none comes
// that was settled before.
func (m *model) between(t *rapid.T, prior, first, last, got truth) {
	if got.next != prior.next && got.next != first.next && got.next != last.next {
		t.Fatalf("next is %d, want %d, %d or %d", got.next, prior.next, first.next, last.next)
	}
	for i, n := range got.counts {
		said := []uint32{prior.counts[i], first.counts[i], last.counts[i]}
		_, before := prior.counts[i]
		_, behind := first.counts[i]
		_, end := last.counts[i]
		if !before && !behind && !end || n < slices.Min(said) || n > slices.Max(said) {
			t.Fatalf("record %d was handed out %d times, the writes said %d", i, n, said)
		}
	}
	for i := range first.counts {
		_, left := last.counts[i]
		if _, ok := got.counts[i]; !ok && left && i < got.next {
			t.Fatalf("record %d is left out", i)
		}
	}
}

func TestModel(t *testing.T) {
	records := stream(4000)
	index := map[Place]int{}
	for i, r := range records {
		index[r.Place] = i
	}
	rapid.Check(t, func(t *rapid.T) {
		d := &memory{}
		m := &model{
			records: records, index: index, disk: d, tracker: mustOpen(t, d),
			now: truth{counts: map[int]uint32{}}, out: map[int]*Entry{},
		}
		m.wrote(m.tracker.Begin(records[0].Place))
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if m.tracker.Idle() != (len(m.out)+len(m.queued) == 0) {
					t.Fatalf("idle is %v with %d deliveries and %d waiting", m.tracker.Idle(), len(m.out), len(m.queued))
				}
			},
			"deliver": m.deliver,
			"again":   m.again,
			"settle":  m.settle,
			"release": m.release,
			"seek":    m.seek,
			"tear":    m.tear,
			"crash":   m.crash,
			"close":   m.close,
			"finish":  m.finish,
			"fail": func(t *rapid.T) {
				m.disk.fail, m.disk.short = rapid.IntRange(1, 3).Draw(t, "writes"), rapid.IntRange(0, 50).Draw(t, "bytes")
			},
		})
	})
}
