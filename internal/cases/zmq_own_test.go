// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/interop/libzmq"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// A handler publishes two messages to its own queue for each that it gets. Past
// the bound publishes are refused as exhausted, for now and never sent; no worker
// stands still, and when the growth ends all that was taken is handled.
func TestOwnPublishesThatGrow(t *testing.T) { // alone, since it takes all there is of the machine
	for _, workers := range []int{1, 16} {
		payload := make([]byte, 1) // the bound is in messages
		if workers > 1 || raceEnabled {
			payload = make([]byte, 64<<10) // in bytes
		}
		s := newService(t)
		in := s.zmq("in", bound(settings.PatternQueue, anyPort))
		own := s.to(in, "jobs")
		var handled, taken, refused, odd atomic.Int64
		var stop atomic.Bool
		host.Handle(in.Subscription("jobs"), func(ctx context.Context, _ *host.Message[[]byte]) error {
			for range 2 {
				if stop.Load() {
					break
				}
				_, err := own.Publish(ctx, payload)
				var f *core.Fault
				switch e := new(host.PublishError); {
				case err == nil:
					taken.Add(1)
				case errors.As(err, &f) && f.Code == core.FaultExhausted && f.Transient && errors.As(err, &e) && !e.MaybeSent:
					refused.Add(1)
				default:
					t.Errorf("got %v", err)
					odd.Add(1)
				}
			}
			handled.Add(1)
			return nil
		}, host.Workers(workers))
		s.serve()
		libzmq.Start(t).Open("PUSH", libzmq.Options{Connect: []string{s.at(in)}}).Send("jobs", "", "x")
		eventually(t, "publishes are refused", func() bool { return refused.Load() > 100 || odd.Load() > 0 })
		before := handled.Load()
		eventually(t, "workers go on", func() bool { return handled.Load() > before+100 })
		stop.Store(true)
		eventually(t, "all are handled", func() bool { return handled.Load() == taken.Load()+1 })
		s.stops()
		if handled.Load() != taken.Load()+1 {
			t.Errorf("%d handled, %d taken", handled.Load(), taken.Load())
		}
	}
}

// What a handler holds back for its own queue leaves when it has returned nil,
// and only then.
func TestOwnPublishWith(t *testing.T) {
	t.Parallel()
	s := newService(t)
	in := s.zmq("in", bound(settings.PatternQueue, anyPort))
	own := s.to(in, "jobs")
	runs := s.notes(in.Subscription("jobs"), func(m *host.Message[[]byte]) error {
		switch string(m.Value) {
		case "first":
			if err := own.PublishWith(m, []byte("second")); err != nil {
				return err
			}
		case "bad":
			if err := own.PublishWith(m, []byte("never")); err != nil {
				return err
			}
			return host.Drop(nil)
		}
		return nil
	}, host.Publishes(own))
	s.serve()
	push := libzmq.Start(t).Open("PUSH", libzmq.Options{Connect: []string{s.at(in)}})
	push.Send("jobs", "", "bad")
	push.Send("jobs", "", "first")
	eventually(t, "the second has run", func() bool { return runs.runs("second") == 1 })
	s.stops()
	if runs.runs("never") > 0 {
		t.Error("what was held back for a message that was dropped has left")
	}
}

// Forward passes on what it gets, from queue to queue, without the counts of this
// service; one that nobody takes is a retry of the delivery.
func TestForwardFromQueueToQueue(t *testing.T) {
	t.Parallel()
	s := newService(t)
	in, far := s.zmq("in", bound(settings.PatternQueue, anyPort)), libzmq.Start(t)
	pull := far.Open("PULL", libzmq.Options{Bind: []string{"tcp://127.0.0.1:*"}})
	set := dialing(settings.PatternQueue, pull.Address())
	set.PeerWait = core.Duration(100 * time.Millisecond)
	out := s.zmq("out", set)
	runs := s.notes(in.Subscription("jobs"), acks, host.Forward(out.To("done")), host.MaxAttempts(3))
	s.serve()
	push := far.Open("PUSH", libzmq.Options{Connect: []string{s.at(in)}})
	push.Send("jobs", "X-Tenant: acme\nx-ruststream-retry-count: 1\nx-longshore-attempts: 4", "one")
	if got := frames(pull.Receive(1)); got[0][0] != "done" || got[0][1] != "X-Tenant: acme" || got[0][2] != "one" {
		t.Errorf("forwarded %q", got)
	}
	pull.Close()
	eventually(t, "the loss is seen", func() bool { return len(s.log.having("WARN", "no connection")) == 1 })
	push.Send("jobs", "", "two")
	eventually(t, "two has run three times", func() bool { return runs.runs("two") == 3 && s.counters("jobs").InWork == 0 })
	if n := len(s.log.of("L-CAP-RJ", "jobs")); n != 1 {
		t.Errorf("%d lines of L-CAP-RJ", n)
	}
	if e := s.log.of("L-ERR", "jobs"); len(e) == 0 || !strings.Contains(e[0].text("error"), "no connected peer") {
		t.Errorf("lines of L-ERR: %v", e)
	}
	s.stops()
}

// A dead letter to a fan-out that nobody reads is lost there: it is told, and
// counted as lost. A subscriber gets the next one.
func TestDeadLetterNobodyReads(t *testing.T) {
	t.Parallel()
	s := newService(t)
	in, news := s.zmq("in", bound(settings.PatternQueue, anyPort)), s.zmq("news", bound(settings.PatternFanOut, anyPort))
	runs := s.notes(in.Subscription("jobs"), func(*host.Message[[]byte]) error { return host.Retry(nil) },
		host.MaxAttempts(1), host.DeadLetterTo(news.To("graves")))
	s.serve()
	far := libzmq.Start(t)
	push := far.Open("PUSH", libzmq.Options{Connect: []string{s.at(in)}})
	push.Send("jobs", "", "one")
	eventually(t, "it has run", func() bool { return runs.runs("one") == 1 && s.counters("jobs").InWork == 0 })
	if c := s.counters("jobs"); c.Lost != 1 {
		t.Errorf("counters %+v", c)
	}
	if lines := s.log.of("L-UNR", "jobs"); len(lines) != 1 || lines[0].text("destination") != "graves@news" {
		t.Errorf("lines of L-UNR: %v", lines)
	}
	sub := far.Open("SUB", libzmq.Options{Connect: []string{s.at(news)}, Subscribe: []string{"graves"}})
	probe := 0
	eventually(t, "it has subscribed", func() bool {
		probe++
		lost := s.counters("jobs").Lost
		push.Send("jobs", "", "probe")
		eventually(t, "it has run", func() bool { return runs.runs("probe") == probe && s.counters("jobs").InWork == 0 })
		return s.counters("jobs").Lost == lost
	})
	if got := frames(sub.Receive(1)); got[0][0] != "graves" || got[0][2] != "probe" {
		t.Errorf("received %q", got)
	}
	s.stops()
}
