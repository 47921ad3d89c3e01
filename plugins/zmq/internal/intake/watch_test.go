// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/plugins/zmq/internal/intake"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmqtest"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// watched listens as a socket that only sends and returns what it is told.
func watched(t *testing.T, own zmq4.SocketType) (*bench, chan string) {
	told := make(chan string, 100)
	message := func(list [][]byte) error {
		told <- fmt.Sprintf("%s", list)
		if string(list[0]) == "bad" {
			return errors.New("bad")
		}
		return nil
	}
	return listen(t, own, intake.Options{}, func(p *peering.Peer, _ []byte) error { return intake.Watch(p, message) }), told
}

func TestWatchAnswersAndSeesTheEnd(t *testing.T) {
	b, _ := watched(t, zmq4.Push)
	p := b.dial(zmq4.Pull, "")
	p.write(append(zmtp.AppendPing(nil, 0, []byte("1")), zmtp.AppendPing(nil, 0, nil)...))
	var f zmtp.Frames
	for _, want := range []string{"1", ""} {
		if p.next(&f); f.Command != zmtp.CommandPong || string(f.Body) != want {
			t.Errorf("a PING is answered with %s %q, want PONG %q", f.Command, f.Body, want)
		}
	}
	p.nc.Close()
	if err := b.ended(); !errors.Is(err, io.EOF) {
		t.Errorf("the end of the peer is %v, want io.EOF", err)
	}
	p = b.dial(zmq4.Pull, "")
	p.write([]byte("\x02\x7f\xff\xff\xff\xff\xff\xff\xff"))
	if err, want := b.ended(), new(*zmtp.ProtocolError); !errors.As(err, want) {
		t.Errorf("the end of the peer is %v, want a protocol error", err)
	}
	b.dial(zmq4.Pull, "").write([]byte("\x04\x06\x04PING\x00"))
	if err := b.ended(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the end of a peer with a PING that is none is %v", err)
	}
}

func TestWatchHandsOnReplies(t *testing.T) {
	b, told := watched(t, zmq4.Dealer)
	p := b.dial(zmq4.Router, "")
	p.write(frames("reply", "a: 1", "m1"))
	p.write(zmtp.AppendPong(nil, nil))
	p.write(frames("\x01", ""))
	for _, want := range []string{"[reply a: 1 m1]", "[\x01 ]"} {
		if got := <-told; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	p.write(frames("bad"))
	if err := b.ended(); err == nil || err.Error() != "bad" {
		t.Errorf("the end is %v, want what Message has returned", err)
	}
}

// A reader with heartbeats keeps its connection to a socket that only sends.
func TestZ_11_HeartbeatsOfAReader(t *testing.T) {
	t.Parallel()
	b, _ := watched(t, zmq4.Push)
	p := zmqtest.Python(t, `
from zmq.utils.monitor import recv_monitor_message
s = ctx.socket(zmq.PULL)
s.setsockopt(zmq.HEARTBEAT_IVL, 200)
s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 600)
m = s.get_monitor_socket(zmq.EVENT_DISCONNECTED)
s.connect(arg[0])
say("disconnected" if m.poll(2000) else "connected")
hear()
`, b.address())
	p.Expect("connected")
}
