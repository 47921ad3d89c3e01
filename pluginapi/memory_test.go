// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/longshore-go/longshore/internal/frame"
)

// returned counts how often memory came back.
type returned struct{ times atomic.Int32 }

func (r *returned) Release() { r.times.Add(1) }

// lending opens a subscription, on a stream that copies or not, whose queue
// returns the given numbers of deliveries, each batch in memory of its own, all
// but the first when rest is closed.
func lending(t *testing.T, copies bool, credit frame.Credit, rest <-chan struct{}, sizes ...int) (*slow, *subscription, []*returned) {
	t.Helper()
	memory := make([]*returned, len(sizes))
	for i := range memory {
		memory[i] = new(returned)
	}
	var next int // of the goroutine that receives
	tr := newQueueTransport(everything())
	tr.receive = func(ctx context.Context, _ *queue, room Room) (Batch, error) {
		if room.Messages == 0 || next == len(sizes) {
			<-ctx.Done()
			return Batch{}, ctx.Err()
		}
		if next > 0 {
			<-rest
		}
		b := Batch{Memory: memory[next]}
		for i := range sizes[next] {
			b.Deliveries = append(b.Deliveries, Delivery{Handle: next<<16 | i, Attempt: 1})
		}
		next++
		return b, nil
	}
	s, x, _ := slowly(t, tr, frame.Credit{})
	x.mu.Lock()
	x.copies = copies
	x.mu.Unlock()
	s.in <- frame.SubscribeRequest{Credit: &credit}
	return s, x, memory
}

func times(memory []*returned) (n []int32) {
	for _, m := range memory {
		n = append(n, m.times.Load())
	}
	return n
}

var wide = frame.Credit{Messages: 10_000, Bytes: 1 << 30}

// Memory comes back when the last frame that lies in it is written, and not
// before.
func TestMemoryComesBackOnceWritten(t *testing.T) {
	rest := make(chan struct{})
	s, x, memory := lending(t, true, wide, rest, 1, 3, 2, frame.MaxItems+10)
	for _, want := range []struct {
		frame string
		back  int // batches, while it is written
	}{{"1-1", 0}, {"2-257", 1}, {"258-272", 3}} {
		if got := <-s.sent; got != want.frame {
			t.Fatalf("sent %s, want %s", got, want.frame)
		}
		if want.frame == "1-1" {
			close(rest)
			x.has(t, 1+frame.MaxItems) // all that fits one frame
		}
		for i, m := range memory[want.back:] {
			if n := m.times.Load(); n != 0 {
				t.Errorf("memory of batch %d came back while %s was written", want.back+i, want.frame)
			}
		}
		s.next <- struct{}{}
		eventually(t, "memory", func() bool { return want.back == 0 || memory[want.back-1].times.Load() == 1 })
	}
	eventually(t, "the last memory", func() bool { return memory[3].times.Load() == 1 })
	for i, n := range times(memory) {
		if n != 1 {
			t.Errorf("memory of batch %d came back %d times", i, n)
		}
	}
}

// Memory that a host in the same process has does not come back, nor does that
// of a batch which was not passed on whole at once.
func TestMemoryThatDoesNotComeBack(t *testing.T) {
	for name, tt := range map[string]struct {
		copies bool
		credit frame.Credit
		last   string
	}{
		"in process":  {false, wide, "1-1"},
		"over window": {true, frame.Credit{Messages: 2, Bytes: 1 << 30}, "1-2"},
	} {
		t.Run(name, func(t *testing.T) {
			size := 1
			if tt.copies {
				size = 3
			}
			s, x, memory := lending(t, tt.copies, tt.credit, nil, size)
			if got := <-s.sent; got != tt.last {
				t.Fatalf("sent %s, want %s", got, tt.last)
			}
			s.next <- struct{}{}
			s.in <- frame.SubscribeRequest{Settle: []frame.VerdictRun{ack(1)}}
			x.lacks(t, 1)
			if n := times(memory); n[0] != 0 {
				t.Errorf("memory came back %d times", n[0])
			}
		})
	}
}
