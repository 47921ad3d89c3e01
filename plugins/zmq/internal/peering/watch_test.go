// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// A peer that answers PINGs stays, one that does not is closed after three.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	const interval = time.Second
	s := serve(t, zmq4.Pull, bound(t, "tcp://127.0.0.1:0", func(c *Config) { c.Heartbeat = interval }))
	address := s.Addresses()[0]
	zmqtest.Python(t, `
s = ctx.socket(zmq.PUSH)
s.connect(arg[0])
hear()
`, address)
	s.peers(t, 1)

	began := time.Now()
	silent := foreign(t, address, zmq4.Push)
	s.peers(t, 2)
	if !ends(silent.NetConn(), patience) {
		t.Fatal("a silent peer stays")
	}
	if took := time.Since(began); took < silentIntervals*interval || took > patience/2 {
		t.Errorf("a silent peer was closed after %v, want %v", took, silentIntervals*interval)
	}
	zmqtest.Until(t, "a line", func() bool {
		return len(s.log.with("level=WARN", "peer=tcp://"+silent.NetConn().LocalAddr().String(), "nothing came from it for 3s")) == 1
	})
	zmqtest.Until(t, "several times that", func() bool { return time.Since(began) > 2*silentIntervals*interval })
	if got := s.Counters(); got.Peers != 1 || got.Dropped != 1 {
		t.Errorf("counters: %+v", got)
	}
}

// What a PING asks for: the PONG with its context, and the end of the connection
// when nothing follows.
func TestPingsOfPeers(t *testing.T) {
	s := serve(t, zmq4.Pull, bound(t, "tcp://127.0.0.1:0"))
	conn := foreign(t, s.Addresses()[0], zmq4.Push)
	s.peers(t, 1)
	const ttl = 300 * time.Millisecond
	began := time.Now()
	if _, err := conn.NetConn().Write(zmtp.AppendPing(nil, ttl, []byte("context"))); err != nil {
		t.Fatal(err)
	}
	var f zmtp.Frames
	for ok := false; !ok; {
		if err := conn.Reader().Fill(); err != nil {
			t.Fatal(err)
		}
		var err error
		if ok, err = conn.Reader().Next(&f); err != nil {
			t.Fatal(err)
		}
	}
	if f.Command != zmtp.CommandPong || string(f.Body) != "context" {
		t.Errorf("the answer is %q %q", f.Command, f.Body)
	}
	if !ends(conn.NetConn(), patience) {
		t.Fatal("the connection stays beyond its time to live")
	}
	if took := time.Since(began); took < ttl || took > patience/2 {
		t.Errorf("it ended after %v, want %v", took, ttl)
	}

	bad := foreign(t, s.Addresses()[0], zmq4.Push)
	if _, err := bad.NetConn().Write(zmtp.AppendPing(nil, ttl, make([]byte, zmtp.MaxContext+1))); err != nil {
		t.Fatal(err)
	}
	if !ends(bad.NetConn(), patience) {
		t.Error("a PING that is none is taken")
	}
}

// Z-11: a peer of libzmq that sends PINGs keeps its connection.
func TestZ11HeartbeatsOfLibzmq(t *testing.T) {
	t.Parallel()
	s := serve(t, zmq4.Pull, bound(t, "tcp://127.0.0.1:0"))
	p := zmqtest.Python(t, `
from zmq.utils.monitor import recv_monitor_message
s = ctx.socket(zmq.PUSH)
s.setsockopt(zmq.HEARTBEAT_IVL, 500)
s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 4000)
s.setsockopt(zmq.HEARTBEAT_TTL, 4000)
m = s.get_monitor_socket()
s.connect(arg[0])
s.send_multipart([b"jobs", b"m1"])
time.sleep(5.5)
s.send_multipart([b"jobs", b"m2"])
lost = 0
while m.poll(0):
    if recv_monitor_message(m)["event"] == zmq.EVENT_DISCONNECTED:
        lost += 1
say("lost", lost)
hear()
`, s.Addresses()[0])
	p.Expect("lost 0")
	zmqtest.Until(t, "both messages", func() bool { return s.have() == 2 })
	if got := s.Counters(); got.Accepted != 1 || got.Peers != 1 {
		t.Errorf("counters: %+v", got)
	}
}

// A reader that is held back is no reason to close a peer whose bytes wait.
func TestHeldBackReadersDoNotMakePeersSilent(t *testing.T) {
	const interval = 50 * time.Millisecond
	hold := make(chan struct{})
	var s *served
	s = serve(t, zmq4.Pull, bound(t, "ipc://"+t.TempDir()+"/s", func(c *Config) {
		c.Heartbeat = interval
		c.Serve = func(p *Peer) error {
			<-hold
			return s.read(p)
		}
	}))
	conn := foreign(t, s.Addresses()[0], zmq4.Push)
	s.peers(t, 1)
	began := time.Now()
	send(t, conn, "m1")
	zmqtest.Until(t, "several times the limit", func() bool { return time.Since(began) > 5*silentIntervals*interval })
	close(hold)
	zmqtest.Until(t, "the message", func() bool { return s.have() == 1 })
	if !ends(conn.NetConn(), patience) {
		t.Error("the peer stays although it is silent and read")
	}
}

func TestUnansweredIsJudgedOverTime(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	type look struct {
		at          time.Duration // since the beginning
		age         time.Duration
		outstanding bool
	}
	for _, c := range []struct {
		name  string
		looks []look
		want  bool
	}{
		{"dead", []look{{0, 0, true}, {10, 10, true}, {20, 20, true}, {30, 30, true}}, true},
		{"sent after a long pause", []look{{0, 3600, true}, {10, 2, false}, {20, 12, false}}, false},
		{"busy", []look{{0, 1, true}, {10, 1, true}, {20, 1, true}, {30, 0, true}, {40, 1, true}}, false},
		{"one answer between", []look{{0, 9, true}, {10, 19, true}, {20, 5, true}, {30, 15, true}, {40, 25, true}}, false},
		{"one answer, then dead", []look{{0, 9, true}, {10, 5, true}, {20, 15, true}, {30, 25, true}, {40, 35, true}}, true},
	} {
		var w watched
		got := false
		for _, l := range c.looks {
			got = w.isStuck(l.age*time.Second, l.outstanding, unansweredLimit, now.Add(l.at*time.Second))
		}
		if got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// A peer that does not read is not taken for a dead machine, however long its
// window is closed.
func TestPeersThatDoNotReadStay(t *testing.T) {
	t.Parallel()
	s := serve(t, zmq4.Push, bound(t, "tcp://127.0.0.1:0"))
	conn := foreign(t, s.Addresses()[0], zmq4.Pull)
	s.peers(t, 1)
	peer := s.Peers()[0]
	for push(peer, strings.Repeat("x", 1<<20), outq.Ticket{}) {
	}
	began := time.Now()
	zmqtest.Until(t, "its window is closed", func() bool { return time.Since(began) > 3*time.Second })
	for range 100 {
		if age, outstanding := unanswered(peer.Conn.NetConn()); outstanding && age > time.Second {
			t.Fatalf("nothing is acknowledged for %v", age)
		}
	}
	if peer.HungUp() {
		t.Error("it has hung up")
	}
	conn.NetConn().Close()
	s.peers(t, 0)
}
