// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// up is a client whose first link is up, and the server's end of it.
func up(t *testing.T, srv *server, c Config, tune ...func(*Client)) (*subject, *Link, *peer) {
	t.Helper()
	c.Address = srv.address()
	s := subjectOf(t, c, tune...)
	started := s.start(t)
	p := srv.welcome()
	if err := within(t, "the start", started); err != nil {
		t.Fatal(err)
	}
	return s, within(t, "the link", s.ups), p
}

// A connection that is cut anywhere within a packet ends that link alone, and what
// came whole before has been passed on.
func TestCuts(t *testing.T) {
	srv := serve(t)
	s, _, p := up(t, srv, Config{})
	big := "\x30\xc3\x13\x00\x01t" + strings.Repeat("x", 2496)
	for _, cut := range []int{0, 1, 2, 3, 6, 100, 2498} {
		p.raw(publish + big[:cut])
		p.nc.Close()
		if q := within(t, "the whole packet", s.packets); q.body != publish[2:] {
			t.Errorf("cut at %d: %+v", cut, q)
		}
		err := within(t, "its end", s.downs)
		if within := strings.Contains(err.Error(), "within a packet"); within != (cut > 0) {
			t.Errorf("cut at %d: %v", cut, err)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) != (cut > 0) {
			t.Errorf("cut at %d: %v", cut, err)
		}
		p = srv.welcome()
		within(t, "the next link", s.ups)
	}
	if n := strings.Count(s.log.String(), "connection lost"); n != 7 {
		t.Errorf("%d lines, want one for each that did not end in peace:\n%s", n, s.log)
	}
}

// A server that breaks the protocol is told why, and the link ends, and no other.
func TestProtocolErrors(t *testing.T) {
	for name, c := range map[string]struct {
		sends string
		code  byte
	}{
		"type 0":                     {"\x00\x00", packet.CodeMalformed},
		"a length of five bytes":     {"\x30\xff\xff\xff\xff\x01", packet.CodeMalformed},
		"a second CONNACK":           {connack, packet.CodeProtocolError},
		"CONNECT":                    {"\x10\x00", packet.CodeProtocolError},
		"SUBSCRIBE":                  {"\x82\x00", packet.CodeProtocolError},
		"UNSUBSCRIBE":                {"\xa2\x00", packet.CodeProtocolError},
		"PINGREQ":                    {"\xc0\x00", packet.CodeProtocolError},
		"AUTH":                       {"\xf0\x00", packet.CodeProtocolError},
		"PINGRESP with a body":       {"\xd0\x01x", packet.CodeMalformed},
		"DISCONNECT of broken shape": {"\xe0\x03\x8b\x7f\x00", packet.CodeMalformed},
		"more than allowed":          {"\x30\xff\xff\xff\x7f", packet.CodeTooLarge},
		"one byte too many":          {"\x30\xfc\x07" + strings.Repeat("x", 10), packet.CodeTooLarge}, // 3 + 1020 of 1022
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t)
			s, _, p := up(t, srv, Config{Connect: packet.ConnectParams{MaxPacket: 1022}})
			p.raw(publish + c.sends + publish)
			p.leaves(c.code)
			p.nc.Close()
			bad, ok := errors.AsType[*packet.ProtocolError](within(t, "its end", s.downs))
			if !ok || bad.Code != c.code {
				t.Errorf("the link ends by %v", bad)
			}
			if n := len(s.packets); n != 1 {
				t.Errorf("%d packets were passed on, want the one before", n)
			}
			srv.welcome()
			within(t, "the next link", s.ups)
		})
	}
}

// What a peer announces takes no memory, and of what is sent no more than
// the limit.
func TestMemoryIsFlat(t *testing.T) {
	srv := serve(t)
	s, _, p := up(t, srv, Config{Connect: packet.ConnectParams{MaxPacket: 1 << 20}})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 50 {
		p.raw("\x30\xff\xff\xff\x7f\x00\x01t\x00" + strings.Repeat("x", 64<<10))
		p.leaves(packet.CodeTooLarge)
		p.nc.Close()
		within(t, "its end", s.downs)
		p = srv.welcome()
		within(t, "the next link", s.ups)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 { // 50 x 256 MiB were announced
		t.Errorf("%d MiB were taken", n>>20)
	}
	p.raw(publish)
	within(t, "a message", s.packets)
}

// A handler ends a link: what it has written leaves, nothing is passed on behind it.
func TestEnd(t *testing.T) {
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address()})
	cause := errors.New("a packet that was not due")
	s.onPack = func(l *Link, p *packet.Packet) {
		l.Write(func(b []byte) []byte { return append(b, "\x40\x02\x00\x01"...) })
		l.End(cause, packet.CodeReceiveMaximum)
		l.End(errors.New("again"), packet.CodeMalformed)
		if _, ok := l.Write(packet.AppendPing); ok {
			t.Error("more is taken")
		}
	}
	s.start(t)
	p := srv.welcome()
	l := within(t, "the link", s.ups)
	p.raw(publish + publish + strings.Repeat("\x30", 100_000)) // the rest is not even looked at
	p.expect(packet.TypePuback)
	p.leaves(packet.CodeReceiveMaximum)
	p.nc.Close()
	if err := within(t, "its end", s.downs); !errors.Is(err, cause) {
		t.Errorf("it ends by %v", err)
	}
	within(t, "done", l.Done())
	if n := len(s.packets); n != 1 {
		t.Errorf("%d packets were passed on", n)
	}
	l.End(cause, 0) // of a link that has ended
}

// A server that does not close behind a DISCONNECT is left all the same.
func TestEndOfADeafServer(t *testing.T) {
	srv := serve(t)
	s, l, p := up(t, srv, Config{}, func(c *Client) { c.times.linger = 30 * time.Millisecond })
	l.End(errors.New("enough"), packet.CodeMalformed)
	p.expect(packet.TypeDisconnect)
	within(t, "its end", s.downs)
	srv.welcome()
}

// What has been read in little is acknowledged at once, unless something is written
// that takes it along: the server may hold the next packet back until then.
func TestSmallReadsAreAcknowledged(t *testing.T) {
	var asked atomic.Int32
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address()}, func(c *Client) {
		c.times.acknowledge = func(socket syscall.RawConn) {
			asked.Add(1)
			acknowledge(socket)
		}
	})
	answer := false
	s.onPack = func(l *Link, _ *packet.Packet) {
		if answer {
			l.Write(packet.AppendPing)
		}
	}
	s.start(t)
	p := srv.welcome()
	l := within(t, "the link", s.ups)
	for i := range int32(5) {
		if i%2 == 0 { // what left before takes nothing along
			l.Write(packet.AppendPing)
			p.expect(packet.TypePingreq)
		}
		p.raw(publish)
		within(t, "a packet", s.packets)
		eventually(t, "it is acknowledged", func() bool { return asked.Load() == i+1 })
	}
	answer = true
	for range 5 {
		p.raw(publish)
		p.expect(packet.TypePingreq)
	}
	if n := asked.Load(); n != 5 {
		t.Errorf("asked %d times, want 5", n)
	}
}
