// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// server is a listener that plays a broker of bad manners.
type server struct {
	t  *testing.T
	ln net.Listener
}

func serve(t *testing.T) *server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return &server{t, ln}
}

func (s *server) host() string     { return s.ln.Addr().String() }
func (s *server) address() Address { return Address{Hosts: []string{s.host()}} }

// accept waits for the next connection.
func (s *server) accept() *peer {
	s.t.Helper()
	_ = s.ln.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	nc, err := s.ln.Accept()
	if err != nil {
		s.t.Fatalf("nobody connects: %v", err)
	}
	s.t.Cleanup(func() { nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(patience))
	return &peer{s.t, nc, wire.NewReader(nc)}
}

// admit accepts a connection and admits it.
func (s *server) admit() *peer {
	s.t.Helper()
	p := s.accept()
	p.expect(wire.TypeConnect)
	p.send(connected(1000))
	return p
}

// peer is a connection as the server has it.
type peer struct {
	t  *testing.T
	nc net.Conn
	r  *wire.Reader
}

// expect reads the next command that is no unexpected PING, which is of a type, and
// returns its bytes.
func (p *peer) expect(want wire.Type) []byte {
	p.t.Helper()
	f, err := p.r.Next()
	for err == nil && f.Type == wire.TypePing && want != wire.TypePing {
		f, err = p.r.Next()
	}
	if err != nil {
		p.t.Fatalf("waiting for %s: %v", want, err)
	}
	if f.Type != want {
		p.t.Fatalf("got %s; want %s", f.Type, want)
	}
	return f.Command
}

func (p *peer) send(b []byte) {
	p.t.Helper()
	if _, err := p.nc.Write(b); err != nil {
		p.t.Fatalf("write: %v", err)
	}
}

// gone waits until the client has hung up.
func (p *peer) gone() {
	p.t.Helper()
	for {
		if _, err := p.r.Next(); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				p.t.Fatal("the client does not hang up")
			}
			return
		}
	}
}

// frame is a frame with a command: its type, and its fields.
func frame(t wire.Type, body []byte) []byte {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(t))
	b = protowire.AppendBytes(protowire.AppendTag(b, protowire.Number(t), protowire.BytesType), body)
	f := binary.BigEndian.AppendUint32(nil, uint32(len(b)+4))
	return append(binary.BigEndian.AppendUint32(f, uint32(len(b))), b...)
}

// varints are fields 1, 2, 3.. of a command, as far as they are not negative.
func varints(values ...int64) (b []byte) {
	for i, v := range values {
		if v >= 0 {
			b = protowire.AppendVarint(protowire.AppendTag(b, protowire.Number(i+1), protowire.VarintType), uint64(v))
		}
	}
	return b
}

func text(b []byte, n protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
}

func connected(limit int64) []byte {
	return frame(wire.TypeConnected, text(varints(-1, 19, limit), 1, "test"))
}

func refusal(request int64, code wire.ServerError, message string) []byte {
	return frame(wire.TypeError, text(varints(request, int64(code)), 3, message))
}

func challenge() []byte { return frame(wire.TypeAuthChallenge, text(nil, 1, "test")) }
