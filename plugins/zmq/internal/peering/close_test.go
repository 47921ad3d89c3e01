// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
)

// What is queued is written before the end, where there is time to linger.
func TestCloseLingers(t *testing.T) {
	other := serve(t, zmq4.Pull, bound(t, "tcp://127.0.0.1:0"))
	s := serve(t, zmq4.Push, func(c *Config) {
		connected(t, other.Addresses()[0])(c)
		c.Linger = patience
		c.Limits = outq.Limits{Messages: 10_000}
	})
	s.peers(t, 1)
	const messages = 2000
	for i := range messages {
		if !push(s.Peers()[0], fmt.Sprint(i, strings.Repeat("x", 10_000)), ticket(t)) {
			t.Fatalf("no room for message %d", i)
		}
	}
	began := time.Now()
	s.end(t)
	if took := time.Since(began); took > patience/2 {
		t.Errorf("Close took %v: it does not see that the other side has all and has hung up", took)
	}
	zmqtest.Until(t, "all messages", func() bool { return other.have() == messages })
	if got := other.log.with("level=WARN"); len(got) != 0 {
		t.Errorf("lines: %q", got)
	}
}

// Z-12: a peer that does not read holds Close up for as long as it may, and what
// was not written is answered.
func TestCloseIsBounded(t *testing.T) {
	for _, c := range []struct {
		name   string
		linger time.Duration
		grace  time.Duration
	}{
		{"by the linger", 100 * time.Millisecond, patience},
		{"by the context", time.Hour, 500 * time.Millisecond},
		{"without a linger", 0, patience},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, zmq4.Push, bound(t, "tcp://127.0.0.1:0", func(x *Config) { x.Linger = c.linger }))
			foreign(t, s.Addresses()[0], zmq4.Pull) // never reads
			s.peers(t, 1)
			var mu sync.Mutex
			answered, pushed := 0, 0
			payload := strings.Repeat("x", 1<<20)
			for range 40 {
				if push(s.Peers()[0], payload, outq.Ticket{Done: func(int, pluginapi.Receipt) {
					mu.Lock()
					answered++
					mu.Unlock()
				}}) {
					pushed++
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), c.grace)
			defer cancel()
			began := time.Now()
			err := s.Close(ctx)
			if took := time.Since(began); took > patience/2 {
				t.Errorf("Close: %v after %v", err, took)
			}
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
				err = s.Close(t.Context()) // the machine was slower than what is kept of the time
			}
			if err != nil {
				t.Errorf("Close: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			if answered != pushed || pushed == 0 {
				t.Errorf("%d messages were taken and %d answered", pushed, answered)
			}
		})
	}
}

// Close ends handshakes and peers, tells of nothing, and may be called twice,
// also at one moment.
func TestCloseWhileAllIsGoingOn(t *testing.T) {
	before := descriptors(t)
	s := serve(t, zmq4.Pull, bound(t, "tcp://127.0.0.1:0"))
	shaking, there := raw(t, s.Addresses()[0]), foreign(t, s.Addresses()[0], zmq4.Push)
	s.peers(t, 1)
	peer := s.Peers()[0]
	zmqtest.Until(t, "a handshake", func() bool { return s.Counters().Handshakes == 1 })
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { s.end(t) })
	}
	all.Wait()
	if !ends(shaking, patience) || !ends(there.NetConn(), patience) {
		t.Error("a connection is still open")
	}
	if err := peer.Cause(); !errors.Is(err, ErrClosed) || peer.Context().Err() == nil {
		t.Errorf("the peer has ended by %v", err)
	}
	if got := s.log.with("level="); len(got) != 0 {
		t.Errorf("lines: %q", got)
	}
	shaking.Close()
	there.NetConn().Close()
	zmqtest.Until(t, "as many descriptors as before", func() bool { return descriptors(t) <= before })
}

// A Serve that does not end is named, and the call returns all the same.
func TestCloseOfWhatDoesNotEnd(t *testing.T) {
	hold := make(chan struct{})
	s := serve(t, zmq4.Pull, bound(t, "tcp://127.0.0.1:0", func(c *Config) {
		c.Serve = func(*Peer) error { <-hold; return nil }
	}))
	foreign(t, s.Addresses()[0], zmq4.Push)
	s.peers(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 peer") {
		t.Errorf("Close: %v", err)
	}
	close(hold)
}

// What a peer did is told with its name; that it left is not.
func TestWhyPeersEnd(t *testing.T) {
	s := serve(t, zmq4.Pull, bound(t, "tcp://127.0.0.1:0"))
	left := foreign(t, s.Addresses()[0], zmq4.Push)
	s.peers(t, 1)
	left.NetConn().Close()
	s.peers(t, 0)
	if got := s.log.with("level="); len(got) != 0 {
		t.Errorf("lines: %q", got)
	}
	bad := foreign(t, s.Addresses()[0], zmq4.Push)
	s.peers(t, 1)
	if _, err := bad.NetConn().Write([]byte{0x02, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}); err != nil { // Z-08
		t.Fatal(err)
	}
	if !ends(bad.NetConn(), patience) {
		t.Error("the connection is still open")
	}
	zmqtest.Until(t, "a line", func() bool {
		return len(s.log.with("level=WARN", "peer=tcp://"+bad.NetConn().LocalAddr().String(), "limit")) == 1
	})
	if got := s.Counters(); got.Dropped != 1 {
		t.Errorf("counters: %+v", got)
	}
}

// A peer that is gone is known by the system before it is read.
func TestHungUp(t *testing.T) {
	for _, address := range []string{"tcp://127.0.0.1:0", "ipc://" + t.TempDir() + "/s"} {
		hold := make(chan struct{})
		s := serve(t, zmq4.Router, bound(t, address, func(c *Config) {
			c.Serve = func(p *Peer) error { <-hold; return nil }
		}))
		conn := foreign(t, s.Addresses()[0], zmq4.Dealer)
		s.peers(t, 1)
		peer := s.Peers()[0]
		send(t, conn, "unread")
		if peer.HungUp() {
			t.Errorf("%s: it is there and has hung up", address)
		}
		conn.NetConn().Close()
		zmqtest.Until(t, "it has hung up", peer.HungUp)
		peer.Close(nil)
		if !peer.HungUp() {
			t.Errorf("%s: it is closed and has not hung up", address)
		}
		close(hold)
	}
}

// A handshake that is done while Close runs makes no peer.
func TestHandshakesThatComeTooLate(t *testing.T) {
	s := serve(t, zmq4.Pull, bound(t, "tcp://127.0.0.1:0"))
	s.Peering.mu.Lock()
	s.closing = true
	s.Peering.mu.Unlock()
	conn := foreign(t, s.Addresses()[0], zmq4.Push)
	if !ends(conn.NetConn(), patience) {
		t.Error("the connection is still open")
	}
	zmqtest.Until(t, "no place is taken", func() bool { taken, _ := s.room.counts(); return taken == 0 })
	if got := s.Counters(); got.Peers != 0 || got.Attached != 0 {
		t.Errorf("counters: %+v", got)
	}
}
