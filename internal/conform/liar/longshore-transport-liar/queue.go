// SPDX-License-Identifier: Apache-2.0

package main

import (
	"container/heap"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/longshore-go/longshore/internal/conform/liar"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// dedupLimit bounds the dedup ids that a queue remembers.
const dedupLimit = 1 << 16

var errClosed = errors.New("the endpoint is closed")

// entry is one message of a queue, until it is done.
type entry struct {
	seq      uint64
	message  *pb.Outgoing
	identity []byte
	size     uint64    // payload and headers
	stored   int64     // nanoseconds since 1970
	due      int64     // not before; 0 = now
	count    uint32    // deliveries
	until    time.Time // end of its hold
}

// queue is one name. What is handed back goes to its old place, so that order
// is that of publishing; what was delayed comes as soon as it is due, before all
// that is newer. The lock is held over writes to the journal, since its order is
// that of the queue.
type queue struct {
	name  string
	users int // the store's

	mu      sync.Mutex
	changed *sync.Cond // whatever a subscription waits for
	journal *journal   // nil = closed
	keeping *liar.Keeping
	tag     []byte // tells its messages from those of other queues
	last    uint64 // newest seq
	ready   entries
	delayed entries
	alarm   *time.Timer
	dedup   map[string]bool
	dedups  []string  // in order of age
	taken   int       // messages, for the lie that swaps them
	placed  time.Time // when a message became ready last
}

func openQueue(path, name string, keeping *liar.Keeping) (*queue, error) {
	q := &queue{name: name, keeping: keeping, dedup: map[string]bool{}, ready: entries{less: bySeq}, delayed: entries{less: byDue}}
	q.changed = sync.NewCond(&q.mu)
	live := map[uint64]*entry{}
	j, err := openJournal(path, func(op byte, body []byte) error { return q.replay(live, op, body) })
	if err != nil {
		return nil, err
	}
	q.journal = j
	if j.size == 0 {
		q.tag = make([]byte, 8)
		_, _ = rand.Read(q.tag) // it never fails
		if err := j.write(record(nil, opQueue, nil, append(q.tag, name...))); err != nil {
			return nil, err
		}
	}
	for _, e := range live {
		e.identity = q.identity(e.seq)
		q.place(e)
	}
	return q, nil
}

// replay takes one record of the journal.
func (q *queue) replay(live map[uint64]*entry, op byte, body []byte) error {
	if len(body) < 8 {
		return errors.New("a record is too short")
	}
	if op == opQueue {
		q.tag = body[:8:8]
		return nil
	}
	seq := binary.BigEndian.Uint64(body)
	e := live[seq]
	switch {
	case op == opPut && len(body) >= 24:
		o := &pb.Outgoing{}
		if err := proto.Unmarshal(body[24:], o); err != nil {
			return err
		}
		live[seq] = &entry{seq: seq, message: o, size: weight(o), stored: int64(binary.BigEndian.Uint64(body[8:])),
			due: int64(binary.BigEndian.Uint64(body[16:]))}
		q.last = max(q.last, seq)
		q.remember(o.GetDedupId())
	case op == opTake && e != nil:
		e.count++
		e.due = 0
		if q.keeping.Recounts {
			e.count = 0
		}
		if q.keeping.LosesUnsettled {
			delete(live, seq)
		}
	case op == opBack && e != nil && len(body) >= 16:
		e.due = int64(binary.BigEndian.Uint64(body[8:]))
	case op == opDone && !q.keeping.ForgetsAcks:
		delete(live, seq)
	}
	return nil
}

func (q *queue) identity(seq uint64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte(nil), q.tag...), seq)
}

// place puts a message where it is taken from. The lock is held, or there is
// nobody else yet.
func (q *queue) place(e *entry) {
	if e.due > time.Now().UnixNano() {
		heap.Push(&q.delayed, e)
		q.wake()
		return
	}
	heap.Push(&q.ready, e)
	q.placed = time.Now()
	q.changed.Broadcast()
}

// wake sets the alarm for the first delayed message; the lock is held.
func (q *queue) wake() {
	if len(q.delayed.all) == 0 || q.journal == nil {
		return
	}
	wait := time.Until(time.Unix(0, q.delayed.all[0].due))
	if q.alarm == nil {
		q.alarm = time.AfterFunc(wait, q.due)
		return
	}
	q.alarm.Reset(wait)
}

// due makes delayed messages ready.
func (q *queue) due() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for now := time.Now().UnixNano(); len(q.delayed.all) > 0 && q.delayed.all[0].due <= now; {
		heap.Push(&q.ready, heap.Pop(&q.delayed))
	}
	q.wake()
	q.changed.Broadcast()
}

// put stores a message, unless it is there already under its dedup id.
func (q *queue) put(o *pb.Outgoing, delay time.Duration, dedup bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.journal == nil {
		return errClosed
	}
	if dedup && q.dedup[o.GetDedupId()] {
		return nil
	}
	body, err := proto.Marshal(o)
	if err != nil {
		return err
	}
	now := time.Now()
	e := &entry{seq: q.last + 1, message: o, identity: q.identity(q.last + 1), size: weight(o), stored: now.UnixNano()}
	if delay > 0 {
		e.due = now.Add(delay).UnixNano()
	}
	if err := q.journal.write(record(nil, opPut, []uint64{e.seq, uint64(e.stored), uint64(e.due)}, body)); err != nil {
		return err
	}
	q.last = e.seq
	q.remember(o.GetDedupId())
	q.place(e)
	return nil
}

func (q *queue) remember(id string) {
	if id == "" || q.dedup[id] {
		return
	}
	if len(q.dedups) == dedupLimit {
		delete(q.dedup, q.dedups[0])
		q.dedups = q.dedups[1:]
	}
	q.dedup[id] = true
	q.dedups = append(q.dedups, id)
}

// close ends all writing.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.journal != nil {
		_ = q.journal.f.Close()
		q.journal = nil
	}
	if q.alarm != nil {
		q.alarm.Stop()
	}
	q.changed.Broadcast()
}

// weight is what limits and credit count of a message.
func weight(o *pb.Outgoing) uint64 {
	n := len(o.GetPayload())
	for _, h := range o.GetHeaders() {
		n += len(h.GetName()) + len(h.GetValue())
	}
	return uint64(n)
}
