// SPDX-License-Identifier: Apache-2.0

package hosttest_test

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
	"github.com/longshore-go/longshore/host/hosttest"
)

// bench is a host with one subscription, orders on endpoint in, in a bubble.
type bench struct {
	*hosttest.Broker
	service *hosttest.Service
	seen    []string // payloads, in order
	at      []time.Duration
	began   time.Time
}

// begin starts a host on a source. what is the handler, after seen is written.
func begin(t *testing.T, source core.Capabilities, handle func(m *host.Message[[]byte]) error, rules ...host.Rule) *bench {
	b := &bench{Broker: hosttest.NewBroker(), began: time.Now()}
	h := host.New(b.Replace(), hosttest.Logger(t))
	in := h.Endpoint("in", host.Plugin{Name: "x"}, nil)
	b.Source("orders", source)
	host.Handle(in.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		b.seen = append(b.seen, string(m.Value))
		b.at = append(b.at, time.Since(b.began).Round(time.Millisecond))
		if handle == nil {
			return nil
		}
		return handle(m)
	}, rules...)
	b.service = hosttest.Start(t, h, b.Broker)
	return b
}

// texts delivers payloads.
func (b *bench) texts(payloads ...string) {
	for _, p := range payloads {
		b.Deliver("orders", hosttest.Text(p))
	}
}

// saw asserts what the handler saw.
func (b *bench) saw(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, b.seen); diff != "" {
		t.Errorf("handled (-want +got):\n%s", diff)
	}
}

// said asserts the verdicts.
func (b *bench) said(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := fmt.Sprint(b.Verdicts("orders")); got != "["+strings.Join(want, " ")+"]" {
		t.Errorf("verdicts %s, want %v", got, want)
	}
}

func bubble(t *testing.T, test func(t *testing.T)) { synctest.Test(t, test) }

// What is lost on the way from a queue comes again when the connection ended.
func TestLoseOfAQueueComesBackAfterADisconnect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := begin(t, hosttest.Queue(), nil)
		b.Lose("orders", 1)
		b.texts("one", "two")
		b.service.Wait() // one is not waited for: nothing brings it back by itself
		b.saw(t, "two")
		b.Disconnect(t, "in")
		b.WaitVerdicts(t, "orders", 2)
		b.saw(t, "two", "one")
		b.said(t, "2 ack", "1 ack, attempt 2")
	})
}

// A lease that was lost on the way ends, and its message comes again.
func TestLoseOfALeaseComesBackByTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := begin(t, hosttest.Lease(), nil)
		b.Lose("orders", 1)
		b.texts("one")
		b.service.Wait()
		b.saw(t, "one")
		if b.at[0] != 30*time.Second {
			t.Errorf("it came after %v", b.at[0])
		}
	})
}

// A stream has lost what is lost on the way, and goes on.
func TestLoseOfAStreamIsALoss(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := begin(t, hosttest.Stream(), nil)
		b.Lose("orders", 1)
		b.texts("one", "two")
		b.service.Wait()
		b.saw(t, "two")
	})
}

// A credit that a lost delivery has used up would stop a subscription for ever.
func TestLoseUsesNoCredit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		h := host.New(b.Replace())
		host.Handle(h.Endpoint("in", host.Plugin{Name: "x"}, nil).Subscription("orders", host.Window(1, 0)), acks)
		s := hosttest.Start(t, h, b)
		b.Lose("orders", 3)
		b.Deliver("orders", hosttest.Text("1"), hosttest.Text("2"), hosttest.Text("3"), hosttest.Text("4"))
		s.Wait()
		if got := fmt.Sprint(b.Verdicts("orders")); got != "[4 ack]" {
			t.Error(got)
		}
	})
}

// The host knows nothing of doubles: a handler sees both.
func TestDoubleIsHandledTwice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := begin(t, hosttest.Queue(), nil)
		b.Double("orders", 1)
		b.texts("one", "two")
		b.service.Wait()
		b.saw(t, "one", "one", "two")
		b.said(t, "1 ack", "1 ack", "2 ack")
	})
}

func TestDelayLetsOthersGoAhead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := begin(t, hosttest.Queue(), nil)
		b.Delay("orders", time.Hour, 2)
		b.texts("one", "two", "three")
		b.service.Wait()
		b.saw(t, "three", "one", "two")
		if b.at[1] != time.Hour {
			t.Errorf("one came after %v", b.at[1])
		}
	})
}

func TestReorderTurnsRound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := begin(t, hosttest.Queue(), nil)
		b.Reorder("orders", 3)
		b.texts("one", "two")
		time.Sleep(time.Hour)
		b.saw(t) // it waits for the third
		b.texts("three", "four")
		b.service.Wait()
		b.saw(t, "three", "two", "one", "four")
	})
}

// An ack that fails leaves the delivery with its source (S-GEN-100).
func TestFailedVerdictComesBackAsTheSourceSays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := begin(t, hosttest.Queue(), nil)
		b.FailVerdicts("orders", 1)
		b.texts("one")
		b.service.Wait()
		b.said(t, "1 ack, failed")
		b.Disconnect(t, "in")
		b.WaitVerdicts(t, "orders", 2)
		b.said(t, "1 ack, failed", "1 ack, attempt 2")
		b.saw(t, "one", "one")
	})
}

// alwaysFails is a handler whose failures become dead letters at once.
func alwaysFails(*host.Message[[]byte]) error { return errors.New("no") }

// deadAtOnce is a policy of one attempt.
func deadAtOnce() []host.Rule {
	return []host.Rule{host.MaxAttempts(1), host.DeadLetterTo(core.Destination{Name: "dead"})}
}

// A publish that may succeed later is tried again, off the worker (S-GEN-85).
func TestUnavailablePublishIsTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := begin(t, hosttest.Queue(), alwaysFails, deadAtOnce()...)
		b.FailPublishes("dead", hosttest.Unavailable, 2)
		b.texts("one")
		b.service.Wait()
		b.said(t, "1 ack")
		if n := len(b.Published("dead")); n != 1 {
			t.Errorf("%d dead letters", n)
		}
	})
}

// One that fails for longer gives the delivery back, and it is tried again then;
// nothing is lost.
func TestUnavailablePublishGivesTheDeliveryBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := begin(t, hosttest.Queue(), alwaysFails, deadAtOnce()...)
		b.FailPublishes("dead", hosttest.Unavailable, hosttest.Always)
		b.texts("one")
		v := b.WaitVerdicts(t, "orders", 1)[0]
		if v.Kind != core.VerdictRequeue {
			t.Errorf("got %v", v)
		}
		b.Heal("dead")
		b.service.Wait()
		if n := len(b.Published("dead")); n != 1 {
			t.Errorf("%d dead letters", n)
		}
	})
}

// One that is refused for good gives the delivery back after a second (S-GEN-74).
func TestRefusedPublishGivesTheDeliveryBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := begin(t, hosttest.Queue(), alwaysFails, deadAtOnce()...)
		b.FailPublishes("dead", hosttest.Refused, 1)
		b.texts("one")
		b.service.Wait()
		b.said(t, "1 requeue", "1 ack, attempt 2")
		if b.at[1] != time.Second {
			t.Errorf("it came again after %v", b.at[1])
		}
	})
}

// A copy whose receipt is unknown is sent again where the source can be acked
// (S-GEN-83): once where it was lost, twice where it was stored.
func TestUnansweredPublishIsSentAgain(t *testing.T) {
	for how, want := range map[hosttest.PublishFailure]int{hosttest.Unanswered: 1, hosttest.StoredUnanswered: 2} {
		bubble(t, func(t *testing.T) {
			b := begin(t, hosttest.Queue(), alwaysFails, deadAtOnce()...)
			b.FailPublishes("dead", how, 1)
			b.texts("one")
			b.service.Wait()
			b.said(t, "1 ack")
			if n := len(b.Published("dead")); n != want {
				t.Errorf("%d dead letters, want %d", n, want)
			}
		})
	}
}

// A crash gives back what was in work; the handler runs on, its verdict is
// stale, and the host is ready again by itself (S-GEN-98).
func TestCrashGivesBackWhatWasInWork(t *testing.T) {
	bubble(t, func(t *testing.T) {
		in, done := make(chan bool), make(chan bool)
		b := begin(t, hosttest.Queue(), func(m *host.Message[[]byte]) error {
			in <- true
			<-done
			return nil
		})
		b.texts("one")
		<-in
		b.Crash(t, "in")
		done <- true
		b.service.Ready()
		<-in
		done <- true
		b.service.Wait()
		b.said(t, "1 ack, attempt 2")
		b.Crash(t, "in") // a second time
		b.service.Ready()
	})
}

// A crash of a stream loses what it had read.
func TestCrashOfAStreamLosesNothingElse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := begin(t, hosttest.Stream(), nil)
		b.texts("one")
		b.service.Wait()
		b.Crash(t, "in")
		b.texts("two")
		b.service.Ready()
		b.service.Wait()
		b.saw(t, "one", "two")
	})
}

// Too many crashes end the host.
func TestCrashLoopEndsTheHost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := begin(t, hosttest.Queue(), nil)
		for range 4 {
			b.Crash(t, "in")
			b.service.Ready()
		}
		b.Crash(t, "in")
		var lost *host.EndpointError
		if err := b.service.Ended(); !errors.As(err, &lost) || lost.Endpoint != "in" {
			t.Errorf("got %v", err)
		}
	})
}

// What is taken back is delivered again, and the first verdict comes to nothing.
func TestTakeBackMakesVerdictsStale(t *testing.T) {
	bubble(t, func(t *testing.T) {
		in, done := make(chan bool), make(chan bool)
		b := begin(t, hosttest.Queue(), func(m *host.Message[[]byte]) error {
			in <- true
			<-done
			return nil
		})
		b.texts("one")
		<-in
		if n := b.TakeBack("orders"); n != 1 {
			t.Errorf("took back %d", n)
		}
		done <- true
		<-in
		done <- true
		b.service.Wait()
		b.said(t, "1 ack, attempt 2")
	})
}

// While the broker is down publishes fail and the host is not ready.
func TestDownAndUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		h := host.New(b.Replace())
		in := h.Endpoint("in", host.Plugin{Name: "x"}, nil)
		host.Handle(in.Subscription("orders"), acks)
		out := host.To[[]byte](h, in.To("out"))
		s := hosttest.Start(t, h, b)
		b.Down()
		synctest.Wait()
		if _, err := out.Publish(t.Context(), []byte("x")); err == nil {
			t.Error("published to a broker that is down")
		}
		if h.Ready() {
			t.Error("ready without a broker")
		}
		b.Deliver("orders", hosttest.Text("one"))
		b.Up()
		s.Ready()
		s.Wait()
		if got := fmt.Sprint(b.Verdicts("orders")); got != "[1 ack]" {
			t.Error(got)
		}
	})
}

func TestBreak(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := begin(t, hosttest.Queue(), nil)
		b.Break("orders", &core.Fault{Code: core.FaultUnavailable, Message: "moved", Transient: true})
		synctest.Wait()
		b.texts("one")
		b.service.Wait() // it was opened again
		b.saw(t, "one")
		b.Break("orders", &core.Fault{Code: core.FaultDenied, Message: "no more"})
		var lost *host.EndpointError
		if err := b.service.Ended(); !errors.As(err, &lost) || lost.Subscription != "orders" {
			t.Errorf("got %v", err)
		}
	})
}

func TestHoldAndResume(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := begin(t, hosttest.Queue(), nil)
		b.Hold("orders")
		b.texts("one")
		time.Sleep(time.Hour)
		b.saw(t)
		b.Resume("orders")
		b.service.Wait()
		b.saw(t, "one")
	})
}
