// SPDX-License-Identifier: Apache-2.0

package packet_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// pieces hands out its bytes in pieces of the given sizes, again and again.
type pieces struct {
	rest  []byte
	sizes []byte
	at    int
}

func (s *pieces) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := len(p)
	if len(s.sizes) > 0 {
		n = min(n, 1+int(s.sizes[s.at%len(s.sizes)]))
		s.at++
	}
	n = copy(p[:n], s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next takes the next packet.
func next(r *packet.Reader, p *packet.Packet) error {
	for {
		ok, err := r.Next(p)
		if ok || err != nil {
			return err
		}
		if err := r.Fill(); err != nil {
			return err
		}
	}
}

// told is everything that a reader tells, as text: packets, and why it ended.
func told(r *packet.Reader) []string {
	var all []string
	var p packet.Packet
	for {
		if err := next(r, &p); err != nil {
			return append(all, err.Error())
		}
		all = append(all, line(&p))
		r.Spent()
	}
}

func line(p *packet.Packet) string {
	return fmt.Sprintf("%s %X %x", packet.Name(p.Type), p.Flags, p.Body)
}

// one reads a packet that stands alone in b.
func one(t *testing.T, b []byte) *packet.Packet {
	t.Helper()
	r := packet.NewReader(bytes.NewReader(b), 0)
	p := &packet.Packet{}
	if err := next(r, p); err != nil {
		t.Fatalf("%x: %v", b, err)
	}
	if r.Buffered() != 0 {
		t.Fatalf("%x: %d bytes behind the packet", b, r.Buffered())
	}
	return p
}

// raw is a packet with any body.
func raw(typ, flags byte, body string) []byte {
	b := []byte{typ<<4 | flags}
	n := len(body)
	for n >= 0x80 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(append(b, byte(n)), body...)
}

// str is a string as it stands in a packet.
func str(s string) string { return string(packet.AppendString(nil, s)) }

// code is the code of a protocol error, 0 = it is none.
func code(err error) byte {
	var e *packet.ProtocolError
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code
}
