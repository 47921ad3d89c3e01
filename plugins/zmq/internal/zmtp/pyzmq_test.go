// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/go-zeromq/zmq4"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// accept is a connection that a script dials.
func accept(t *testing.T, script string, args ...string) (net.Conn, *zmqtest.Peer) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := zmqtest.Python(t, script, append([]string{"tcp://" + l.Addr().String()}, args...)...)
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return nc, p
}

// Sockets of libzmq of every kind are told and talked to.
func TestHandshakeWithLibzmq(t *testing.T) {
	for own, other := range socketTypes {
		t.Run(string(own), func(t *testing.T) {
			nc, _ := accept(t, `
s = ctx.socket(getattr(zmq, arg[1]))
s.linger = 0
if arg[1] in ("DEALER", "REQ", "ROUTER"):
    s.identity = b"me\0"
s.connect(arg[0])
hear()
`, string(other))
			c, err := open(nc, zmtp.Options{Type: own, Accepted: true})
			if err != nil {
				t.Fatal(err)
			}
			identity := ""
			switch other {
			case zmq4.Dealer, zmq4.Req, zmq4.Router:
				identity = "me\x00"
			}
			if c.PeerType() != other || string(c.PeerIdentity()) != identity {
				t.Errorf("a %s called %q, want %s", c.PeerType(), c.PeerIdentity(), other)
			}
		})
	}
}

// A socket of libzmq that wants security, or does not go with ours, is refused.
func TestHandshakeRefusesLibzmq(t *testing.T) {
	for name, tt := range map[string]struct {
		set, want string
	}{
		"PLAIN": {"s = ctx.socket(zmq.PUSH); s.plain_username = b'u'; s.plain_password = b'p'", "PLAIN"},
		"CURVE": {"s = ctx.socket(zmq.PUSH); s.curve_publickey, s.curve_secretkey = zmq.curve_keypair(); s.curve_serverkey = zmq.curve_keypair()[0]", "CURVE"},
		"type":  {"s = ctx.socket(zmq.PUB)", `a "PUB" socket`},
	} {
		t.Run(name, func(t *testing.T) {
			nc, _ := accept(t, tt.set+"; s.linger = 0; s.connect(arg[0]); hear()")
			_, err := open(nc, zmtp.Options{Type: zmq4.Pull, Accepted: true})
			var fault *zmtp.HandshakeError
			if !errors.As(err, &fault) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// What libzmq sends is read, and it reads what we send: frames of every size
// class, heartbeats among them, which are answered.
func TestMessagesWithLibzmq(t *testing.T) {
	nc, p := accept(t, `
s = ctx.socket(zmq.DEALER)
s.linger = -1
s.set(zmq.HEARTBEAT_IVL, 50)
s.set(zmq.HEARTBEAT_TIMEOUT, 20000)
s.set(zmq.HEARTBEAT_TTL, 3000)
s.connect(arg[0])
for n in (0, 1, 255, 256, 70000, 900000):
    s.send_multipart([b"name", b"", b"p" * n])
for f in s.recv_multipart():
    say(len(f))
hear()
s.send(b"end")
s.close()
ctx.term()
`)
	c, err := open(nc, zmtp.Options{Type: zmq4.Router})
	if err != nil {
		t.Fatal(err)
	}
	var f zmtp.Frames
	var sizes []int
	pings, asked := 0, false
	for {
		err := next(c.Reader(), &f)
		if err != nil {
			t.Fatalf("%v behind %d messages", err, len(sizes))
		}
		if f.Command == zmtp.CommandPing {
			ttl, context, ok := zmtp.ParsePing(f.Body)
			if !ok || ttl.Seconds() != 3 {
				t.Fatalf("PING %q", f.Body)
			}
			if _, err := nc.Write(zmtp.AppendPong(nil, context)); err != nil {
				t.Fatal(err)
			}
			pings++
		} else if sizes = append(sizes, f.Bytes); f.Count == 1 {
			break
		}
		if len(sizes) == 6 && pings > 2 && !asked {
			asked = true
			if _, err := nc.Write(frames("", "a", string(make([]byte, 300)))); err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{0, 1, 300} {
				if got := p.Line(); got != fmt.Sprint(n) {
					t.Errorf("libzmq has read %s bytes, want %d", got, n)
				}
			}
			p.Say("go on")
		}
	}
	if diff := cmp.Diff([]int{4, 5, 259, 260, 70004, 900004, 3}, sizes); diff != "" {
		t.Error(diff)
	}
	if err := next(c.Reader(), &f); !errors.Is(err, io.EOF) {
		t.Errorf("in the end: %v", err)
	}
}

// libzmq subscribes by messages and understands ours.
func TestSubscriptionWithLibzmq(t *testing.T) {
	nc, p := accept(t, `
s = ctx.socket(zmq.SUB)
s.linger = 0
s.subscribe(b"events")
s.connect(arg[0])
say(s.recv_multipart()[0].decode())
s.unsubscribe(b"events")
hear()
`)
	c, err := open(nc, zmtp.Options{Type: zmq4.Pub})
	if err != nil {
		t.Fatal(err)
	}
	var f zmtp.Frames
	for i, want := range []bool{true, false} {
		if err := next(c.Reader(), &f); err != nil {
			t.Fatal(err)
		}
		if prefix, on, ok := zmtp.Subscription(&f); string(prefix) != "events" || on != want || !ok {
			t.Errorf("%q, %v, %v", prefix, on, ok)
		}
		if i == 0 {
			if _, err := nc.Write(append(frames("other", "", "x"), frames("events.eu", "", "y")...)); err != nil {
				t.Fatal(err)
			}
			p.Expect("events.eu")
		}
	}
	nc, p = accept(t, `
s = ctx.socket(zmq.XPUB)
s.linger = 0
s.connect(arg[0])
say(s.recv())
say(s.recv())
hear()
`)
	if _, err = open(nc, zmtp.Options{Type: zmq4.Sub}); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Write(zmtp.AppendSubscribe(zmtp.AppendSubscribe(nil, "ev", true), "ev", false)); err != nil {
		t.Fatal(err)
	}
	p.Expect(`b'\x01ev'`)
	p.Expect(`b'\x00ev'`)
}
