// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// A connection that says nothing keeps no peer out, and is closed in the end.
func TestSilentConnectionsKeepNobodyOut(t *testing.T) {
	for _, c := range []struct{ name, address string }{
		{"tcp", "tcp://127.0.0.1:0"},
		{"ipc", "ipc://" + t.TempDir() + "/s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			const many = 500
			s := serve(t, zmq4.Pull, bound(t, c.address, func(c *Config) { c.HandshakeTimeout = patience }))
			address := s.Addresses()[0]
			for range many {
				raw(t, address)
			}
			zmqtest.Until(t, "500 handshakes", func() bool { return s.Counters().Handshakes == many })
			send(t, foreign(t, address, zmq4.Push), "m1")
			zmqtest.Until(t, "a message", func() bool { return s.have() == 1 })
			if n := s.Counters().Handshakes; n != many {
				t.Errorf("a peer was heard beside %d silent connections of %d", n, many)
			}
			s.end(t)

			s = serve(t, zmq4.Pull, bound(t, c.address, func(c *Config) { c.HandshakeTimeout = time.Second }))
			address = s.Addresses()[0]
			began := time.Now()
			silent := make([]net.Conn, 50)
			for i := range silent {
				silent[i] = raw(t, address)
			}
			foreign(t, address, zmq4.Push)
			for i, nc := range silent {
				if !ends(nc, patience) {
					t.Fatalf("silent connection %d is still open", i)
				}
			}
			zmqtest.Until(t, "no handshakes", func() bool { return s.Counters().Handshakes == 0 })
			s.peers(t, 1)
			if n := s.Counters(); n.Peers != 1 || n.Failed != int64(len(silent)) {
				t.Errorf("counters: %+v", n)
			}
			warned(t, s, began, "no peer came of it", "deadline")
		})
	}
}

// warned asserts lines of a kind, at most one a second since a moment.
func warned(t *testing.T, s *served, since time.Time, words ...string) {
	t.Helper()
	words = append(words, "level=WARN")
	zmqtest.Until(t, fmt.Sprintf("a line with %q", words), func() bool { return len(s.log.with(words...)) > 0 })
	found := s.log.with(words...)
	most := int(time.Since(since)/time.Second) + 1
	if len(found) > most {
		t.Errorf("%d lines with %q in %v, want at most %d:\n%s", len(found), words, time.Since(since), most, strings.Join(found, "\n"))
	}
}

// descriptors returns how many descriptors the process has.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		all, err = os.ReadDir("/dev/fd")
	}
	if err != nil {
		t.Skip(err)
	}
	return len(all)
}

// Z-07: rubbish is closed at once, counted, and told of once a second; a real
// publisher of libzmq goes on meanwhile.
func TestZ07Rubbish(t *testing.T) {
	s := serve(t, zmq4.Pull, bound(t, "tcp://127.0.0.1:0"))
	address := s.Addresses()[0]
	const messages = 30
	zmqtest.Python(t, `
s = ctx.socket(zmq.PUSH)
s.connect(arg[0])
for i in range(int(arg[1])):
    s.send_multipart([b"jobs", b"m%04d" % i])
    time.sleep(0.05)
hear()
`, address, fmt.Sprint(messages))
	s.peers(t, 1)
	before, began := descriptors(t), time.Now()
	for range 2000 {
		nc, err := net.Dial("tcp", strings.TrimPrefix(address, "tcp://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(nc, "GET / HTTP/1.1\r\n\r\n")
		nc.Close()
	}
	zmqtest.Until(t, "2000 failed handshakes", func() bool { n := s.Counters(); return n.Failed == 2000 && n.Handshakes == 0 })
	if now := descriptors(t); now > before+1 {
		t.Errorf("%d descriptors, %d before", now, before)
	}
	warned(t, s, began, "no peer came of it", "peer=tcp://127.0.0.1:", "HTTP", "times=")
	zmqtest.Until(t, "all messages", func() bool { return s.have() == messages })
	for i, m := range s.got {
		if want := fmt.Sprintf("m%04d", i); m != want {
			t.Fatalf("message %d is %q, want %q", i, m, want)
		}
	}
}

// A connection that ends without a word, as probes of ports do, is no line.
func TestProbesOfPortsAreNotToldOf(t *testing.T) {
	s := serve(t, zmq4.Pull, bound(t, "tcp://127.0.0.1:0"))
	raw(t, s.Addresses()[0]).Close()
	zmqtest.Until(t, "a failed handshake", func() bool { return s.Counters().Failed == 1 })
	if got := s.log.with("level="); len(got) != 0 {
		t.Errorf("lines: %q", got)
	}
}

// A peer of libzmq that wants CURVE or PLAIN hangs up and tries again for ever, so
// somebody has to be told, and of what.
func TestPeersThatWantSecurityAreToldOf(t *testing.T) {
	for name, set := range map[string]string{
		"CURVE": "s.curve_publickey, s.curve_secretkey = zmq.curve_keypair(); s.curve_serverkey = zmq.curve_keypair()[0]",
		"PLAIN": "s.plain_username = b'u'; s.plain_password = b'p'",
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, zmq4.Pull, bound(t, "tcp://127.0.0.1:0"))
			began := time.Now()
			zmqtest.Python(t, "s = ctx.socket(zmq.PUSH); "+set+"; s.linger = 0; s.connect(arg[0]); hear()", s.Addresses()[0])
			warned(t, s, began, "no peer came of it", "the peer wants the mechanism", name)
		})
	}
}

// A peer of the wrong type is told of with both types.
func TestPeersOfTheWrongTypeAreRefused(t *testing.T) {
	s := serve(t, zmq4.Pull, bound(t, "ipc://"+t.TempDir()+"/s"))
	nc := raw(t, s.Addresses()[0])
	began := time.Now()
	_, _ = zmtp.Open(t.Context(), nc, zmtp.Options{Type: zmq4.Sub, MaxMessage: 1})
	if !ends(nc, patience) {
		t.Error("the connection is still open")
	}
	zmqtest.Until(t, "a failed handshake", func() bool { return s.Counters().Failed == 1 })
	warned(t, s, began, "SUB", "PULL", fmt.Sprintf("(process %d)", os.Getpid()))
}

func TestMaxPeers(t *testing.T) {
	s := serve(t, zmq4.Pull, bound(t, "tcp://127.0.0.1:0", func(c *Config) { c.MaxPeers = 3 }))
	address := s.Addresses()[0]
	began := time.Now()
	after := func(d time.Duration) { // handshakes are lazy
		s.room.mu.Lock()
		defer s.room.mu.Unlock()
		s.room.lazy = d
	}

	t.Run("silent ones give way once they are lazy", func(t *testing.T) {
		after(patience)
		first := raw(t, address)
		zmqtest.Until(t, "a handshake", func() bool { return s.Counters().Handshakes == 1 })
		others := []net.Conn{raw(t, address), raw(t, address)}
		zmqtest.Until(t, "three handshakes", func() bool { return s.Counters().Handshakes == 3 })
		if !ends(raw(t, address), patience) {
			t.Error("a fourth connection was taken")
		}
		warned(t, s, began, "no more peers are taken", "max_peers=3")
		after(0)
		send(t, foreign(t, address, zmq4.Push), "m1")
		zmqtest.Until(t, "a message", func() bool { return s.have() == 1 })
		if !ends(first, patience) {
			t.Error("the oldest silent connection is still there")
		}
		for i, nc := range others {
			if ends(nc, 10*time.Millisecond) {
				t.Errorf("silent connection %d gave way as well", i+1)
			}
			nc.Close()
		}
	})
	t.Run("peers stay", func(t *testing.T) {
		zmqtest.Until(t, "no handshakes", func() bool { return s.Counters().Handshakes == 0 })
		there := []*zmtp.Conn{foreign(t, address, zmq4.Push), foreign(t, address, zmq4.Push), foreign(t, address, zmq4.Push)}
		s.peers(t, 3)
		if !ends(raw(t, address), patience) {
			t.Error("a fourth peer was taken")
		}
		for _, conn := range there {
			send(t, conn, "more")
		}
		zmqtest.Until(t, "messages", func() bool { return s.have() == 4 })
		there[0].NetConn().Close()
		s.peers(t, 2)
		send(t, foreign(t, address, zmq4.Push), "again")
		zmqtest.Until(t, "a message of the new peer", func() bool { return s.have() == 5 })
	})
	if got := s.Counters().TooMany; got != 2 {
		t.Errorf("%d connections were too many, want 2", got)
	}
}
