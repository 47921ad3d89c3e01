// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/freeport"
	"github.com/longshore-go/longshore/internal/interop/zmqtest"
)

// A port that the system chose is told, and kept over restarts.
func TestChosenPortsAreKept(t *testing.T) {
	first := serve(t, zmq4.Pull, bound(t, "tcp://127.0.0.1:*"))
	address, resume := first.Addresses()[0], first.Resume()
	if strings.HasSuffix(address, ":0") || len(resume) == 0 {
		t.Fatalf("it listens on %s and resumes by %q", address, resume)
	}
	first.end(t)

	again := func(c *Config) { c.Resume = resume }
	second := serve(t, zmq4.Pull, bound(t, "tcp://127.0.0.1:*", again))
	if got := second.Addresses()[0]; got != address {
		t.Errorf("after a restart it listens on %s, not on %s", got, address)
	}
	if got := second.Resume(); string(got) != string(resume) {
		t.Errorf("after a restart it resumes by %q, not by %q", got, resume)
	}
	if got := second.log.with("level=WARN"); len(got) != 0 {
		t.Errorf("lines: %q", got)
	}

	third := serve(t, zmq4.Pull, bound(t, "tcp://127.0.0.1:*", again)) // while the second has the port
	other := third.Addresses()[0]
	if other == address {
		t.Errorf("two listen on %s", address)
	}
	if got := third.log.with("level=WARN", "another port than before", address, other); len(got) != 1 {
		t.Errorf("%d warnings that the port is another one", len(got))
	}
	if got := third.Resume(); string(got) == string(resume) {
		t.Errorf("it resumes by the port that was taken: %q", got)
	}
	for _, s := range []*served{second, third} {
		send(t, foreign(t, s.Addresses()[0], zmq4.Push), "m1")
		zmqtest.Until(t, "a message", func() bool { return s.have() == 1 })
	}
}

// What resume bytes of another kind say is nobody's port.
func TestResumeBytesOfOthers(t *testing.T) {
	for _, resume := range []string{"", "zmq 1 port", "zmq 1 port 70000", "zmq 1 port -1", "\x00\xff", "mqtt 7"} {
		if got := formerPort([]byte(resume)); got != 0 {
			t.Errorf("formerPort(%q): %d", resume, got)
		}
	}
}

// A port that is given is that one or a fault, and resumes nothing (one
// listener an object, whose port is free after Close).
func TestGivenPorts(t *testing.T) {
	place := fmt.Sprintf("127.0.0.1:%d", freeport.Hold(t))
	l, err := net.Listen("tcp", place)
	if err != nil {
		t.Fatal(err)
	}
	address := "tcp://" + place
	f := startFault(t, bound(t, address, func(c *Config) { c.Resume = []byte("zmq 1 port 1") }))
	if f.Code != core.FaultConflict || !strings.Contains(f.Message, address) {
		t.Errorf("the fault is %d: %v", f.Code, f)
	}
	l.Close()
	s := serve(t, zmq4.Pull, bound(t, address))
	if got := s.Addresses(); len(got) != 1 || got[0] != address || s.Resume() != nil {
		t.Errorf("it listens on %q and resumes by %q", got, s.Resume())
	}
	s.end(t)
	if l, err = net.Listen("tcp", strings.TrimPrefix(address, "tcp://")); err != nil {
		t.Errorf("the port is not free after Close: %v", err)
	} else {
		l.Close()
	}
}

func TestAddressesOfOthersAreRefused(t *testing.T) {
	for _, c := range []struct {
		address string
		want    core.FaultCode
	}{
		{"tcp://192.0.2.1:0", core.FaultInvalid},        // TEST-NET-1 (RFC 5737)
		{"tcp://nowhere.invalid:0", core.FaultNotFound}, // RFC 2606
	} {
		f := startFault(t, bound(t, c.address))
		if f.Code != c.want || !strings.Contains(f.Message, c.address) {
			t.Errorf("%s: the fault is %d, want %d: %v", c.address, f.Code, c.want, f)
		}
	}
}

// All interfaces are told as they were written, with the port.
func TestAllInterfaces(t *testing.T) {
	s := serve(t, zmq4.Pull, bound(t, "tcp://*:0"))
	address := s.Addresses()[0]
	if !strings.HasPrefix(address, "tcp://*:") || strings.HasSuffix(address, ":0") {
		t.Fatalf("it listens on %s", address)
	}
	send(t, foreign(t, strings.Replace(address, "*", "127.0.0.1", 1), zmq4.Push), "m1")
	zmqtest.Until(t, "a message", func() bool { return s.have() == 1 })
}

// Peers stay when no others are taken.
func TestStopListening(t *testing.T) {
	for _, address := range []string{"tcp://127.0.0.1:0", "ipc://" + t.TempDir() + "/s"} {
		s := serve(t, zmq4.Pull, bound(t, address))
		conn := foreign(t, s.Addresses()[0], zmq4.Push)
		s.peers(t, 1)
		shaking := raw(t, s.Addresses()[0])
		zmqtest.Until(t, "a handshake", func() bool { return s.Counters().Handshakes == 1 })
		s.StopListening()
		s.StopListening()
		if !ends(shaking, patience) {
			t.Errorf("%s: a handshake goes on", address)
		}
		a, _ := ParseAddress(s.Addresses()[0], false)
		if nc, err := dial(t.Context(), a); err == nil {
			nc.Close()
			t.Errorf("%s: it still listens", address)
		}
		send(t, conn, "m1")
		zmqtest.Until(t, "a message", func() bool { return s.have() == 1 })
		if got := s.log.with("level=WARN"); len(got) != 0 {
			t.Errorf("%s: lines: %q", address, got)
		}
	}
}

// A start that is cut leaves nothing.
func TestStartUnderACanceledContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &served{log: newLines()}
	p, err := Start(ctx, s.config(zmq4.Pull, bound(t, "tcp://localhost:0")))
	if err == nil {
		s.Peering = p
		s.end(t)
	}
}
