// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
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
		"TM-11: more than allowed":   {"\x30\xff\xff\xff\x7f", packet.CodeTooLarge},
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

// TM-11: what a peer announces takes no memory, and of what is sent no more than
// the limit.
func TestTM11MemoryIsFlat(t *testing.T) {
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

// What is written in Up leaves before anything else, what is written while a read is
// gone through leaves in one piece with all that read makes.
func TestWritesOfHandlersLeaveTogether(t *testing.T) {
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address()})
	s.onUp = func(l *Link) {
		for range 3 {
			l.Write(packet.AppendPing)
		}
		if l.Waiting() != 6 || l.Written() != 0 {
			t.Errorf("%d wait, %d written", l.Waiting(), l.Written())
		}
	}
	s.onPack = func(l *Link, p *packet.Packet) {
		before := l.Written()
		l.Write(packet.AppendPing)
		if l.Written() != before {
			t.Error("it is written at once")
		}
	}
	s.start(t)
	p := srv.welcome()
	for range 3 {
		p.expect(packet.TypePingreq)
	}
	l := within(t, "the link", s.ups)
	for range 20 {
		p.raw(strings.Repeat(publish, 10))
		for range 10 {
			p.expect(packet.TypePingreq)
		}
	}
	eventually(t, "all of it is counted", func() bool { return l.Written() == 6+400 && l.Waiting() == 0 })
}

// counted is a connection that counts writes and holds them up.
type counted struct {
	net.Conn
	writes chan int
	hold   chan struct{}
}

func (c *counted) Write(b []byte) (int, error) {
	c.writes <- len(b)
	<-c.hold
	return c.Conn.Write(b)
}

// What comes while one writes leaves together, in one call.
func TestWritesJoin(t *testing.T) {
	a, b := net.Pipe()
	l := newLink(1, &counted{a, make(chan int, 100), make(chan struct{})}, false, Limits{}, defaultTimes())
	c := l.nc.(*counted)
	told := make(chan uint64, 100)
	l.OnWritten(func() { told <- l.Written() })
	l.running.Go(l.writing)
	l.uncork()
	go io.Copy(io.Discard, b)
	l.Write(packet.AppendPing)
	if n := within(t, "the first", c.writes); n != 2 {
		t.Errorf("%d bytes", n)
	}
	var mark uint64
	for range 1000 {
		mark, _ = l.Append(packet.AppendPing)
		l.Flush()
	}
	if w := l.Waiting(); w != 2002 || mark != 2002 {
		t.Errorf("%d bytes wait, up to %d", w, mark)
	}
	close(c.hold)
	if n := within(t, "the others", c.writes); n != 2000 {
		t.Errorf("%d bytes", n)
	}
	for within(t, "word of it", told) != 2002 {
	}
	l.lose(errLost)
	l.settle()
	if _, ok := l.Append(packet.AppendPing); ok {
		t.Error("more is taken behind the end")
	}
	b.Close()
}

// Many write at a time: each packet leaves whole, once, and each writer's in order.
func TestConcurrentWrites(t *testing.T) {
	const writers, each = 8, 3000
	srv := serve(t)
	_, l, p := up(t, srv, Config{})
	for w := range writers {
		go func() {
			for i := range each {
				mark, ok := l.Write(func(b []byte) []byte {
					b = append(b, 0x30, 8, 0, 1, byte('a'+w), 0)
					return fmt.Appendf(b, "%04d", i)
				})
				if !ok || mark == 0 {
					t.Error("not taken")
				}
				if i%100 == 0 {
					time.Sleep(time.Duration(w*20) * time.Microsecond) // so that the link is idle at times
				}
			}
		}()
	}
	next := map[byte]int{}
	for range writers * each {
		q := p.expect(packet.TypePublish)
		w := q.Body[2]
		if got, want := string(q.Body[4:]), fmt.Sprintf("%04d", next[w]); got != want {
			t.Fatalf("of %c comes %s, want %s", w, got, want)
		}
		next[w]++
	}
	eventually(t, "all of it is counted", func() bool { return l.Waiting() == 0 && l.Written() == 10*writers*each })
}

// A server that reads nothing any more ends the link. What is counted as written is
// what it can still read, to the byte.
func TestServerThatDoesNotRead(t *testing.T) {
	srv := serve(t)
	s, l, p := up(t, srv, Config{}, func(c *Client) { c.times.stall = 50 * time.Millisecond })
	chunk := bytes.Repeat([]byte{0xc0, 0}, 100_000)
	total := 0
	for range 100 {
		if _, ok := l.Write(func(b []byte) []byte { return append(b, chunk...) }); ok {
			total += len(chunk)
		}
	}
	err := within(t, "its end", s.downs)
	if !strings.Contains(err.Error(), "read nothing for 50ms") {
		t.Errorf("it ends by %v", err)
	}
	written := l.Written()
	_ = p.nc.SetReadDeadline(time.Now().Add(patience))
	n, _ := io.Copy(io.Discard, p.nc)
	if uint64(n) != written || n >= int64(total) || n == 0 {
		t.Errorf("%d of %d bytes are counted as written, the server reads %d", written, total, n)
	}
	if w := l.Waiting(); w <= 0 {
		t.Errorf("%d wait", w)
	}
}

// A slow server is not one that does not read.
func TestSlowServer(t *testing.T) {
	srv := serve(t)
	s, l, p := up(t, srv, Config{}, func(c *Client) { c.times.stall = 500 * time.Millisecond })
	const total = 12 << 20
	l.Write(func(b []byte) []byte { return append(b, bytes.Repeat([]byte{0xc0, 0}, total/2)...) })
	began, n := time.Now(), 0
	buf := make([]byte, 32<<10)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for n < total {
		<-tick.C
		k, err := io.ReadAtLeast(p.nc, buf, 1)
		if err != nil {
			t.Fatalf("after %d bytes and %v: %v", n, time.Since(began), err)
		}
		n += k
	}
	eventually(t, "all of it is counted", func() bool { return l.Written() == total })
	if len(s.downs) > 0 {
		t.Error(<-s.downs)
	}
}

// A direct write of a link that was reset ends the link, not the caller.
func TestWriteToAResetConnection(t *testing.T) {
	srv := serve(t)
	s, l, p := up(t, srv, Config{})
	_ = p.nc.(*net.TCPConn).SetLinger(0)
	p.nc.Close()
	for {
		if _, ok := l.Write(packet.AppendPing); !ok {
			break
		}
		time.Sleep(time.Millisecond)
	}
	within(t, "its end", s.downs)
	srv.welcome()
	if n := within(t, "the next link", s.ups).Number(); n != 2 {
		t.Errorf("link %d", n)
	}
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
	within(t, "the link", s.ups)
	for i := range int32(5) {
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

// A publisher whose packets leave with what another one writes, or behind a read, is
// told: it has looked at Written too early.
func TestWhoLeavesPacketsToOthersIsTold(t *testing.T) {
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address()})
	told := make(chan struct{}, 1)
	s.onUp = func(l *Link) {
		l.OnWritten(func() {
			select {
			case told <- struct{}{}:
			default:
			}
		})
	}
	s.start(t)
	p := srv.welcome()
	l := within(t, "the link", s.ups)
	go func() {
		for {
			if _, ok := p.next(); !ok {
				return
			}
		}
	}()
	stop := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() { // reads that cork the link
		for {
			select {
			case <-stop:
				return
			default:
				p.nc.Write([]byte(publish))
			}
		}
	})
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-s.packets:
			}
		}
	})
	others.Go(func() { // another that writes
		for {
			select {
			case <-stop:
				return
			default:
				l.Write(packet.AppendPing)
				time.Sleep(100 * time.Microsecond)
			}
		}
	})
	for range 3000 {
		mark, _ := l.Append(packet.AppendPing)
		l.Flush()
		for l.Written() < mark {
			within(t, "word of what was written", told)
		}
	}
	close(stop)
	others.Wait()
}
