// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"errors"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// sharer is a reader that shares a budget, and the peer that it reads.
type sharer struct {
	peer  net.Conn
	got   chan int   // sizes of messages
	err   chan error // of the reader
	ended chan error // by the budget
	stop  chan struct{}
	held  atomic.Int32 // calls
}

func share(t *testing.T, b *zmtp.Budget) *sharer {
	t.Helper()
	nc, peer := net.Pipe()
	s := &sharer{peer: peer, got: make(chan int, 10), err: make(chan error, 1), ended: make(chan error, 1), stop: make(chan struct{})}
	done := make(chan struct{})
	r := zmtp.NewReader(nc, 8*mib)
	r.Share(zmtp.Sharing{Budget: b, Done: done, Stop: s.stop, Held: func() { s.held.Add(1) }, End: func(err error) {
		s.ended <- err
		close(done)
		nc.Close()
	}})
	go func() {
		defer r.Close()
		var f zmtp.Frames
		for {
			if err := next(r, &f); err != nil {
				s.err <- err
				return
			}
			s.got <- f.Bytes
			r.Spent()
		}
	}()
	t.Cleanup(func() { peer.Close() })
	return s
}

// send writes without waiting.
func (s *sharer) send(b []byte) {
	go func() { _, _ = s.peer.Write(b) }() // the peer may be ended
}

// large is the beginning of a message of size bytes.
func large(size, sent int) []byte {
	return append(zmtp.AppendHead(nil, size, false), make([]byte, sent)...)
}

// A reader whose large message finds no room waits until there is some, and small
// messages go on.
func TestBudgetWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := zmtp.NewBudget(4 * mib)
		first, second, small := share(t, b), share(t, b), share(t, b)
		first.send(large(4*mib, 3*mib))
		synctest.Wait()
		second.send(large(3*mib, 3*mib))
		small.send(frames(strings.Repeat("x", 100<<10)))
		synctest.Wait()
		if held := b.Held(); held < 3*mib || held > 4*mib+9 {
			t.Errorf("%d bytes are held", held)
		}
		if got := <-small.got; got != 100<<10 {
			t.Errorf("%d bytes came", got)
		}
		time.Sleep(time.Second)
		if len(second.got) > 0 || second.held.Load() == 0 {
			t.Errorf("the second has %d messages, its peer was shown a sign %d times", len(second.got), second.held.Load())
		}
		first.send(make([]byte, mib))
		if one, two := <-first.got, <-second.got; one != 4*mib || two != 3*mib {
			t.Errorf("%d and %d bytes came", one, two)
		}
		for _, s := range []*sharer{first, second, small} {
			s.peer.Close()
			<-s.err
		}
		if held := b.Held(); held != 0 {
			t.Errorf("%d bytes are held at the end", held)
		}
	})
}

// Half a message that never gets whole is kept while nobody needs the memory, and
// ended when somebody does.
func TestBudgetEndsTheSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := zmtp.NewBudget(4 * mib)
		silent := share(t, b)
		silent.send(large(8*mib, 3*mib))
		time.Sleep(time.Hour)
		if len(silent.ended) > 0 {
			t.Error("ended although nobody waited")
		}
		other := share(t, b)
		other.send(large(3*mib, 3*mib))
		if got := <-other.got; got != 3*mib {
			t.Errorf("%d bytes came", got)
		}
		if err := <-silent.ended; !strings.Contains(err.Error(), "too long") {
			t.Errorf("ended with %v", err)
		}
		other.peer.Close()
		<-silent.err
		<-other.err
	})
}

// So is a message whose bytes come one after the other for ever.
func TestBudgetEndsWhoTrickles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := zmtp.NewBudget(4 * mib)
		slow, other := share(t, b), share(t, b)
		slow.send(large(8*mib, 3*mib))
		synctest.Wait()
		other.send(large(3*mib, 3*mib))
		began := time.Now()
		for len(slow.ended) == 0 {
			slow.send([]byte{0})
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took < 12*time.Second || took > 15*time.Second {
			t.Errorf("it was ended after %v", took)
		}
		if got := <-other.got; got != 3*mib {
			t.Errorf("%d bytes came", got)
		}
		other.peer.Close()
		<-slow.err
		<-other.err
	})
}

// Who waits for room is ended by a stop.
func TestBudgetStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := zmtp.NewBudget(1)
		first, second := share(t, b), share(t, b)
		first.send(large(4*mib, 3*mib))
		synctest.Wait()
		second.send(large(4*mib, 3*mib))
		synctest.Wait()
		close(second.stop)
		if err := <-second.err; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		first.peer.Close()
		<-first.err
	})
}
