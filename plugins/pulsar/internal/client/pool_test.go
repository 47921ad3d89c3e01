// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

const anyTopic = "persistent://a/b/c"

// found is what Broker has returned.
type found struct {
	conn *Conn
	err  error
}

// looksUp has a subject look up a topic.
func looksUp(t *testing.T, s *subject) <-chan found {
	t.Helper()
	c := make(chan found, 1)
	go func() {
		conn, err := s.Broker(t.Context(), anyTopic)
		c <- found{conn, err}
	}()
	return c
}

// linked has connected to a server, and returns the link as that has it.
func linked(t *testing.T, srv *server, s *subject) *peer {
	t.Helper()
	c := make(chan *peer, 1)
	go func() { c <- srv.admit() }()
	s.connected(t)
	return within(t, "the link", c)
}

// A broker may send to another one, which is then told on whose word it is asked.
func TestLookupRedirects(t *testing.T) {
	srv, second, third := serve(t), serve(t), serve(t)
	s := subjectOf(t, Config{Address: srv.address(), ListenerName: "outside", Token: core.NewSecret("hush")})
	link := linked(t, srv, s)
	result := looksUp(t, s)
	for i, hop := range []struct {
		from          *server
		to            *server
		authoritative bool // it is asked so
	}{{srv, second, false}, {second, third, true}, {third, second, false}, {second, third, true}} {
		p := link
		if i == 1 || i == 2 { // later it is there already
			p = hop.from.accept()
			if b := p.expect(wire.TypeConnect); !strings.Contains(string(b), "hush") || words(b, 6) != "" {
				t.Errorf("hop %d: no token, or a proxy, in %q", i, b)
			}
			p.send(connected(1000))
			if i == 1 {
				link = p
			}
		}
		b := p.expect(wire.TypeLookup)
		if words(b, 1) != anyTopic || number(b, 3) != map[bool]int64{true: 1}[hop.authoritative] || words(b, 7) != "outside" {
			t.Errorf("hop %d asks %q", i, b)
		}
		kind := int64(0)
		if i == 3 {
			kind = 1
		}
		p.send(located(number(b, 2), kind, "pulsar://"+hop.to.host(), i%2 == 0, false))
	}
	got := within(t, "the broker", result)
	if got.err != nil || got.conn.host != third.host() || got.conn.MaxMessageSize() != 1000 {
		t.Errorf("got %v, %v; want a connection to the third", got.conn, got.err)
	}
}

// Behind a proxy a broker is reached by the proxy, which is told which one it is for.
func TestLookupThroughProxy(t *testing.T) {
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address()})
	link := linked(t, srv, s)
	result := looksUp(t, s)
	link.send(located(number(link.expect(wire.TypeLookup), 2), 1, "pulsar://broker-7.inside:6650", true, true))
	p := srv.accept()
	if b := p.expect(wire.TypeConnect); words(b, 6) != "broker-7.inside:6650" {
		t.Errorf("no broker is named in %q", b)
	}
	p.send(connected(0))
	got := within(t, "the broker", result)
	if got.err != nil || got.conn.host != srv.host() || got.conn.MaxMessageSize() != defaultMaxMessage {
		t.Fatalf("got %v, %v; want a connection through the proxy", got.conn, got.err)
	}
	result = looksUp(t, s)
	link.send(located(number(link.expect(wire.TypeLookup), 2), 1, "pulsar://broker-8.inside:6650", true, true))
	p = srv.accept()
	p.expect(wire.TypeConnect)
	p.send(refusal(-1, wire.AuthorizationError, "not that one"))
	err := within(t, "the answer", result).err
	if f := Explain("subscribe", err); f.Code != core.FaultDenied || !f.Transient || !strings.Contains(f.Error(), srv.host()+": AuthorizationError: not that one") {
		t.Errorf("got %v; want a denied one that passes", f)
	}
	if s.Err() != nil {
		t.Errorf("the client has ended: %v", s.Err())
	}
}

// Answers of which nothing can be made fail the lookup, and nothing is dialed.
func TestLookupAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		answer    func(request int64) []byte
		code      core.FaultCode
		transient bool
		want      string
	}{
		"no address": {func(n int64) []byte { return located(n, 1, "", true, false) }, core.FaultUnavailable, true, "no address for pulsar://"},
		"with TLS":   {func(n int64) []byte { return located(n, 1, "pulsar+ssl://127.0.0.1:1", true, false) }, core.FaultUnavailable, true, "of no use"},
		"several":    {func(n int64) []byte { return located(n, 1, "pulsar://127.0.0.1:1,127.0.0.1:2", true, false) }, core.FaultUnavailable, true, "of no use"},
		"no URL":     {func(n int64) []byte { return located(n, 1, "\x00\x1b[31m", true, false) }, core.FaultUnavailable, true, "of no use"},
		"refused": {func(n int64) []byte {
			return frame(wire.TypeLookupResponse, text(varints(-1, -1, 2, n, -1, 11), 7, "gone"))
		}, core.FaultNotFound, false, "TopicNotFound: gone"},
		"an error":       {func(n int64) []byte { return refusal(n, wire.AuthorizationError, "no") }, core.FaultDenied, false, "AuthorizationError: no"},
		"another answer": {func(n int64) []byte { return frame(wire.TypeSuccess, varints(n)) }, core.FaultUnavailable, true, "SUCCESS came in place of LOOKUP_RESPONSE"},
		"silence":        {nil, core.FaultTimeout, true, "no answer within 50ms"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t)
			limit := patience
			if tt.answer == nil {
				limit = 50 * time.Millisecond
			}
			s := subjectOf(t, Config{Address: srv.address(), OperationTimeout: limit})
			link := linked(t, srv, s)
			result := looksUp(t, s)
			n := number(link.expect(wire.TypeLookup), 2)
			if tt.answer != nil {
				link.send(tt.answer(n))
			}
			f := Explain("subscribe", within(t, "the answer", result).err)
			if f.Code != tt.code || f.Transient != tt.transient || !strings.Contains(f.Error(), tt.want) {
				t.Errorf("got %d, transient %t: %v; want %d, %t with %q", f.Code, f.Transient, f, tt.code, tt.transient, tt.want)
			}
		})
	}
}

// Brokers that send to each other for ever are given up.
func TestLookupRedirectsForEver(t *testing.T) {
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address()})
	link := linked(t, srv, s)
	result := looksUp(t, s)
	p := link
	for i := range maxRedirects + 1 {
		p.send(located(number(p.expect(wire.TypeLookup), 2), 0, "pulsar://"+srv.host(), false, false))
		if i == 0 {
			p = srv.admit()
		}
	}
	if err := within(t, "the answer", result).err; !errors.Is(err, errRedirects) {
		t.Errorf("got %v; want %v", err, errRedirects)
	}
}

// All who want a broker have one connection, or as many as are set in turn, and while it
// is not there one try; nobody is kept waiting by others.
func TestPool(t *testing.T) {
	for _, slots := range []int{1, 3} {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			srv, broker := serve(t), serve(t)
			s := subjectOf(t, Config{Address: srv.address(), Connections: slots, OperationTimeout: patience})
			link := linked(t, srv, s)
			const wanted = 12
			var results []<-chan found
			for range wanted {
				results = append(results, looksUp(t, s))
			}
			for range wanted {
				link.send(located(number(link.expect(wire.TypeLookup), 2), 1, "pulsar://"+broker.host(), true, false))
			}
			for range slots {
				broker.admit()
			}
			conns := make(map[*Conn]int)
			for _, r := range results {
				got := within(t, "a connection", r)
				if got.err != nil {
					t.Fatal(got.err)
				}
				conns[got.conn]++
			}
			for _, n := range conns {
				if len(conns) != slots || n != wanted/slots {
					t.Errorf("the connections are had by %v; want %d of the same", conns, slots)
				}
			}
		})
	}
	srv, broker := serve(t), serve(t)
	s := subjectOf(t, Config{Address: srv.address()})
	link := linked(t, srv, s)
	one, two := looksUp(t, s), looksUp(t, s)
	for range 2 {
		link.send(located(number(link.expect(wire.TypeLookup), 2), 1, "pulsar://"+broker.host(), true, false))
	}
	p := broker.accept()
	p.expect(wire.TypeConnect)
	eventually(t, "both wait", func() bool {
		s.pool.mu.Lock()
		defer s.pool.mu.Unlock()
		return s.pool.wanted[target{broker: broker.host()}] == 2
	})
	p.nc.Close()
	for _, r := range []<-chan found{one, two} {
		err := within(t, "the answer", r).err
		if e, ok := errors.AsType[*ConnectError](err); !ok || e.Host != broker.host() || !errors.Is(err, errLost) {
			t.Errorf("got %v; want that the broker was not connected to", err)
		}
	}
	eventually(t, "the try is over", func() bool { s.pool.mu.Lock(); defer s.pool.mu.Unlock(); return len(s.pool.conns) == 0 })
}

// While the client is down nothing is looked up, and when it is closed all connections
// end at once, those that are being made too.
func TestBrokerWithoutLink(t *testing.T) {
	srv, broker := serve(t), serve(t)
	s := subjectOf(t, Config{Address: srv.address()})
	if _, err := s.Broker(t.Context(), anyTopic); !errors.Is(err, errDown) {
		t.Errorf("before the start: %v; want %v", err, errDown)
	}
	c, link, p := brokerOf(t, srv, s)
	in := consumer{heard: newHeard()}
	c.Consumer(in)
	result := looksUp(t, s)
	link.send(located(number(link.expect(wire.TypeLookup), 2), 1, "pulsar://"+broker.host(), true, false))
	other := broker.accept()
	other.expect(wire.TypeConnect)
	began := time.Now()
	s.mustClose(t)()
	if took := time.Since(began); took > patience/10 {
		t.Errorf("closing took %v", took)
	}
	other.gone()
	p.gone()
	if err := within(t, "the answer", result).err; err == nil || !strings.Contains(err.Error(), "connect to "+broker.host()) {
		t.Errorf("got %v", err)
	}
	same(t, "the consumer", in.now(), "lost: connection to "+srv.host()+" lost: the client is closed")
	if _, err := s.Broker(t.Context(), anyTopic); !errors.Is(err, errDown) {
		t.Errorf("when it is closed: %v; want %v", err, errDown)
	}
}
