// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/freeport"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// Whatever answers a CONNECT, the start ends with a fault that says what it was.
func TestFirstAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		answer []byte
		code   core.FaultCode
		want   string
	}{
		"another protocol":     {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), core.FaultUnsupported, "no Pulsar broker: bad frame: it begins with HTTP"},
		"oversized frame":      {[]byte{0x01, 0, 0, 1, 0, 0, 0, 1}, core.FaultUnsupported, "over the limit"},
		"garbage in a frame":   {[]byte{0, 0, 0, 6, 0, 0, 0, 2, 0xff, 0xff}, core.FaultUnsupported, "bad frame"},
		"a message":            {[]byte{0, 0, 0, 8, 0, 0, 0, 2, 8, 9, 1, 2}, core.FaultUnsupported, "MESSAGE came in place of CONNECTED"},
		"wrong reply":          {frame(wire.TypePing, nil), core.FaultUnsupported, "PING came in place of CONNECTED"},
		"challenge for ever":   {append(challenge(), challenge()...), core.FaultUnsupported, "AUTH_CHALLENGE came in place of CONNECTED"},
		"credentials refused":  {refusal(-1, wire.AuthenticationError, "no\nentry"), core.FaultDenied, "AuthenticationError: no entry: token; set token"},
		"protocol refused":     {refusal(-1, wire.UnsupportedVersionError, "old"), core.FaultUnsupported, "UnsupportedVersionError: old"},
		"not allowed to be in": {refusal(-1, wire.AuthorizationError, ""), core.FaultDenied, "AuthorizationError"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t)
			s := subjectOf(t, Config{Address: srv.address()})
			done := make(chan struct{})
			go func() {
				defer close(done)
				p := srv.accept()
				p.expect(wire.TypeConnect)
				p.send(tt.answer)
				p.gone()
			}()
			f := s.refusedWith(t)
			<-done
			if f.Code != tt.code || f.Transient || !strings.Contains(f.Error(), tt.want) || !strings.Contains(f.Error(), srv.host()) {
				t.Errorf("got %d: %v; want %d with %q and the host", f.Code, f, tt.code, tt.want)
			}
			if s.Err() != f {
				t.Errorf("the client's own fault is %v", s.Err())
			}
		})
	}
}

// What passes is tried again until the time for it is over, with the last reason and
// the number of tries.
func TestNoBroker(t *testing.T) {
	t.Parallel()
	closed := Address{Hosts: []string{fmt.Sprint("127.0.0.1:", freeport.Hold(t))}}
	for name, tt := range map[string]struct {
		serve func(p *peer)
		want  string
	}{
		"nobody listens": {nil, "refused"},
		"silence":        {func(p *peer) { p.gone() }, "no answer within 1s"},
		"hangs up":       {func(p *peer) { p.expect(wire.TypeConnect); p.nc.Close() }, "closed the connection"},
		"not ready":      {func(p *peer) { p.expect(wire.TypeConnect); p.send(refusal(-1, wire.ServiceNotReady, "soon")); p.gone() }, "ServiceNotReady: soon"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, done := closed, make(chan struct{})
			if tt.serve != nil {
				srv := serve(t)
				address = srv.address()
				go func() {
					defer close(done)
					for range 3 { // later ones wait in vain
						tt.serve(srv.accept())
					}
				}()
			} else {
				close(done)
			}
			s := subjectOf(t, Config{Address: address, ConnectTimeout: 10 * time.Second}, func(c *Client) { c.times.try = time.Second })
			began := time.Now()
			f := s.refusedWith(t)
			<-done
			if f.Code != core.FaultUnavailable || !f.Transient || !strings.Contains(f.Error(), "(tries: ") || !strings.Contains(f.Error(), "pulsar+ssl://") {
				t.Errorf("got %d, transient %t: %v; want an unavailable one with the tries and advice", f.Code, f.Transient, f)
			}
			if tt.serve == nil && !strings.Contains(f.Error(), tt.want) { // of others the last tries meet nobody who serves
				t.Errorf("got %v; want %q", f, tt.want)
			}
			if !strings.Contains(s.log.String(), tt.want) {
				t.Errorf("no line says %q:\n%s", tt.want, s.log)
			}
			if took := time.Since(began); took > patience/2 {
				t.Errorf("it took %v", took)
			}
			if n := strings.Count(s.log.String(), "level=WARN"); n != 1 {
				t.Errorf("%d lines warn of it; want one in half a minute", n)
			}
			if now, _ := s.Up(); now {
				t.Error("it is up")
			}
		})
	}
}

// A start that is cancelled, or whose own time ends before, ends the client.
func TestConnectCancelled(t *testing.T) {
	t.Parallel()
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address()})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		srv.accept()
		cancel()
	}()
	if f, ok := errors.AsType[*core.Fault](s.Connect(ctx)); !ok || f.Code != core.FaultCanceled {
		t.Errorf("got %v; want the fault of a cancelled start", f)
	}
	if f, ok := errors.AsType[*core.Fault](s.Connect(t.Context())); !ok || f.Code != core.FaultClosed {
		t.Errorf("the second start: got %v; want a closed client", f)
	}
	short := subjectOf(t, Config{Address: srv.address()})
	ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second) // a tenth of it is kept
	defer cancel()
	if f, ok := errors.AsType[*core.Fault](short.Connect(ctx)); !ok || f.Code != core.FaultTimeout || ctx.Err() != nil {
		t.Errorf("got %v, context %v; want a timeout before the context's", f, ctx.Err())
	}
}

// A broker may ask for credentials in the handshake, and again later; it may send what
// is of no concern.
func TestChallenges(t *testing.T) {
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address(), Token: core.NewSecret("hush")})
	done := make(chan struct{})
	go func() {
		defer close(done)
		p := srv.accept()
		if b := p.expect(wire.TypeConnect); !strings.Contains(string(b), "hush") || !strings.Contains(string(b), "token") {
			t.Errorf("no token in %q", b)
		}
		p.send(challenge())
		p.expect(wire.TypeAuthResponse)
		p.send(connected(1000))
		p.send(frame(9, nil)) // a message
		p.send(frame(wire.TypePong, nil))
		p.send(frame(wire.TypeTopicsResponse, varints(77))) // nobody has asked
		p.send(frame(wire.TypePing, nil))
		p.expect(wire.TypePong)
		p.send(challenge())
		if b := p.expect(wire.TypeAuthResponse); !strings.Contains(string(b), "hush") {
			t.Errorf("no token in %q", b)
		}
	}()
	s.connected(t)
	<-done
	if got := s.MaxMessageSize(); got != 1000 {
		t.Errorf("messages may have %d bytes; want 1000", got)
	}
	if now, _ := s.Up(); !now {
		t.Error("it is not up")
	}
	if strings.Contains(s.log.String(), "hush") {
		t.Errorf("the log shows the token:\n%s", s.log)
	}
}

// A connection that is of no use any more is made again, and the state says why it
// was down.
func TestLinkEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  func(p *peer)
		want string
	}{
		"hangs up":        {func(p *peer) { p.nc.Close() }, "closed the connection"},
		"garbage":         {func(p *peer) { p.send([]byte("garbage garbage garbage")) }, "over the limit"},
		"half a frame":    {func(p *peer) { p.send([]byte{0, 0, 0, 9, 0}); p.nc.Close() }, "closed the connection"},
		"bad command":     {func(p *peer) { p.send([]byte{0, 0, 0, 5, 0, 0, 0, 1, 0xff}) }, "bad frame"},
		"silence":         {func(p *peer) { p.expect(wire.TypePing); p.gone() }, "does not answer for 3s"},
		"refuses for now": {func(p *peer) { p.send(refusal(-1, wire.ServiceNotReady, "moved")); p.gone() }, "ServiceNotReady: moved"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t)
			s := subjectOf(t, Config{Address: srv.address()}, silence(name == "silence"))
			first := make(chan *peer, 1)
			go func() { first <- srv.admit() }()
			s.connected(t)
			if got := s.next(t); got != (change{reason: "not connected yet"}) {
				t.Errorf("the first state is %v", got)
			}
			if got := s.next(t); !got.up {
				t.Errorf("the next state is %v; want it up", got)
			}
			_, changed := s.Up()
			tt.end(within(t, "a connection", first))
			if got := s.next(t); got.up || !strings.Contains(got.reason, tt.want) {
				t.Errorf("the next state is %v; want it down: %s", got, tt.want)
			}
			within(t, "the change", changed)
			srv.admit()
			for got := s.next(t); !got.up; got = s.next(t) { // tries may fail before
			}
			if s.Err() != nil {
				t.Errorf("the client has ended: %v", s.Err())
			}
		})
	}
}

// A refusal later is for good where nothing can be renewed: the client ends.
func TestRefusedLater(t *testing.T) {
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address(), Token: core.NewSecret("hush")})
	go func() {
		srv.admit().nc.Close()
		p := srv.accept()
		p.expect(wire.TypeConnect)
		p.send(refusal(-1, wire.AuthenticationError, "revoked"))
		p.gone()
	}()
	s.connected(t)
	within(t, "the end", s.Fatal())
	if f := s.Err(); f == nil || f.Code != core.FaultDenied || f.Diagnostics[0].Path != "token" || !strings.Contains(f.Error(), "revoked") {
		t.Errorf("got %v; want a denied token", f)
	}
	var last change
	for last = s.next(t); last.up || !strings.Contains(last.reason, "revoked"); last = s.next(t) {
	}
}

// Answers that make no sense fail their request, whatever they are.
func TestAnswers(t *testing.T) {
	name := topic.Name{Tenant: "a", Namespace: "b", Local: "c", Partition: topic.NoPartition}
	for what, tt := range map[string]struct {
		answer []byte
		want   string
	}{
		"another answer":      {frame(wire.TypeTopicsResponse, varints(1)), "GET_TOPICS_OF_NAMESPACE_RESPONSE came in place of"},
		"too many partitions": {frame(wire.TypePartitionsResponse, varints(4_000_000_000, 1, 0)), "4000000000 partitions"},
		"refused":             {refusal(1, wire.TooManyRequests, "slow down"), "TooManyRequests: slow down"},
		"failed":              {frame(wire.TypePartitionsResponse, varints(-1, 1, 1, 2)), "PersistenceError"},
		"the end":             {nil, "lost: the broker closed the connection"},
	} {
		t.Run(what, func(t *testing.T) {
			srv := serve(t)
			s := subjectOf(t, Config{Address: srv.address()})
			go func() {
				p := srv.admit()
				p.expect(wire.TypePartitions)
				if tt.answer == nil {
					p.nc.Close()
					return
				}
				p.send(tt.answer)
			}()
			s.connected(t)
			n, err := s.Partitions(t.Context(), name)
			if err == nil || n != 0 || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "look up the topic: ") {
				t.Errorf("got %d, %v; want %q of a topic that the caller names", n, err, tt.want)
			}
		})
	}
}

// Requests wait for an answer as long as an operation may take, or their context
// lasts, and no more than a few at a time; nothing is left of those that gave up.
func TestAnswersMissing(t *testing.T) {
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address(), OperationTimeout: 30 * time.Millisecond})
	peers := make(chan *peer, 1)
	go func() { peers <- srv.admit() }()
	s.connected(t)
	results := make(chan error)
	const asked = 3 * maxAsked
	for range asked {
		go func() {
			_, err := s.Topics(t.Context(), "a/b")
			results <- err
		}()
	}
	for range asked {
		f, ok := errors.AsType[*core.Fault](within(t, "the end of a request", results))
		if !ok || f.Code != core.FaultTimeout || !f.Transient {
			t.Errorf("got %v; want a timeout that passes", f)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Topics(ctx, "a/b"); !strings.Contains(err.Error(), "canceled") {
		t.Errorf("got %v; want a cancelled request", err)
	}
	l := s.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.asked) != 0 {
		t.Errorf("%d requests are kept", len(l.asked))
	}
	within(t, "the connection", peers)
}

// Of several hosts the next one is tried when one does not answer, and when one that did
// is lost.
func TestSeveralHosts(t *testing.T) {
	a, b := serve(t), serve(t)
	one := subjectOf(t, Config{Address: Address{Hosts: []string{fmt.Sprint("127.0.0.1:", freeport.Hold(t)), a.host()}}})
	go func() { a.admit() }()
	one.connected(t)
	one.mustClose(t)()

	s := subjectOf(t, Config{Address: Address{Hosts: []string{a.host(), b.host()}}})
	first, other := make(chan *peer, 2), make(chan *peer, 2)
	go func() { first <- a.admit() }()
	go func() { other <- b.admit() }()
	s.connected(t)
	select {
	case p := <-first:
		p.nc.Close()
		within(t, "a connection to the other host", other)
	case p := <-other:
		p.nc.Close()
		within(t, "a connection to the other host", first)
	}
}
