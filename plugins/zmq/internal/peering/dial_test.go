// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/freeport"
	"github.com/longshore-go/longshore/internal/interop/zmqtest"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	ms := func(all ...int) []time.Duration {
		var d []time.Duration
		for _, n := range all {
			d = append(d, time.Duration(n)*time.Millisecond)
		}
		return d
	}
	for _, c := range []struct {
		name    string
		network string
		random  float64
		want    []time.Duration
	}{
		{"tcp, least", TCP, 0, ms(50, 100, 200, 400, 800, 1600, 2500, 2500)},
		{"tcp, middle", TCP, 0.5, ms(75, 150, 300, 600, 1200, 2400, 3750, 3750)},
		{"ipc, least", IPC, 0, ms(50, 100, 200, 400, 400)},
		{"ipc, middle", IPC, 0.5, ms(75, 150, 300, 600, 600)},
	} {
		b := newBackoff(Address{Network: c.network})
		b.random = func() float64 { return c.random }
		for round := range 2 {
			var got []time.Duration
			for range c.want {
				got = append(got, b.pause())
			}
			if d := cmp.Diff(got, c.want); d != "" {
				t.Errorf("%s, round %d (-got +want):\n%s", c.name, round, d)
			}
			b.reset(settled)
		}
	}
	b := newBackoff(Address{Network: TCP})
	b.random = func() float64 { return 0 }
	b.pause()
	b.reset(settled - 1) // it took the connection and dropped it
	if got := b.pause(); got != 100*time.Millisecond {
		t.Errorf("the pause after a peer that did not stay is %v", got)
	}
}

// dials is a Peering's workings with another way to dial.
func dials(dial func(ctx context.Context, a Address) (net.Conn, error)) workings {
	return workings{dial: dial, probe: probeEvery, unanswered: unansweredLimit}
}

// The pauses of the loop itself, on a clock of its own: each within its step, and
// of all of them some above and some below its middle.
func TestDialLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Time
		s := &served{log: newLines()}
		p, err := start(t.Context(), s.config(zmq4.Push, connected(t, "tcp://h:1")), dials(func(context.Context, Address) (net.Conn, error) {
			mu.Lock()
			at = append(at, time.Now())
			mu.Unlock()
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		mu.Lock()
		dials := len(at)
		mu.Unlock()
		time.Sleep(time.Minute)
		if len(at) != dials || p.Counters().DialErrors != int64(dials) {
			t.Errorf("%d dials, %d after Close, %d counted", dials, len(at), p.Counters().DialErrors)
		}
		step, low, high := backoffFirst, 0, 0
		for i := 1; i < len(at); i++ {
			pause := at[i].Sub(at[i-1])
			if pause < step/2 || pause > step {
				t.Errorf("pause %d is %v, want %v to %v", i, pause, step/2, step)
			}
			if pause < step*3/4 {
				low++
			} else {
				high++
			}
			step = min(2*step, backoffLastTCP)
		}
		if low < 20 || high < 20 {
			t.Errorf("%d pauses in the lower half of their range, %d in the upper", low, high)
		}
		if got := s.links(); len(got) != 1 || !strings.HasPrefix(got[0], "false tcp://h:1: connection refused") {
			t.Errorf("links: %q", got)
		}
		if got := s.log.with("level="); len(got) != 0 {
			t.Errorf("the host tells of the link, and so does this: %q", got)
		}
	})
}

// A dial that hangs ends with the endpoint.
func TestCloseWhileDialing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &served{log: newLines()}
		p, err := start(t.Context(), s.config(zmq4.Push, connected(t, "tcp://h:1", "tcp://h:2")), dials(func(ctx context.Context, _ Address) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		began := time.Now()
		if err := p.Close(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("Close: %v after %v", err, time.Since(began))
		}
		if got := s.log.with("level="); len(got) != 0 {
			t.Errorf("lines: %q", got)
		}
	})
}

// One that listens and says nothing is left at the end of the handshake's time.
func TestDialedSilence(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := "tcp://" + l.Addr().String()
	s := serve(t, zmq4.Push, func(c *Config) {
		connected(t, address)(c)
		c.HandshakeTimeout = 100 * time.Millisecond
	})
	for range 3 {
		nc, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if !ends(nc, patience) {
			t.Error("the handshake goes on")
		}
		nc.Close()
	}
	zmqtest.Until(t, "failures", func() bool { return s.Counters().Failed >= 3 })
	if got := s.links(); len(got) != 1 || !strings.Contains(got[0], "deadline") {
		t.Errorf("links: %q", got)
	}
}

// S-ZMQ-42, Z-03, Z-04: who dials is there again after the other has come back.
func TestPeersThatRestart(t *testing.T) {
	for _, c := range []struct{ name, address string }{
		{"tcp", fmt.Sprintf("tcp://127.0.0.1:%d", freeport.Hold(t))},
		{"ipc", "ipc://" + t.TempDir() + "/s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			other := serve(t, zmq4.Pull, bound(t, c.address))
			address := other.Addresses()[0]
			s := serve(t, zmq4.Push, connected(t, address))
			var want []string
			for round := range 4 {
				s.peers(t, 1)
				want = append(want, "true")
				zmqtest.Until(t, "the link is told", func() bool { return len(s.links()) == len(want) })
				if !push(s.Peers()[0], "m", ticket(t)) {
					t.Fatal("no room")
				}
				zmqtest.Until(t, "a message", func() bool { return other.have() == 1 })
				other.end(t)
				s.peers(t, 0)
				want = append(want, "false "+address+": "+ErrLeft.Error())
				if round < 3 {
					other = serve(t, zmq4.Pull, bound(t, address))
				}
			}
			zmqtest.Until(t, "the link is told", func() bool { return len(s.links()) == len(want) })
			if d := cmp.Diff(trim(s.links()), want); d != "" {
				t.Errorf("links (-got +want):\n%s", d)
			}
			if got := s.log.with("level="); len(got) != 0 {
				t.Errorf("the host tells of the link, and so does this: %q", got)
			}
		})
	}
}

func trim(all []string) []string {
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// Of several addresses each has its lines; the link is up while one is.
func TestSeveralAddresses(t *testing.T) {
	folder := t.TempDir()
	first, second := "ipc://"+filepath.Join(folder, "1"), "ipc://"+filepath.Join(folder, "2")
	one := serve(t, zmq4.Pull, bound(t, first))
	two := serve(t, zmq4.Pull, bound(t, second))
	s := serve(t, zmq4.Push, connected(t, first, second))
	s.peers(t, 2)
	dialed := map[int]string{}
	for _, p := range s.Peers() {
		dialed[p.Dialed] = p.Remote
	}
	if d := cmp.Diff(dialed, map[int]string{0: first, 1: second}); d != "" {
		t.Errorf("peers (-got +want):\n%s", d)
	}
	if got := s.Addresses(); !slices.Equal(got, []string{first, second}) {
		t.Errorf("addresses: %q", got)
	}
	one.end(t)
	zmqtest.Until(t, "a line", func() bool { return len(s.log.with("level=WARN", "lost", "peer="+first)) == 1 })
	if got := s.links(); len(got) != 1 {
		t.Errorf("with one of two lost, links: %q", got)
	}
	one = serve(t, zmq4.Pull, bound(t, first))
	zmqtest.Until(t, "a line", func() bool { return len(s.log.with("level=INFO", "back", "peer="+first)) == 1 })
	one.end(t)
	two.end(t)
	zmqtest.Until(t, "the link is down", func() bool { return len(s.links()) == 2 })
	if got := s.log.with("level="); len(got) != 4 {
		t.Errorf("%d lines, want 4:\n%s", len(got), strings.Join(got, "\n"))
	}
}

// A peer that is there and refuses is told of once, not at every dial.
func TestPeersThatRefuse(t *testing.T) {
	other := serve(t, zmq4.Pub, bound(t, "tcp://127.0.0.1:0"))
	s := serve(t, zmq4.Push, connected(t, other.Addresses()[0]))
	zmqtest.Until(t, "three dials", func() bool { return s.Counters().DialErrors >= 3 })
	if got := s.links(); len(got) != 1 || !strings.Contains(got[0], "PUB") || !strings.Contains(got[0], "PUSH") {
		t.Errorf("links: %q", got)
	}
	if got := s.log.with("level=WARN"); len(got) > 1 {
		t.Errorf("lines: %q", got)
	}
}

// The peer's files come and go: a path without a socket is dialed until it is one.
func TestPathsThatAppear(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	s := serve(t, zmq4.Push, connected(t, "ipc://"+path))
	zmqtest.Until(t, "a dial", func() bool { return s.Counters().DialErrors >= 1 })
	if got := s.links(); len(got) != 1 || !strings.Contains(got[0], syscall.ENOENT.Error()) {
		t.Errorf("links: %q", got)
	}
	other := serve(t, zmq4.Pull, bound(t, "ipc://"+path))
	s.peers(t, 1)
	other.end(t)
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file: %v", err)
	}
}

// A connection of a port to itself is no peer.
func TestSelf(t *testing.T) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "self") // whose end closes it
	defer f.Close()
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Connect(fd, name); err != nil {
		t.Skipf("the system refuses it: %v", err)
	}
	nc, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if !isSelf(nc) {
		t.Error("it is taken for a peer")
	}
	if isSelf(foreign(t, serve(t, zmq4.Pull, bound(t, "tcp://127.0.0.1:0")).Addresses()[0], zmq4.Push).NetConn()) {
		t.Error("a peer is taken for this very port")
	}
}
