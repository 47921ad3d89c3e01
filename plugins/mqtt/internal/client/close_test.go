// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// Close writes what is to be written, takes its leave, and waits for the server's
// end; the last packets of the server are passed on.
func TestClose(t *testing.T) {
	srv := serve(t)
	s, l, p := up(t, srv, Config{}, func(c *Client) { c.times.linger = patience })
	const n = 200_000
	l.Write(func(b []byte) []byte { return append(b, bytes.Repeat([]byte{0xc0, 0}, n)...) })
	done := make(chan struct{})
	go func() {
		s.mustClose(t)
		close(done)
	}()
	within(t, "the end of writing", closingOf(l))
	if _, ok := l.Write(packet.AppendPing); ok {
		t.Error("more is taken")
	}
	for range n {
		p.expect(packet.TypePingreq)
	}
	p.expect(packet.TypeDisconnect)
	p.raw(publish)
	if _, ok := p.next(); ok {
		t.Error("something comes behind the DISCONNECT")
	}
	select {
	case <-done:
		t.Error("it does not wait for the server's end")
	default:
	}
	p.nc.Close()
	within(t, "the end", done)
	if err := <-s.downs; !errors.Is(err, ErrClosed) {
		t.Errorf("the link ends by %v", err)
	}
	if len(s.packets) != 1 {
		t.Error("the last packet was not passed on")
	}
	if len(s.fatals) != 0 {
		t.Error("Fatal is called")
	}
	s.mustClose(t)
	if err := s.Start(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("started again: %v", err)
	}
}

// closingOf is closed when the link takes nothing more.
func closingOf(l *Link) <-chan struct{} {
	c := make(chan struct{})
	go func() {
		defer close(c)
		for {
			l.out.mu.Lock()
			closing := l.out.closing
			l.out.mu.Unlock()
			if closing {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return c
}

// Close ends in every state, whoever calls it, and leaves nothing running.
func TestCloseInEveryState(t *testing.T) {
	silent := func(srv *server, s *subject) { srv.accept() }
	for name, reach := range map[string]func(srv *server, s *subject){
		"before it is started": nil,
		"dialing":              func(srv *server, s *subject) {},
		"no answer to CONNECT": silent,
		"half a CONNACK":       func(srv *server, s *subject) { srv.accept().raw(connack[:2]) },
		"in a pause": func(srv *server, s *subject) {
			p := srv.accept()
			p.expect(packet.TypeConnect)
			p.raw(refusal(packet.CodeBusy))
			p.next()
		},
		"up":                  func(srv *server, s *subject) { srv.welcome(); <-s.ups },
		"while it comes up":   func(srv *server, s *subject) { srv.welcome() },
		"up, within a packet": func(srv *server, s *subject) { srv.welcome().raw(publish[:4]); <-s.ups },
		"link lost":           func(srv *server, s *subject) { srv.welcome().nc.Close(); <-s.downs },
		"refused for good": func(srv *server, s *subject) {
			p := srv.accept()
			p.expect(packet.TypeConnect)
			p.raw(refusal(packet.CodeBanned))
			<-s.done
		},
		"taken over": func(srv *server, s *subject) { srv.welcome().raw(farewell(packet.CodeTakenOver)); <-s.fatals },
		"ending": func(srv *server, s *subject) {
			srv.welcome()
			l := <-s.ups
			l.End(errors.New("enough"), packet.CodeMalformed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t)
			s := subjectOf(t, Config{Address: srv.address()}, func(c *Client) {
				c.times.linger = 20 * time.Millisecond
				if name == "in a pause" {
					c.times.backoffFirst, c.times.backoffLast = time.Hour, time.Hour
				}
			})
			var started <-chan error
			if reach != nil {
				started = s.start(t)
				reach(srv, s)
			}
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() { s.mustClose(t) })
			}
			all.Wait()
			if started == nil {
				if err := s.Start(t.Context()); !errors.Is(err, ErrClosed) {
					t.Errorf("it can be started: %v", err)
				}
				return
			}
			within(t, "the start", started)
			within(t, "the end", s.done)
			if u, d := len(s.ups), len(s.downs); u > 1 || d > 1 {
				t.Errorf("told of %d links and %d ends more", u, d)
			}
		})
	}
}

// Close with a context that ends cuts the connection, and says what was lost.
func TestCloseCutsOff(t *testing.T) {
	srv := serve(t)
	s, l, _ := up(t, srv, Config{})
	l.Write(func(b []byte) []byte { return append(b, bytes.Repeat([]byte{0xc0, 0}, 8<<20)...) })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	faultWith(t, s.Close(ctx), core.FaultTimeout, "subject", "bytes that the server has not taken")
	within(t, "its end", s.downs)
}

// Where everything was written, a server that does not end costs time and nothing
// else.
func TestCloseOfADeafServer(t *testing.T) {
	srv := serve(t)
	s, _, p := up(t, srv, Config{}, func(c *Client) { c.times.linger = 30 * time.Millisecond })
	s.mustClose(t)
	p.leaves(packet.CodeSuccess)
	within(t, "its end", s.downs)
}

// A server that has the CONNECT and says nothing is left with a DISCONNECT, and its
// end is waited for, but not for long.
func TestCloseBeforeConnack(t *testing.T) {
	for name, code := range map[string]byte{"deaf": packet.CodeSuccess, "ends": packet.CodeWithWill} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t)
			s := subjectOf(t, Config{Address: srv.address()}, func(c *Client) {
				if c.times.parting = 20 * time.Millisecond; name == "ends" {
					c.times.parting = patience
				}
			})
			started := s.start(t)
			p := srv.accept()
			p.expect(packet.TypeConnect)
			done := make(chan error, 1)
			go func() { done <- s.leave(context.WithoutCancel(t.Context()), code) }()
			p.leaves(code)
			if name == "ends" {
				p.nc.Close()
			}
			if err := within(t, "the end", done); err != nil {
				t.Error(err)
			}
			if err := within(t, "the start", started); !errors.Is(err, ErrClosed) {
				t.Errorf("the start ends with %v", err)
			}
			if len(s.ups)+len(s.downs) > 0 {
				t.Error("a link is told of")
			}
		})
	}
}

// A connection that is accepted while Close is called is left in good order.
func TestCloseBehindConnack(t *testing.T) {
	for range 50 {
		srv := serve(t)
		s := subjectOf(t, Config{Address: srv.address()})
		started := s.start(t)
		p := srv.accept()
		p.expect(packet.TypeConnect)
		go p.nc.Write([]byte(connack))
		go s.mustClose(t)
		for {
			q, ok := p.next()
			if !ok {
				break
			}
			if q.Type != packet.TypeDisconnect {
				t.Errorf("%s comes", packet.Name(q.Type))
			}
		}
		p.nc.Close()
		within(t, "the start", started)
		within(t, "the end", s.done)
		if len(s.ups) != len(s.downs) {
			t.Errorf("%d links, %d ends", len(s.ups), len(s.downs))
		}
	}
}
