// SPDX-License-Identifier: Apache-2.0

package libzmq

import (
	"strconv"
	"sync"
	"time"
)

// quiet is how long nothing must come until a test takes it that nothing does.
const quiet = 150 * time.Millisecond

// Options say how a socket is opened.
type Options struct {
	Bind      []string       `json:"bind,omitempty"` // tcp://127.0.0.1:* for a port that is free
	Connect   []string       `json:"connect,omitempty"`
	Subscribe []string       `json:"subscribe,omitempty"` // prefixes, of SUB
	Identity  []byte         `json:"identity,omitempty"`
	Set       map[string]int `json:"set,omitempty"`  // of zmq_setsockopt, as in SNDHWM
	Deaf      bool           `json:"deaf,omitempty"` // nothing is received
}

// Socket is one socket of a peer.
type Socket struct {
	p        *Peer
	name     string
	address  string
	received list[[][]byte]
	events   list[string]
}

// list is what has come so far, of which a test takes one part after the other.
type list[T any] struct {
	mu    sync.Mutex
	all   []T
	taken int
	more  chan struct{}
}

func (l *list[T]) add(v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, v)
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// take returns at most most of what was not taken yet.
func (l *list[T]) take(most int) []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.taken
	l.taken += min(most, len(l.all)-from)
	return l.all[from:l.taken:l.taken]
}

// Open opens a socket of a kind, as in PULL.
func (p *Peer) Open(kind string, o Options) *Socket {
	p.tb.Helper()
	p.mu.Lock()
	p.opened++
	s := &Socket{
		p: p, name: kind + strconv.Itoa(p.opened),
		received: list[[][]byte]{more: make(chan struct{}, 1)}, events: list[string]{more: make(chan struct{}, 1)},
	}
	p.sockets[s.name] = s
	p.mu.Unlock()
	s.address = p.must(command{Do: "open", Socket: s.name, Kind: kind, Options: &o}).Address
	return s
}

// Address returns the address that the socket bound or dialed last, with the port
// that was chosen.
func (s *Socket) Address() string { return s.address }

// Send sends a message, for which the socket has to have room at last.
func (s *Socket) Send(frames ...string) {
	s.p.tb.Helper()
	if err := s.TrySend(1, limit, frames...); err != nil {
		s.p.tb.Fatal(err)
	}
}

// TrySend sends a message a number of times, each within a limit, and returns
// what libzmq says: Again where it found no room.
func (s *Socket) TrySend(times int, within time.Duration, frames ...string) error {
	s.p.tb.Helper()
	bs := make([][]byte, len(frames))
	for i, f := range frames {
		bs[i] = []byte(f)
	}
	_, err := s.p.do(command{Do: "send", Socket: s.name, Frames: bs, Times: times, Limit: within.Milliseconds()})
	return err
}

// Subscribe adds a prefix to a SUB socket.
func (s *Socket) Subscribe(prefix string) {
	s.p.tb.Helper()
	s.p.must(command{Do: "subscribe", Socket: s.name, Prefix: prefix})
}

// Receive waits for n further messages, each a list of frames.
func (s *Socket) Receive(n int) [][][]byte {
	s.p.tb.Helper()
	return await(s, &s.received, n, "messages")
}

// Sees waits for a further event of the socket's monitor, as in
// HANDSHAKE_SUCCEEDED, and passes those before it.
func (s *Socket) Sees(event string) {
	s.p.tb.Helper()
	for await(s, &s.events, 1, "events, waiting for "+event)[0] != event {
	}
}

// Events returns those of the socket's monitor that were not waited for.
func (s *Socket) Events() []string { return s.events.take(1 << 30) }

// await waits for n further entries.
func await[T any](s *Socket, l *list[T], n int, what string) []T {
	s.p.tb.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var got []T
	for {
		if got = append(got, l.take(n-len(got))...); len(got) == n {
			return got
		}
		select {
		case <-l.more:
		case <-s.p.ended:
			s.p.tb.Fatalf("the peer ended after %d of %d %s", len(got), n, what)
		case <-timer.C:
			s.p.tb.Fatalf("%s has %d of %d %s: %v", s.name, len(got), n, what, got)
		}
	}
}

// Rest waits until nothing comes any more and returns the messages that were not
// waited for.
func (s *Socket) Rest() [][][]byte {
	s.p.tb.Helper()
	s.p.must(command{Do: "rest", Quiet: quiet.Milliseconds()})
	return s.received.take(1 << 30)
}

// Close closes the socket; what it has not sent within a second is lost.
func (s *Socket) Close() {
	s.p.tb.Helper()
	s.p.must(command{Do: "close", Socket: s.name, Linger: time.Second.Milliseconds()})
}
