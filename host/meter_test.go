// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

// gauge is a meter that writes down what it is told.
type gauge struct {
	tale
	began time.Time
	bad   bool // it panics once it has written
}

func (g *gauge) told(format string, args ...any) {
	g.add(format, args...)
	if g.bad {
		panic("out of range")
	}
}

func (g *gauge) Handled(e host.HandledEvent) {
	g.told("handled %s/%s attempt %d: %v %v: waited %v, took %v", e.Endpoint, e.Subscription, e.Attempt, e.Outcome.Kind, e.Err, e.Waited, e.Took)
}

func (g *gauge) Settled(e host.SettledEvent) {
	if e.OverCap {
		g.told("settled %s/%s attempt %d: over its cap: %v, lost %v, took %v", e.Endpoint, e.Subscription, e.Attempt, e.Result, e.Lost, e.Took)
		return
	}
	g.told("settled %s/%s attempt %d: %v %v: %v, lost %v, took %v", e.Endpoint, e.Subscription, e.Attempt, e.Outcome.Kind, e.Err, e.Result, e.Lost, e.Took)
}

func (g *gauge) Published(e host.PublishedEvent) {
	g.told("published %v for %s: %s %v, %d bytes, took %v", e.To, e.Purpose, e.Receipt, e.Err, min(e.Bytes, 10), e.Took)
}

func (g *gauge) EndpointChanged(e host.EndpointEvent) {
	g.told("%s(%d) %s since %v %s", e.Endpoint, e.Generation, e.State, e.Since.Sub(g.began), e.Reason)
}

func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gauge{began: time.Now()}
		q := newQueues()
		s := newService(host.WithMeter(g), host.WithRestartBackoff(time.Second, time.Second))
		in := attach(s.Host, "in", q)
		p := host.To[[]byte](s.Host, in.To("done"))
		host.Handle(in.Subscription("orders"), func(ctx context.Context, m *host.Message[[]byte]) error {
			time.Sleep(time.Second)
			switch string(m.Value) {
			case "bad":
				return errors.New("no stock")
			case "panic":
				panic("boom")
			}
			_, err := p.Publish(ctx, m.Value)
			return err
		}, host.MaxAttempts(2), host.DeadLetterTo(in.To("dead")), host.OnPanic(host.AsDrop))
		s.run(t)
		synctest.Wait()
		q.put("orders", "good", "bad", "panic")
		time.Sleep(10 * time.Second)
		s.Crash("in")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
		want := []string{
			"handled in/orders attempt 1: ack <nil>: waited 0s, took 1s",
			"handled in/orders attempt 1: drop handler panicked: boom: waited 2s, took 1s",
			"handled in/orders attempt 1: retry no stock: waited 1s, took 1s",
			"handled in/orders attempt 2: retry no stock: waited 1s, took 1s",
			"in(1) restarting since 10s " + crashed(1),
			"in(1) up since 0s ",
			"in(2) stopped since 20s ",
			"in(2) up since 11s ",
			"published dead@in for dead letter: confirmed <nil>, 10 bytes, took 0s",
			"published done@in for application: confirmed <nil>, 4 bytes, took 0s",
			"published orders@in for retry: confirmed <nil>, 10 bytes, took 0s",
			"settled in/orders attempt 1: ack <nil>: acked, lost false, took 1s",
			"settled in/orders attempt 1: drop handler panicked: boom: dropped, lost false, took 3s",
			"settled in/orders attempt 1: retry no stock: retried, lost false, took 2s",
			"settled in/orders attempt 2: retry no stock: dead-lettered, lost false, took 2s",
		}
		if d := cmp.Diff(want, g.all()); d != "" {
			t.Errorf("told (-want +got):\n%s", d)
		}
	})
}

// What never comes to a handler is told as well: a delivery over its cap, a
// message that cannot be read, and a publish to an endpoint that is down.
func TestMeterWithoutARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gauge{began: time.Now()}
		q, far := counting(), newQueues()
		s := newService(host.WithMeter(g), host.WithRestartBackoff(time.Hour, time.Hour))
		in := attach(s.Host, "in", q)
		p := host.To[[]byte](s.Host, attach(s.Host, "far", far).To("x"))
		host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[struct{}]) error { return nil }, host.MaxAttempts(2))
		s.run(t)
		synctest.Wait()
		q.mu.Lock()
		x := q.queue("orders")
		x.ready = append(x.ready, &item{m: core.Message{Name: "orders", Payload: []byte("{}")}, count: 7})
		q.mu.Unlock()
		q.put("orders", "no JSON")
		s.Crash("far")
		synctest.Wait()
		if _, err := p.Publish(t.Context(), []byte("one")); !errors.Is(err, host.ErrEndpointDown) {
			t.Errorf("got %v", err)
		}
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
		var got []string
		for _, line := range g.all() {
			if line[0] != 'i' && line[:3] != "far" {
				got = append(got, line)
			}
		}
		want := []string{
			"handled in/orders attempt 1: drop decode JSON payload of 7 bytes: invalid character 'o' in literal null (expecting 'u'): waited 0s, took 0s",
			"published x@far for application: refused endpoint \"far\" is down, 3 bytes, took 0s",
			"settled in/orders attempt 1: drop decode JSON payload of 7 bytes: invalid character 'o' in literal null (expecting 'u'): dropped, lost false, took 0s",
			"settled in/orders attempt 8: over its cap: dropped, lost false, took 0s",
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("told (-want +got):\n%s", d)
		}
	})
}

// A meter that panics is told of once a minute, and stops nothing.
func TestMeterThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gauge{began: time.Now(), bad: true}
		q := newQueues()
		s := newService(host.WithMeter(g))
		in := attach(s.Host, "in", q)
		host.Handle(in.Subscription("orders"), acks, host.Forward(in.To("done")))
		s.run(t)
		for i := range 3 {
			q.put("orders", fmt.Sprint(i))
			time.Sleep(40 * time.Second)
		}
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
		if d := cmp.Diff([]string{"ack 0", "ack 1", "ack 2"}, q.verdicts("orders")); d != "" {
			t.Errorf("verdicts (-want +got):\n%s", d)
		}
		if lines := s.log.lines("level=ERROR", "meter panicked", `panic="out of range"`, "stack="); len(lines) != 2 || !strings.Contains(lines[1], "count=7") { // at 0 and 80 s
			t.Errorf("%d lines: %v", len(lines), lines)
		}
	})
}

func TestMeterAndTracerRefuseNil(t *testing.T) {
	s := newService(host.WithMeter(nil), host.WithTracer(nil))
	attach(s.Host, "in", newQueues())
	if d := cmp.Diff([]string{": WithMeter", ": WithTracer"}, options(startError(t, s))); d != "" {
		t.Errorf("findings (-want +got):\n%s", d)
	}
}
