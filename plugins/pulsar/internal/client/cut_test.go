// SPDX-License-Identifier: Apache-2.0

package client

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// behind is a client of the shared broker whose connections all go through a proxy, with
// a consumer of a topic.
func behind(t *testing.T, connections int, tune ...func(*Client)) (*subject, *proxy.Proxy, string, *subscribed) {
	t.Helper()
	b := shared.Broker(t)
	name := "persistent://" + ns(t, b) + "/a"
	p := proxy.Start(t, b.Address())
	s := subjectOf(t, Config{Address: addressOf(t, p.URL()), Token: core.NewSecret(b.Token("service")), Connections: connections}, tune...).connected(t)
	r := subscribe(t, s, name, wire.Shared)
	if r.err != nil {
		t.Fatal(r.err)
	}
	return s, p, name, r
}

// isLost waits until a consumer was told that its connection has ended.
func isLost(t *testing.T, r *subscribed, why string) {
	t.Helper()
	within(t, "the end of the connection", r.conn.Done())
	eventually(t, "the consumer hears of it", func() bool {
		told := r.now()
		return len(told) > 0 && strings.HasPrefix(told[len(told)-1], "lost: ") && strings.Contains(told[len(told)-1], why)
	})
}

// Behind a cut the topic is looked up again and served by another connection; what was
// not acked comes again.
func TestCut(t *testing.T) {
	t.Parallel()
	s, p, name, r := behind(t, 1)
	publish(t, s, name, "one")
	within(t, "the message", r.entries)
	p.Cut()
	isLost(t, r, "")
	var again *subscribed
	eventually(t, "the consumer is there again", func() bool {
		again = subscribe(t, s, name, wire.Shared)
		return again.err == nil
	})
	if m := within(t, "the message again", again.entries); string(m.Payload) != "one" {
		t.Errorf("got %q", m.Payload)
	}
}

// A broker from which nothing comes any more ends its connections.
func TestStalled(t *testing.T) {
	t.Parallel()
	s, p, name, r := behind(t, 1, func(c *Client) { c.times.ping, c.times.silence = time.Second, 5*time.Second })
	p.Stall()
	isLost(t, r, "does not answer for 5s")
	p.Resume()
	eventually(t, "the consumer is there again", func() bool { return subscribe(t, s, name, wire.Shared).err == nil })
}

// While no broker answers the client still closes at once.
func TestCloseWhileStalled(t *testing.T) {
	t.Parallel()
	s, p, name, r := behind(t, 1)
	p.Stall()
	asked := make(chan error, 1)
	go func() {
		_, err := s.Broker(t.Context(), name)
		asked <- err
	}()
	eventually(t, "the lookup is under way", func() bool { s.link.mu.Lock(); defer s.link.mu.Unlock(); return len(s.link.asked) > 0 })
	began := time.Now()
	s.mustClose(t)()
	if took := time.Since(began); took > patience/10 {
		t.Errorf("closing took %v", took)
	}
	isLost(t, r, "the client is closed")
	if err := within(t, "the end of the lookup", asked); err == nil {
		t.Error("a closed client has found a broker")
	}
}

// There are as many connections to a broker as are set, beside the link.
func TestConnections(t *testing.T) {
	t.Parallel()
	s, p, name, r := behind(t, 3)
	conns := map[*Conn]bool{r.conn: true}
	for range 8 {
		c, err := s.Broker(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		conns[c] = true
	}
	if len(conns) != 3 || p.Open() != 4 {
		t.Errorf("there are %d connections to the broker, and %d in all; want 3 and 4", len(conns), p.Open())
	}
}
