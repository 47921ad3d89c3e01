// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// limit bounds a test on a busy machine, with the race detector on.
const limit = time.Minute

const mib = 1 << 20

// pair is two ends of a TCP connection.
func pair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

// opened is a connection with its handshake done, and its peer.
func opened(t testing.TB, own, other zmtp.Options) (a, b *zmtp.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	na, nb := pair(t)
	done := make(chan error, 1)
	go func() {
		var err error
		b, err = zmtp.Open(ctx, nb, other)
		done <- err
	}()
	a, err := zmtp.Open(ctx, na, own)
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// next is the next message or command of c.
func next(t testing.TB, r *zmtp.Reader, f *zmtp.Frames) error {
	t.Helper()
	for {
		if ok, err := r.Next(f); ok || err != nil {
			return err
		}
		if err := r.Fill(); err != nil {
			return err
		}
	}
}

func TestHandshakeOfOurOwn(t *testing.T) {
	a, b := opened(t, zmtp.Options{Type: zmq4.Dealer, Identity: []byte("me\x00"), MaxMessage: mib},
		zmtp.Options{Type: zmq4.Router, Accepted: true, MaxMessage: mib})
	if a.PeerType() != zmq4.Router || b.PeerType() != zmq4.Dealer {
		t.Errorf("types %s and %s", a.PeerType(), b.PeerType())
	}
	if got := string(b.PeerIdentity()); got != "me\x00" || len(a.PeerIdentity()) != 0 {
		t.Errorf("identities %q and %q", got, a.PeerIdentity())
	}
	if _, err := a.NetConn().Write(zmtp.AppendFrame(zmtp.AppendFrame(nil, []byte("a"), true), []byte("b"), false)); err != nil {
		t.Fatal(err)
	}
	var f zmtp.Frames
	if err := next(t, b.Reader(), &f); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]byte{[]byte("a"), []byte("b")}, f.List); diff != "" {
		t.Error(diff)
	}
}
