// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// reading is a socket whose peers are read, what it is told, and how they ended.
func reading(t *testing.T, own zmq4.SocketType) (s *served, told chan string, ended chan error) {
	told, ended = make(chan string, 100), make(chan error, 100)
	handle := func(f *zmtp.Frames) error {
		if f.Command != "" {
			told <- f.Command
			return nil
		}
		told <- fmt.Sprintf("%s", f.List)
		if string(f.List[0]) == "bad" {
			return errors.New("bad")
		}
		return nil
	}
	return serve(t, own, bound(t, "tcp://127.0.0.1:0", func(c *Config) {
		c.Serve = func(p *Peer) error {
			err := p.Read(handle, func() { told <- "filled" })
			ended <- err
			return err
		}
	})), told, ended
}

// says writes to a peer.
func says(t *testing.T, conn *zmtp.Conn, raw string) {
	t.Helper()
	if _, err := conn.NetConn().Write([]byte(raw)); err != nil {
		t.Fatal(err)
	}
}

func TestReadSeesTheEnd(t *testing.T) {
	s, _, ended := reading(t, zmq4.Push)
	address := s.Addresses()[0]
	foreign(t, address, zmq4.Pull).NetConn().Close()
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("the end of the peer is %v, want io.EOF", err)
	}
	says(t, foreign(t, address, zmq4.Pull), "\x02\x7f\xff\xff\xff\xff\xff\xff\xff")
	if err, want := <-ended, new(*zmtp.ProtocolError); !errors.As(err, want) {
		t.Errorf("the end of the peer is %v, want a protocol error", err)
	}
	says(t, foreign(t, address, zmq4.Pull), "\x04\x06\x04PING\x00")
	if err := <-ended; err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the end of a peer with a PING that is none is %v", err)
	}
}

// What came at once is handed over piece by piece, PINGs but for the answer left
// out, and then told to be all.
func TestReadHandsOver(t *testing.T) {
	s, told, ended := reading(t, zmq4.Dealer)
	conn := foreign(t, s.Addresses()[0], zmq4.Router)
	raw := zmtp.AppendFrame(zmtp.AppendFrame(nil, []byte("reply"), true), []byte("m1"), false)
	raw = zmtp.AppendPong(zmtp.AppendPing(raw, 0, []byte("1")), nil)
	raw = zmtp.AppendFrame(zmtp.AppendFrame(raw, []byte("\x01"), true), nil, false)
	says(t, conn, string(raw))
	for _, want := range []string{"[reply m1]", "PONG", "[\x01 ]", "filled"} {
		if got := <-told; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	says(t, conn, "\x00\x03bad")
	if err := <-ended; err == nil || err.Error() != "bad" {
		t.Errorf("the end is %v, want what handle has returned", err)
	}
}

// A reader with heartbeats keeps its connection to a socket that only sends.
func TestZ11HeartbeatsOfAReader(t *testing.T) {
	t.Parallel()
	s, _, _ := reading(t, zmq4.Push)
	p := zmqtest.Python(t, `
s = ctx.socket(zmq.PULL)
s.setsockopt(zmq.HEARTBEAT_IVL, 500)
s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 4000)
m = s.get_monitor_socket(zmq.EVENT_DISCONNECTED)
s.connect(arg[0])
say("disconnected" if m.poll(5500) else "connected")
hear()
`, s.Addresses()[0])
	p.Expect("connected")
}
