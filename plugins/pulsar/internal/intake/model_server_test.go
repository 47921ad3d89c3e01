// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/feed"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/message"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// modelID is a message of the model.
type modelID struct {
	entry int64
	batch int32
	size  int32
}

func (i modelID) String() string { return fmt.Sprintf("7:%d:%d", i.entry, i.batch) }

// message is it on the wire. An entry of one message is a batch of one, or none.
func (i modelID) message(count uint32) wire.Message {
	id := wire.MessageID{Ledger: 7, Entry: i.entry, Batch: i.batch, Size: i.size}
	if i.size == 1 && i.entry%2 == 0 {
		id.Batch, id.Size = wire.NoBatch, 0
	}
	return wire.Message{ID: id, Redelivered: count, Payload: []byte(i.String())}
}

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
func (s *modelServer) nack(_ *feed.Partition, ids []wire.MessageID) {
	s.locked(func() {
		for _, id := range ids {
			s.again(id.Entry)
		}
	})
}
func (s *modelServer) ack(_ *feed.Partition, l []wire.Acked) error { return s.take(l) }

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
func (s *modelServer) take(acks []wire.Acked) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down && s.r.IntN(3) > 0 {
		return errors.New("the connection is gone")
	}
	for _, a := range acks {
		e := s.entries[a.Entry]
		if a.Left == nil {
			e.whole = true
			continue
		}
		if a.Size != e.size || len(a.Left) != 1 || a.Left[0] == 0 || a.Left[0]>>e.size != 0 {
			panic(fmt.Sprintf("%d messages, ack %+v", e.size, a))
		}
		all := true
		for i := range e.acked {
			e.acked[i] = e.acked[i] || a.Left[0]&(1<<i) == 0
			all = all && e.acked[i]
		}
		e.count = 0 // it forgets it with any ack
		e.whole = e.whole || all && s.indexes
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
				b.Messages = append(b.Messages, modelID{int64(i), k, e.size}.message(e.count))
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
