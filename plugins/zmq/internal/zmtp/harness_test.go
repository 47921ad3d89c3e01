// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

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
	for _, c := range []net.Conn{a, b} {
		_ = c.SetDeadline(time.Now().Add(limit))
	}
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

// open opens nc within the limit of a test.
func open(nc net.Conn, o zmtp.Options) (*zmtp.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if o.MaxMessage == 0 {
		o.MaxMessage = mib
	}
	return zmtp.Open(ctx, nc, o)
}

// opened is two ends of a connection with its handshake done.
func opened(t testing.TB, own, other zmtp.Options) (a, b *zmtp.Conn) {
	t.Helper()
	na, nb := pair(t)
	done := make(chan error, 1)
	go func() {
		var err error
		b, err = open(nb, other)
		done <- err
	}()
	a, err := open(na, own)
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// against opens a connection of our own whose peer sends fixed bytes, ends its
// side or not, and reads to the end. It returns what the peer read.
func against(t *testing.T, send []byte, ends bool, o zmtp.Options) (c *zmtp.Conn, heard []byte, err error) {
	t.Helper()
	ours, peer := pair(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = peer.Write(send)
		if ends {
			_ = peer.(*net.TCPConn).CloseWrite()
		}
		heard, _ = io.ReadAll(peer)
	}()
	c, err = open(ours, o)
	if err == nil {
		_ = ours.(*net.TCPConn).CloseWrite()
	}
	<-done
	return c, heard, err
}

// next is the next message or command of r.
func next(r *zmtp.Reader, f *zmtp.Frames) error {
	for {
		if ok, err := r.Next(f); ok || err != nil {
			return err
		}
		if err := r.Fill(); err != nil {
			return err
		}
	}
}

// sample is one side of the connection in samples/zmtp-push-two-messages.hex.
func sample(t testing.TB, side string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "sample-"+side+".bin"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// hello is a greeting and a READY with these properties, names and values in
// turn.
func hello(properties ...string) []byte {
	return append(greeting(3, 0, "NULL"), command("READY"+metadata(properties...))...)
}

func greeting(major, minor byte, mechanism string) []byte {
	b := make([]byte, 64)
	b[0], b[9], b[10], b[11] = 0xff, 0x7f, major, minor
	copy(b[12:32], mechanism)
	return b
}

func metadata(properties ...string) string {
	var b bytes.Buffer
	for i := 0; i < len(properties); i += 2 {
		name, value := properties[i], properties[i+1]
		b.WriteByte(byte(len(name)))
		b.WriteString(name)
		b.Write([]byte{byte(len(value) >> 24), byte(len(value) >> 16), byte(len(value) >> 8), byte(len(value))})
		b.WriteString(value)
	}
	return b.String()
}

// command is a command frame; its body begins with a name of five letters.
func command(body string) []byte {
	b := append([]byte{5}, body...)
	if len(b) <= 255 {
		return append([]byte{4, byte(len(b))}, b...)
	}
	return append([]byte{6, 0, 0, 0, 0, 0, 0, byte(len(b) >> 8), byte(len(b))}, b...)
}

// socketTypes are the sockets and one that each goes with.
var socketTypes = map[zmq4.SocketType]zmq4.SocketType{
	zmq4.Push: zmq4.Pull, zmq4.Pull: zmq4.Push, zmq4.Pub: zmq4.Sub, zmq4.Sub: zmq4.Pub,
	zmq4.Dealer: zmq4.Router, zmq4.Router: zmq4.Dealer, zmq4.Req: zmq4.Rep, zmq4.Rep: zmq4.Req,
	zmq4.XPub: zmq4.XSub, zmq4.XSub: zmq4.XPub, zmq4.Pair: zmq4.Pair,
}
