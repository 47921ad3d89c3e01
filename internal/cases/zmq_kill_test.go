// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/interop/libzmq"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// killPlugin ends the process of an endpoint's plugin as kill -9 does.
func killPlugin(t *testing.T, s *service, endpoint string) {
	t.Helper()
	if err := syscall.Kill(s.pid(endpoint), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// Cap, copies and dead letters work together on one bound queue while its plugin,
// or that of the dead letters, is killed again and again under load (D4): no
// message is handled beyond its cap, the port stays the same, and what is not a
// dead letter in the end was lost with a process.
func TestKillsUnderRetries(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{"in", "dead"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			const n, kills = 4000, 4
			far := libzmq.Start(t)
			graves := far.Open("PULL", libzmq.Options{Bind: []string{"tcp://127.0.0.1:*"}})
			s := newService(t, host.WithRestartBackoff(20*time.Millisecond, 100*time.Millisecond), host.WithBreaker(100, time.Minute))
			in, dead := s.zmq("in", bound(settings.PatternQueue, anyPort)), s.zmq("dead", dialing(settings.PatternQueue, graves.Address()))
			var beyond atomic.Int64
			runs := s.notes(in.Subscription("jobs"), func(m *host.Message[[]byte]) error {
				if m.Attempt() > 3 {
					beyond.Add(1)
				}
				return host.Retry(nil)
			}, host.MaxAttempts(3), host.DeadLetterTo(dead.To("graves")), host.Workers(4))
			s.serve()
			address := s.at(in)
			push := libzmq.Start(t).Open("PUSH", libzmq.Options{Connect: []string{address}})
			for i := range n {
				push.Send("jobs", "", fmt.Sprintf("m%04d", i))
				if i%(n/kills) == n/kills/2 {
					eventually(t, "some have run", func() bool { all, _ := runs.total(); return all > i/2 })
					killPlugin(t, s, victim)
				}
			}
			eventually(t, "the last one has run three times", func() bool { return runs.runs(fmt.Sprintf("m%04d", n-1)) == 3 })
			eventually(t, "nothing is in work", func() bool { return s.counters("jobs").InWork == 0 })
			if got := s.at(in); got != address {
				t.Errorf("it listens at %s now, and did at %s", got, address)
			}
			c := s.counters("jobs")
			least := 0
			if victim == "dead" {
				least = n - kills*64 - int(c.Lost)
			}
			came := map[string]int{}
			for _, m := range frames(append(graves.Receive(max(0, least)), graves.Rest()...)) {
				came[m[2]]++
			}
			_, distinct := runs.total()
			t.Logf("%d of %d were handled, %d dead letters came; %+v", distinct, n, len(came), c)
			doubled := 0
			for _, k := range came {
				if k > 1 {
					doubled++
				}
			}
			if beyond.Load() > 0 || doubled > 0 && victim == "in" {
				t.Errorf("%d runs beyond the cap, %d dead letters twice", beyond.Load(), doubled)
			}
			if victim == "dead" && (distinct != n || len(came) < least) {
				t.Errorf("%d were handled and %d dead letters came, of %d", distinct, len(came), n)
			}
			for _, l := range s.log.having("WARN", "plugin process ended") {
				if !strings.Contains(l.text("how"), "killed") {
					t.Errorf("a plugin ended by itself: %v", l)
				}
			}
			s.stop()
			_ = s.ends()
		})
	}
}

// The host is killed while copies wait in its memory, in its own queue, and on
// their way to another service: what another process had is there once, and the
// next host goes on.
func TestHostIsKilledWithCopies(t *testing.T) {
	t.Parallel()
	far := libzmq.Start(t)
	pull := far.Open("PULL", libzmq.Options{Bind: []string{"tcp://127.0.0.1:*"}})
	address := freeAddress(t)
	c := childConfig{
		Endpoints: []childEndpoint{
			{Name: "in", Plugin: "zmq", Path: zmqPlugin(t), Settings: bound(settings.PatternQueue, address)},
			{Name: "other", Plugin: "zmq", Path: zmqPlugin(t), Settings: dialing(settings.PatternQueue, pull.Address())},
		},
		Subscriptions: []childSubscription{{From: "in", Name: "jobs", Cap: 2, RetryTo: "again@other"}},
	}
	const rounds, each = 3, 300
	sent := 0
	for range rounds {
		p := startChild(t, c, inFolder(socketFolder(t)))
		p.next("ready")
		push := far.Open("PUSH", libzmq.Options{Connect: []string{address}})
		push.Sees("HANDSHAKE_SUCCEEDED")
		for i := range each {
			push.Send("jobs", "", fmt.Sprintf("retry %d", sent+i))
		}
		for range each / 2 {
			p.next("run")
		}
		p.kill()
		sent += each
		push.Close()
	}
	came := map[string]int{}
	for _, m := range frames(pull.Rest()) {
		came[m[2]]++
		if m[1] != "x-ruststream-retry-count: 1" {
			t.Errorf("a copy has the headers %q", m[1])
		}
	}
	for m, n := range came {
		if n > 1 {
			t.Errorf("the copy of %s came %d times", m, n)
		}
	}
	if len(came) < rounds*each/4 {
		t.Errorf("%d copies of %d came", len(came), sent)
	}
}

// The host is ready when the peer that it dials is there, however late, and says
// until then what it waits for. An optional endpoint whose address is taken does
// not keep the others from serving.
func TestPeersThatComeLate(t *testing.T) {
	t.Parallel()
	address, taken := freeAddress(t), newService(t)
	s := newService(t)
	in := s.zmq("in", dialing(settings.PatternQueue, address))
	runs := s.notes(in.Subscription("jobs"), acks, s.elsewhere())
	s.serves()
	eventually(t, "the health says what is missing", func() bool {
		for _, e := range s.Health().Endpoints {
			if e.Name == "in" && strings.Contains(e.Reason, address) {
				return true
			}
		}
		return false
	})
	if s.Ready() {
		t.Error("it is ready")
	}
	push := libzmq.Start(t).Open("PUSH", libzmq.Options{Bind: []string{address}})
	push.Send("jobs", "", "x")
	eventually(t, "it is ready", s.Ready)
	eventually(t, "x has run", func() bool { return runs.runs("x") == 1 })
	s.stops()

	first := taken.zmq("in", bound(settings.PatternQueue, freeAddress(t)))
	taken.notes(first.Subscription("jobs"), acks)
	taken.serve()
	o := newService(t, host.WithRestartBackoff(20*time.Millisecond, 200*time.Millisecond), host.WithBreaker(1000, time.Minute))
	opt := o.Endpoint("optional", host.Plugin{Name: "zmq", Path: zmqPlugin(t), Optional: true}, bound(settings.PatternQueue, taken.at(first)))
	o.notes(opt.Subscription("jobs"), acks)
	other := o.zmq("other", bound(settings.PatternQueue, anyPort))
	more := o.notes(other.Subscription("jobs"), acks)
	o.serves()
	libzmq.Start(t).Open("PUSH", libzmq.Options{Connect: []string{o.at(other)}}).Send("jobs", "", "x")
	eventually(t, "the other endpoint serves", func() bool { return more.runs("x") == 1 })
	if e := o.Health().Endpoints[0]; o.Ready() || !strings.Contains(e.Reason, taken.at(first)) {
		t.Errorf("ready %v, %q", o.Ready(), e.Reason)
	}
	taken.stops()
	eventually(t, "the address is free and taken", o.Ready)
	o.stops()
}

// Publishes that wait for a peer when the service stops are told, none of them as
// perhaps sent: the stop waits for their receipts, as long as they wait for a peer.
func TestStopWithPublishesThatWaitForAPeer(t *testing.T) {
	t.Parallel()
	s := newService(t)
	out := s.zmq("out", dialing(settings.PatternQueue, freeAddress(t)))
	jobs := s.to(out, "jobs")
	s.serves()
	const n = 20
	var pending []*host.Pending
	for range n {
		p, err := jobs.PublishAsync(t.Context(), []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, p)
	}
	began := time.Now()
	s.stop()
	err := s.ends()
	if took := time.Since(began); took > 5*time.Second+late {
		t.Errorf("the stop took %v", took)
	}
	for _, p := range pending {
		var e *host.PublishError
		if _, err := p.Receipt(t.Context()); !errors.As(err, &e) || e.MaybeSent {
			t.Errorf("got %v", err)
		}
	}
	if err != nil {
		t.Errorf("the stop came to %v", err)
	}
}

// A header of 64 KiB, and one that no line can carry: the former travels on
// copies and dead letters as it is, the latter goes onto the dead letter encoded,
// and is no reason to lose it (D26).
func TestOddHeadersOnDeadLetters(t *testing.T) {
	t.Parallel()
	far := libzmq.Start(t)
	graves := far.Open("PULL", libzmq.Options{Bind: []string{"tcp://127.0.0.1:*"}})
	s := newService(t)
	in, dead := s.zmq("in", bound(settings.PatternQueue, anyPort)), s.zmq("dead", dialing(settings.PatternQueue, graves.Address()))
	long := strings.Repeat("v", 64<<10)
	spoil := func(next host.Next) host.Next {
		return func(ctx context.Context, m host.Incoming) error {
			if string(m.Payload()) == "odd" {
				m.Headers()[0] = core.Header{Name: "x-odd", Value: []byte("two\nlines")}
			}
			return next(ctx, m)
		}
	}
	runs := s.notes(in.Subscription("jobs"), func(*host.Message[[]byte]) error { return host.DeadLetter(nil) },
		host.DeadLetterTo(dead.To("graves")), host.Middleware(spoil))
	s.serve()
	push := far.Open("PUSH", libzmq.Options{Connect: []string{s.at(in)}})
	push.Send("jobs", "x-long: "+long, "long")
	push.Send("jobs", "a: b", "odd")
	got := frames(graves.Receive(2))
	if !strings.Contains(got[0][1], "x-long: "+long) || got[0][2] != "long" {
		t.Errorf("the long header is not on the dead letter of %s, %d bytes", got[0][2], len(got[0][1]))
	}
	if !strings.Contains(got[1][1], "x-longshore-headers: ") || strings.Contains(got[1][1], "two\nlines") || got[1][2] != "odd" {
		t.Errorf("dead letter %q", got[1])
	}
	if n, _ := runs.total(); n != 2 {
		t.Errorf("%d runs", n)
	}
	s.stops()
}
