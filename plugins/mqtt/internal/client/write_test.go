// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

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
	l.lose(ErrLost)
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

// A slow server is not one that does not read: it may take longer than the limit for
// all of it. The limit is long enough for a machine that stands still meanwhile.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	const stall = 5 * time.Second
	srv := serve(t)
	s, l, p := up(t, srv, Config{}, func(c *Client) { c.times.stall = stall })
	for _, small := range []func(int) error{l.nc.(*net.TCPConn).SetWriteBuffer, p.nc.(*net.TCPConn).SetReadBuffer} {
		if err := small(64 << 10); err != nil { // else the system takes most of it at once
			t.Fatal(err)
		}
	}
	const total = 8 << 20
	l.Write(func(b []byte) []byte { return append(b, bytes.Repeat([]byte{0xc0, 0}, total/2)...) })
	began, n := time.Now(), 0
	buf := make([]byte, 16<<10)
	read := func() {
		k, err := io.ReadAtLeast(p.nc, buf, 1)
		if err != nil {
			t.Fatalf("after %d bytes and %v: %v", n, time.Since(began), err)
		}
		n += k
	}
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for time.Since(began) < stall+stall/5 {
		<-tick.C
		read()
	}
	if l.Waiting() == 0 {
		t.Fatal("the system has taken everything by itself")
	}
	for n < total {
		read()
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

// gated is a connection's view of the system on which writes wait.
type gated struct {
	syscall.RawConn
	comes, gate chan struct{}
}

func (g *gated) Write(f func(fd uintptr) bool) error {
	g.comes <- struct{}{}
	<-g.gate
	return g.RawConn.Write(f)
}

// A publisher whose packets leave with what another one writes, or behind a read, is
// told: it has looked at Written too early.
func TestWhoLeavesPacketsToOthersIsTold(t *testing.T) {
	srv := serve(t)
	nc, err := net.Dial("tcp", srv.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	l := newLink(1, nc, false, Limits{}, defaultTimes())
	g := &gated{l.raw, make(chan struct{}, 10), make(chan struct{}, 10)}
	l.raw = g
	told := make(chan struct{}, 10)
	l.OnWritten(func() { told <- struct{}{} })
	l.running.Go(l.writing)
	idle := func() { l.lastWrite.Store(l.since() - int64(time.Second)) }
	idle()
	t.Run("another writes", func(t *testing.T) {
		l.uncork()
		mark, _ := l.Append(packet.AppendPing)
		other := make(chan struct{})
		go func() {
			l.Flush() // takes it along
			close(other)
		}()
		within(t, "the other's write", g.comes)
		l.Flush()
		if l.Written() >= mark {
			t.Fatal("it is written too early for this test")
		}
		g.gate <- struct{}{}
		within(t, "word of it", told)
		within(t, "the other's end", other)
		if l.Written() != mark {
			t.Errorf("%d are written, want %d", l.Written(), mark)
		}
	})
	t.Run("a read is gone through", func(t *testing.T) {
		idle()
		l.cork()
		mark, _ := l.Write(packet.AppendPing)
		if l.Written() >= mark || len(g.comes) > 0 {
			t.Fatal("it leaves within the read")
		}
		g.gate <- struct{}{}
		l.uncork()
		within(t, "word of it", told)
		<-g.comes
		if l.Written() != mark {
			t.Errorf("%d are written, want %d", l.Written(), mark)
		}
	})
	t.Run("it writes itself", func(t *testing.T) {
		idle()
		g.gate <- struct{}{}
		if mark, _ := l.Write(packet.AppendPing); l.Written() != mark {
			t.Errorf("%d are written, want %d", l.Written(), mark)
		}
		<-g.comes
	})
	t.Run("the end waits for who writes", func(t *testing.T) {
		idle()
		go l.Write(packet.AppendPing)
		<-g.comes
		l.lose(ErrLost)
		settled := make(chan struct{})
		go func() {
			l.settle()
			close(settled)
		}()
		select {
		case <-settled:
			t.Error("Written may still change")
		case <-time.After(20 * time.Millisecond):
		}
		g.gate <- struct{}{}
		within(t, "the end", settled)
	})
}
