// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/feed"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/message"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// modelID is an id as the library makes them.
type modelID struct {
	entry int64
	batch int32
	size  int32
}

func (i modelID) LedgerID() int64     { return 7 }
func (i modelID) EntryID() int64      { return i.entry }
func (i modelID) BatchIdx() int32     { return i.batch }
func (i modelID) BatchSize() int32    { return i.size }
func (i modelID) PartitionIdx() int32 { return 0 }
func (i modelID) String() string      { return fmt.Sprintf("7:%d:%d", i.entry, i.batch) }
func (i modelID) Serialize() []byte   { return nil }

// modelMessage is one on the wire.
type modelMessage struct {
	pulsar.Message
	id    modelID
	count uint32
}

func (m modelMessage) ID() pulsar.MessageID          { return m.id }
func (m modelMessage) RedeliveryCount() uint32       { return m.count }
func (m modelMessage) Payload() []byte               { return []byte(m.id.String()) }
func (m modelMessage) Properties() map[string]string { return nil }
func (m modelMessage) Key() string                   { return "" }
func (m modelMessage) OrderingKey() string           { return "" }
func (m modelMessage) EventTime() time.Time          { return time.Time{} }
func (m modelMessage) PublishTime() time.Time        { return time.Time{} }

// modelEntry is one that the server keeps.
type modelEntry struct {
	size  int32
	acked []bool // by message
	whole bool
	sent  bool   // and not asked for again
	count uint32 // of redeliveries
}

// modelServer is a partition of a broker, as the real one was seen to act.
type modelServer struct {
	counts  bool       // Shared: brings back single entries, and counts
	indexes bool       // keeps acks of single messages
	r       *rand.Rand // behind mu
	p       *feed.Partition
	ch      chan *feed.Batch

	mu      sync.Mutex
	entries []*modelEntry
	epoch   uint64
	down    bool
	acks    int // that it has taken
}

func newModelServer(r *rand.Rand, counts, indexes bool) *modelServer {
	n, _ := topic.Parse("model")
	return &modelServer{
		counts: counts, indexes: indexes, r: r, epoch: 1, ch: make(chan *feed.Batch, 1<<12),
		p: &feed.Partition{Source: message.NewSource(n, "model")},
	}
}

func (s *modelServer) Batches() <-chan *feed.Batch                    { return s.ch }
func (s *modelServer) Release(*feed.Batch)                            {}
func (s *modelServer) Seek(context.Context, pluginapi.Position) error { return nil }
func (s *modelServer) Close(context.Context) error                    { return nil }
func (s *modelServer) locked(f func())                                { s.mu.Lock(); defer s.mu.Unlock(); f() }
func (s *modelServer) publish(size int32)                             { s.locked(func() { s.add(size) }) }
func (s *modelServer) add(size int32) {
	s.entries = append(s.entries, &modelEntry{size: size, acked: make([]bool, size)})
}
func (s *modelServer) taken(e *modelEntry, i int32) bool { return e.whole || s.indexes && e.acked[i] }
func (s *modelServer) done() (all bool)                  { s.locked(func() { all = s.doneLocked() }); return all }
func (s *modelServer) nack(_ *feed.Partition, m pulsar.Message) {
	s.locked(func() { s.again(m.ID().EntryID()) })
}
func (s *modelServer) ack(_ *feed.Partition, l []pulsar.MessageID) error { return s.take(l) }

// current is the epoch of the consumer there is.
func (s *modelServer) current(*feed.Partition) (n uint64) {
	s.locked(func() {
		if n = s.epoch; s.down {
			n++
		}
	})
	return n
}

func (s *modelServer) doneLocked() bool {
	for _, e := range s.entries {
		if !e.whole {
			return false
		}
	}
	return true
}

// again is a nack.
func (s *modelServer) again(entry int64) {
	if !s.counts {
		panic("a nack where the broker does not bring back single messages")
	}
	if e := s.entries[entry]; !s.down && e.sent && !e.whole {
		e.sent = false
		e.count++
	}
}

// take is a command of acks. Where the link is down it may have come all the same.
func (s *modelServer) take(ids []pulsar.MessageID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down && s.r.IntN(3) > 0 {
		return errors.New("the connection is gone")
	}
	for _, id := range ids {
		e := s.entries[id.EntryID()]
		s.acks++
		switch {
		case id.BatchSize() <= 1:
			e.whole = true
		default:
			e.acked[id.BatchIdx()] = true
			e.count = 0 // it forgets it with any ack
		}
		if s.indexes {
			all := true
			for _, a := range e.acked {
				all = all && a
			}
			e.whole = e.whole || all
		}
	}
	if s.down {
		return errors.New("the connection is gone")
	}
	return nil
}

// send sends at most n entries.
func (s *modelServer) send(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &feed.Batch{Partition: s.p, Epoch: s.epoch}
	for i, e := range s.entries {
		if s.down || n == 0 || e.sent || e.whole {
			continue
		}
		e.sent = true
		n--
		for k := range e.size {
			if !s.taken(e, k) {
				b.Messages = append(b.Messages, modelMessage{id: modelID{int64(i), k, e.size}, count: e.count})
			}
		}
	}
	if len(b.Messages) > 0 {
		s.ch <- b
	}
}

// lose loses the connection. What is on the way is lost with it, or not.
func (s *modelServer) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	if s.r.IntN(2) == 0 {
		for len(s.ch) > 0 {
			<-s.ch
		}
	}
}

// join is a new consumer: everything that is not acked comes again.
func (s *modelServer) join() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.down {
		return
	}
	s.down = false
	s.epoch++
	for _, e := range s.entries {
		e.sent = false
	}
	s.ch <- &feed.Batch{Partition: s.p, Back: true, Epoch: s.epoch}
}
