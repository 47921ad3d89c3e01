// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/pulsarbroker"
	"github.com/longshore-go/longshore/internal/pulsarbroker/proxy"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// When the broker sends a consumer away, what is not acked comes again in a new epoch,
// behind a batch that says so; what is acked does not.
func TestUnloadedTopicComesBack(t *testing.T) {
	t.Parallel()
	for _, typ := range []wire.SubscriptionType{wire.Shared, wire.Exclusive, wire.Failover, wire.KeyShared} {
		t.Run(typeName(typ), func(t *testing.T) {
			t.Parallel()
			b := broker.Broker(t)
			n := parsed(t, name(t))
			cfg := config(connected(t, b), "s", n)
			cfg.Type = typ
			f := opened(t, cfg)
			f.ack.Store(false)
			p := producer(t, raw(t, b), n.String())
			publish(t, p, "m", 4)
			eventually(t, "the messages", func() bool { return f.got("m") == 4 })
			f.mu.Lock()
			part := f.from["m0"]
			before := part.epoch.Load()
			var acked []wire.Message
			for _, m := range f.held { // a consumer that becomes the active one may get them twice
				if p := string(m.Payload); p == "m0" || p == "m1" {
					acked = append(acked, m)
				}
			}
			f.mu.Unlock()
			if err := part.Ack(whole(acked...)); err != nil {
				t.Fatal(err)
			}
			// An answer says that the broker has the acks, not that it has written them down.
			eventually(t, "the acks, on the broker's disk", func() bool { return written(b, n, "s") })
			b.Unload(n.String())
			eventually(t, "what is not acked", func() bool { return f.epoch("m2") > before && f.epoch("m3") > before })
			if err := part.Await(t.Context()); err != nil {
				t.Fatal(err)
			}
			backs := f.markers(func(b *Batch) bool { return b.Back && b.Partition == part && b.Epoch > before })
			if backs != 1 {
				t.Errorf("%d batches say that the partition is back, want 1", backs)
			}
			publish(t, p, "later-", 1)
			eventually(t, "a later message", func() bool { return f.got("later-") == 1 })
			if f.epoch("m0") > before || f.epoch("m1") > before {
				t.Error("acked messages came again")
			}
		})
	}
}

// written reports whether the broker has written down what a subscription has acked: it
// makes a ledger for that with the first of it.
func written(b *pulsarbroker.Broker, n topic.Name, subscription string) bool {
	var st struct {
		Cursors map[string]struct {
			LastEntry int64 `json:"cursorLedgerLastEntry"`
			Ledger    int64 `json:"cursorLedger"`
		} `json:"cursors"`
	}
	path := "persistent/" + n.NamespacePath() + "/" + n.Local + "/internalStats"
	if err := b.TryAdmin(http.MethodGet, path, nil, &st); err != nil {
		return false
	}
	c, ok := st.Cursors[subscription]
	return ok && c.Ledger >= 0 && c.LastEntry >= 0
}

func typeName(typ wire.SubscriptionType) string {
	return [...]string{"Exclusive", "Shared", "Failover", "KeyShared"}[typ]
}

// The broker is killed and started again: all that was published is read, and what was
// acked before is not read again where the broker has it.
func TestBrokerKilledAndBack(t *testing.T) {
	t.Parallel()
	b := pulsarbroker.Start(t, broker.Config)
	n := name(t)
	b.CreatePartitioned("public/default/"+n, 2)
	cfg := config(connected(t, b), "s", parsed(t, n))
	f := opened(t, cfg)
	p := producer(t, raw(t, b), n)
	publish(t, p, "before-", 20)
	eventually(t, "the messages", func() bool { return f.got("before-") == 20 })
	b.Kill()
	b.Start()
	for _, part := range f.all() {
		if err := part.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	publish(t, producer(t, raw(t, b), n), "after-", 20)
	eventually(t, "messages after the kill", func() bool { return f.got("after-") == 20 })
}

// A subscription that may not be read any more ends with the reason.
func TestNoLongerPermitted(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	space := "public/refused"
	b.CreateNamespace(space)
	b.Grant(space, "reader", "consume", "produce")
	n := parsed(t, space+"/orders")
	cfg := config(connectedTo(t, b.URL(), b.Token("reader")), "s", n)
	f := opened(t, cfg)
	if err := f.all()[0].Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Revoke(space, "reader")
	eventually(t, "the end", func() bool {
		b.Unload(n.String())
		select {
		case why := <-f.ended:
			if why.Code != core.FaultDenied || !strings.Contains(why.Message, n.String()) {
				t.Errorf("got %v", why)
			}
			return true
		case <-time.After(time.Second):
			return false
		}
	})
	// Opened anew it is refused at once.
	_, err := tryOpen(t.Context(), t, cfg, quick())
	if why, ok := errors.AsType[*core.Fault](err); !ok || why.Code != core.FaultDenied {
		t.Errorf("opened anew: got %v", err)
	}
}

// The permission for one topic is enough, also to come back to it: the list of the
// namespace's topics is refused then.
func TestPermissionForOneTopic(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	n := parsed(t, name(t))
	b.CreatePartitioned(n.String(), 2)
	b.GrantTopic(n.String(), "narrow", "consume")
	c := connectedTo(t, b.URL(), b.Token("narrow"))
	if _, err := c.Listed(t.Context(), n.NamespacePath()); err == nil {
		t.Fatal("the list of the namespace's topics is not refused")
	}
	f := opened(t, config(c, "s", n))
	for _, p := range f.all() {
		b.Unload(p.Scope)
	}
	eventually(t, "both are back", func() bool { return f.markers(func(b *Batch) bool { return b.Back }) == 2 })
	publish(t, producer(t, raw(t, b), n.String()), "m", 20)
	eventually(t, "the messages", func() bool { return f.got("m") == 20 })
}

// A feed that is not read holds up no other on the same connection.
func TestUnreadFeedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	idle, busy := parsed(t, name(t)), parsed(t, name(t))
	c := connected(t, b)
	peer := raw(t, b)
	p := producer(t, peer, idle.String())
	cfg := config(c, "s", idle)
	f := opened(t, cfg)
	f.pause()
	for i := range 3000 {
		payload := make([]byte, 100)
		p.SendAsync(t.Context(), &pulsar.ProducerMessage{Payload: payload}, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			if err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		})
	}
	if err := p.FlushWithCtx(t.Context()); err != nil {
		t.Fatal(err)
	}
	g := opened(t, config(c, "s", busy))
	publish(t, producer(t, peer, busy.String()), "m", 50)
	eventually(t, "the other's messages", func() bool { return g.got("m") == 50 })
}

// A client that is refused for good, as one is whose token has run out when its
// connections are cut, ends its feeds with the reason, one that is still being opened
// too: nothing would ever come.
func TestRefusedForGood(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	p := proxy.Start(t, b.Address())
	until := time.Now().Add(10 * time.Second)
	soon := b.TokenUntil("admin", until)
	c := connectedTo(t, p.URL(), soon)
	n := parsed(t, name(t))
	f := opened(t, config(c, "s", n))
	holds := opened(t, exclusively(config(connected(t, b), "x", n)))
	waits := make(chan error, 1)
	go func() {
		_, err := tryOpen(t.Context(), t, exclusively(config(c, "x", n)), quick())
		waits <- err
	}()
	publish(t, producer(t, raw(t, b), n.String()), "m", 1)
	eventually(t, "the message", func() bool { return f.got("m") == 1 && holds.got("m") == 1 })
	time.Sleep(time.Until(until))
	for why := (*core.Fault)(nil); why == nil; {
		p.Cut()
		select {
		case why = <-f.ended:
			if why.Code != core.FaultDenied || why.Transient || why.Diagnostics[0].Fix == "" || !strings.Contains(why.Message, `subscription "s"`) || strings.Contains(why.Error(), soon) {
				t.Errorf("it ended with %v", why)
			}
		case <-time.After(time.Second): // the token is good still
		}
	}
	err := within(t, "the end of the other's start", waits)
	if why, ok := errors.AsType[*core.Fault](err); !ok || why.Code != core.FaultDenied || why.Transient {
		t.Errorf("the start ended with %v", err)
	}
}

func exclusively(c Config) Config {
	c.Type = wire.Exclusive
	return c
}

// Acks without an answer are given back soon, to be sent again: the consumer lives, and
// nothing comes a second time.
func TestAcksAreDropped(t *testing.T) {
	t.Parallel()
	for _, typ := range []wire.SubscriptionType{wire.Shared, wire.Exclusive} {
		t.Run(typeName(typ), func(t *testing.T) {
			t.Parallel()
			b := broker.Broker(t)
			p := proxy.Start(t, b.Address())
			n := parsed(t, name(t))
			cfg := config(connectedTo(t, p.URL(), b.Token("admin")), "s", n)
			cfg.Type = typ
			times := quick()
			times.doubt = 3 * time.Second
			f, err := tryOpen(t.Context(), t, cfg, times)
			if err != nil {
				t.Fatal(err)
			}
			f.ack.Store(false)
			publish(t, producer(t, raw(t, b), n.String()), "m", 1)
			eventually(t, "the message", func() bool { return f.got("m") == 1 })
			part, m := f.from["m0"], f.all()[0].current()
			p.Drop(proxy.ToServer, proxy.Ack, 1)
			err = part.Ack(whole(f.held...))
			if why, ok := errors.AsType[*core.Fault](err); !ok || why.Code != core.FaultTimeout || !why.Transient || !strings.Contains(why.Message, n.String()) {
				t.Fatalf("the dropped acks ended with %v", err)
			}
			if err := part.Ack(whole(f.held...)); err != nil {
				t.Fatal(err)
			}
			b.AwaitBacklog(n.String(), "s", 0)
			if part.current() != m || f.count("m0") != 1 {
				t.Errorf("the consumer was made anew, or the message came %d times:\n%s", f.count("m0"), f.log)
			}
		})
	}
}

// A broker that drops acks because it has forgotten their consumer is found out by them,
// long before the next question: the consumer is made anew.
func TestAcksOfForgottenConsumer(t *testing.T) {
	t.Parallel()
	b := broker.Broker(t)
	n := parsed(t, name(t))
	cfg := config(connected(t, b), "s", n)
	cfg.Discovery = never
	times := quick()
	times.doubt = 3 * time.Second
	f, err := tryOpen(t.Context(), t, cfg, times)
	if err != nil {
		t.Fatal(err)
	}
	f.ack.Store(false)
	publish(t, producer(t, raw(t, b), n.String()), "m", 1)
	eventually(t, "the message", func() bool { return f.got("m") == 1 })
	part := f.from["m0"]
	closeBehind(t, part.current())
	if err := part.Ack(whole(f.held...)); err == nil {
		t.Fatal("acks of a consumer that the broker does not know have no error")
	}
	eventually(t, "the message once more", func() bool { return f.count("m0") == 2 })
	if !strings.Contains(f.log.String(), "is made anew") {
		t.Errorf("no line about it:\n%s", f.log)
	}
	if err := part.Ack(whole(f.held...)); err != nil {
		t.Fatal(err)
	}
	b.AwaitBacklog(n.String(), "s", 0)
}

// closeBehind has the broker forget a consumer, behind the back of its feed.
func closeBehind(t *testing.T, m *member) {
	t.Helper()
	_, err := m.conn.Ask(t.Context(), wire.TypeSuccess, func(dst []byte, number uint64) []byte {
		return wire.AppendCloseConsumer(dst, number, m.id)
	})
	if err != nil {
		t.Fatal(err)
	}
}
