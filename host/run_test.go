// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/pluginapi"
)

type parcel struct {
	ID int `json:"id"`
}

func TestHandlersSettle(t *testing.T) {
	q := newQueues()
	q.put("orders", `{"id":1}`, `{"id":2}`, `{"id":3}`, `{"id":4}`, `{"id":5}`, `{`)
	q.replay("orders")
	var seen []string
	s := newService()
	in := attach(s.Host, "in", q)
	host.Handle(in.Subscription("orders"), func(_ context.Context, m *host.Message[parcel]) error {
		seen = append(seen, fmt.Sprintf("%s %d attempt %d last %v", m.Name(), m.Value.ID, m.Attempt(), m.Last()))
		switch m.Value.ID {
		case 2:
			return host.Drop(errors.New("unwanted"))
		case 3:
			return host.DeadLetter(errors.New("poison"))
		case 4:
			if !m.Last() {
				return errors.New("not yet")
			}
		case 5:
			panic("boom")
		}
		return nil
	}, host.MaxAttempts(2), host.DeadLetterTo(in.To("dead")), host.OnPanic(host.AsDrop))
	s.run(t)
	if err := s.result(t); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"orders 1 attempt 1 last false", "orders 2 attempt 1 last false", "orders 3 attempt 1 last false",
		"orders 4 attempt 1 last false", "orders 5 attempt 1 last false",
		"orders 4 attempt 2 last true", // the copy joins the tail of its own queue
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	wantVerdicts := []string{
		`ack {"id":1}`, `ack {"id":3}`, `ack {"id":4}`, `ack {"id":4}`,
		`reject {`, `reject {"id":2}`, `reject {"id":5}`,
	}
	if diff := cmp.Diff(wantVerdicts, q.verdicts("orders")); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	dead := q.took("dead")
	if len(dead) != 1 || string(dead[0].Payload) != `{"id":3}` {
		t.Fatalf("dead letters: %v", dead)
	}
	if got := header(dead[0], "x-longshore-reason"); got != "poison" {
		t.Errorf("the dead letter's reason is %q (D6, D7)", got)
	}
	if lines := s.log.lines("code=L-ERR"); len(lines) != 3 {
		t.Errorf("got %d lines about errors, want 3 (D6): %v", len(lines), lines)
	}
	if lines := s.log.lines("code=L-PAN", "boom"); len(lines) != 1 {
		t.Errorf("got %v, want the panic logged", lines)
	}
}

// header returns a header's last value.
func header(m core.Message, name string) string {
	value := ""
	for _, h := range m.Headers {
		if strings.EqualFold(h.Name, name) {
			value = string(h.Value)
		}
	}
	return value
}

func TestMessagesAreSeenAsReceived(t *testing.T) {
	q := newQueues()
	q.take(core.Message{
		Name: "orders", Payload: []byte("p"),
		Headers: core.Headers{{Name: "X-Tenant", Value: []byte("a")}, {Name: "x-tenant", Value: []byte("b")}},
	}, nil)
	q.end("orders")
	var kept *host.Message[core.Message]
	s := newService()
	host.Handle(attach(s.Host, "in", q).Subscription("orders"), func(_ context.Context, m *host.Message[core.Message]) error {
		if got := m.Header("X-TENANT"); got != "b" {
			t.Errorf("the header is %q, want the last one (S-GEN-97)", got)
		}
		if len(m.Headers()) != 2 || string(m.Payload()) != "p" || m.Header("nothing") != "" {
			t.Errorf("got %v, %q", m.Headers(), m.Payload())
		}
		kept = m.Clone()
		return nil
	})
	s.run(t)
	if err := s.result(t); err != nil {
		t.Fatal(err)
	}
	if string(kept.Payload()) != "p" || kept.Header("x-tenant") != "b" || kept.Name() != "orders" || string(kept.Value.Payload) != "p" {
		t.Errorf("the clone holds %+v", kept)
	}
	var own host.Message[parcel]
	if own.Name() != "" || own.Header("x") != "" || own.Payload() != nil || own.Attempt() != 0 || own.Last() {
		t.Error("a message that a test makes by itself is not empty")
	}
}

func TestForward(t *testing.T) {
	in, out := newQueues(), newQueues()
	in.take(core.Message{Name: "a", Payload: []byte("one"), Headers: core.Headers{
		{Name: "X-Tenant", Value: []byte("t")}, {Name: "x-ruststream-retry-count", Value: []byte("1")},
		{Name: "x-longshore-reason", Value: []byte("old")},
	}}, nil)
	in.put("b", "two")
	in.put("c", "three")
	for _, name := range []string{"a", "b", "c"} {
		in.replay(name)
	}
	var refused atomic.Int32
	out.published = func(m pluginapi.Outgoing) *pluginapi.Receipt {
		if m.Message.Name == "c-out" && refused.Add(1) == 1 {
			return &pluginapi.Receipt{Status: pluginapi.ReceiptRefused, Fault: &core.Fault{Code: core.FaultDenied, Message: "no"}}
		}
		return nil
	}
	s := newService()
	ein, eout := attach(s.Host, "in", in), attach(s.Host, "out", out)
	host.Handle[[]byte](ein.Subscription("a"), nil, host.Forward(eout.To("a-out")))
	host.Handle(ein.Subscription("b"), func(_ context.Context, m *host.Message[[]byte]) error {
		m.Replace([]byte("new " + string(m.Value)))
		return nil
	}, host.Forward(eout.To("b-out")))
	host.Handle[[]byte](ein.Subscription("c"), nil, host.Forward(eout.To("c-out")))
	s.run(t)
	if err := s.result(t); err != nil {
		t.Fatal(err)
	}
	a, b, c := out.took("a-out"), out.took("b-out"), out.took("c-out")
	if len(a) != 1 || len(b) != 1 || len(c) != 1 {
		t.Fatalf("forwarded %v, %v, %v", a, b, c)
	}
	want := core.Message{Name: "a-out", Payload: []byte("one"), Headers: core.Headers{{Name: "X-Tenant", Value: []byte("t")}}}
	if diff := cmp.Diff(want, a[0]); diff != "" {
		t.Errorf("forwarded (-want +got):\n%s", diff)
	}
	if got := string(b[0].Payload); got != "new two" {
		t.Errorf("the replaced payload is %q", got)
	}
	if diff := cmp.Diff([]string{"ack three", "requeue three"}, in.verdicts("c")); diff != "" {
		t.Errorf("a failed forward is a retry (-want +got):\n%s", diff)
	}
}

func TestBackoffDelaysPlainRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // S-GEN-99, E-06
		q := newQueues()
		q.put("orders", "one")
		s := newService()
		in := attach(s.Host, "in", q)
		var at []time.Time
		host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
			at = append(at, time.Now())
			return errors.New("always")
		}, host.MaxAttempts(3), host.DeadLetterTo(in.To("dead")), host.Backoff(host.Exponential(100*time.Millisecond, time.Second)))
		s.run(t)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(at) != 3 {
			t.Fatalf("%d runs, want 3", len(at))
		}
		for i, longest := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond} {
			if d := at[i+1].Sub(at[i]); d <= 0 || d > longest {
				t.Errorf("attempt %d came after %v, want up to %v", i+2, d, longest)
			}
		}
		if dead := q.took("dead"); len(dead) != 1 || header(dead[0], "x-ruststream-retry-count") != "3" {
			t.Errorf("dead letters: %v", dead)
		}
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
	})
}

func TestRetryToFuncIsAskedForEachCopy(t *testing.T) {
	q := newQueues() // S-GEN-61, S-GEN-71, S-MQT-23
	q.targets = func(t pluginapi.Target) *pluginapi.TargetReport {
		if t.Name == "bad/#" {
			return &pluginapi.TargetReport{Findings: []pluginapi.Finding{{Message: "a wildcard is no name"}}}
		}
		return nil
	}
	for _, p := range []string{"good", "bad", "nowhere", "error", "panic", "empty"} {
		q.put("orders", p)
	}
	q.end("orders")
	s := newService()
	in := attach(s.Host, "in", q)
	host.Handle(in.Subscription("orders"), retries, host.MaxAttempts(2), host.DeadLetterTo(in.To("dead")),
		host.RetryToFunc(func(m core.Message, attempt uint64) (core.Destination, error) {
			if attempt != 1 {
				t.Errorf("asked for attempt %d", attempt)
			}
			switch p := string(m.Payload); p {
			case "good":
				return dest("", "again"), nil
			case "bad":
				return dest("in", "bad/#"), nil
			case "nowhere":
				return dest("nowhere", "x"), nil
			case "error":
				return core.Destination{}, errors.New("cannot say")
			case "panic":
				panic("boom")
			default:
				return core.Destination{}, nil
			}
		}))
	s.run(t)
	if err := s.result(t); err != nil {
		t.Fatal(err)
	}
	if got := q.took("again"); len(got) != 1 || string(got[0].Payload) != "good" {
		t.Errorf("copied: %v", got)
	}
	if got := len(s.log.lines("code=L-REF", "level=WARN")); got != 5 {
		t.Errorf("%d warnings, want 5: %v", got, s.log.lines("level=WARN"))
	}
	want := []string{"ack good", "reject bad", "reject empty", "reject error", "reject nowhere", "reject panic"}
	if diff := cmp.Diff(want, q.verdicts("orders")); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

func TestFailFastStopsTheService(t *testing.T) {
	for name, c := range map[string]struct {
		payload string
		rules   []host.Rule
	}{
		"a panic (S-GEN-45)":        {`{"id":7}`, []host.Rule{host.OnPanic(host.FailFast)}},
		"undecodable (S-GEN-51)":    {`{`, []host.Rule{host.OnUndecodable(host.FailFast)}},
		"a panic under a cap (D27)": {`{"id":7}`, []host.Rule{host.OnPanic(host.FailFast), host.MaxAttempts(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueues()
			q.put("orders", c.payload)
			s := newService()
			host.Handle(attach(s.Host, "in", q).Subscription("orders"), func(context.Context, *host.Message[parcel]) error {
				panic(errBroken)
			}, c.rules...)
			s.run(t)
			err := s.result(t)
			var e *host.HandlerError
			if !errors.As(err, &e) || e.Subscription != "orders" || e.Endpoint != "in" {
				t.Fatalf("got %v, want a *HandlerError", err)
			}
			if name != "undecodable (S-GEN-51)" && !errors.Is(err, errBroken) {
				t.Errorf("what was thrown is not behind %v", err)
			}
			if left := q.left("orders"); len(left) != 1 {
				t.Errorf("the queue has %v left, want the delivery unsettled (D10)", left)
			}
			if lines := s.log.lines("code=L-FF"); len(lines) != 1 {
				t.Errorf("got %v, want one line", lines)
			}
		})
	}
}

func TestTimeoutEndsTheContext(t *testing.T) {
	q := newQueues()
	q.put("orders", "one")
	q.end("orders")
	s := newService()
	host.Handle(attach(s.Host, "in", q).Subscription("orders"), func(ctx context.Context, _ *host.Message[[]byte]) error {
		<-ctx.Done()
		return host.Drop(ctx.Err())
	}, host.Timeout(time.Millisecond))
	s.run(t)
	if err := s.result(t); err != nil {
		t.Fatal(err)
	}
	// The outcome counts: this is no stop.
	if diff := cmp.Diff([]string{"reject one"}, q.verdicts("orders")); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

func TestHostEndsWithItsSources(t *testing.T) {
	for name, c := range map[string]struct {
		close func(q *queues, name string)
		opts  []host.Option
		stays bool
	}{
		"that end (S-GEN-68)":      {(*queues).end, nil, false},
		"that catch up":            {(*queues).replay, nil, false},
		"but not if it is to stay": {(*queues).end, []host.Option{host.StayUp()}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueues()
				q.put("a", "one")
				q.put("b", "two")
				c.close(q, "a")
				c.close(q, "b")
				s := newService(c.opts...)
				in := attach(s.Host, "in", q)
				var runs atomic.Int32
				host.Handle(in.Subscription("a"), func(_ context.Context, m *host.Message[[]byte]) error {
					if runs.Add(1) == 1 {
						return host.RetryAfter(time.Minute, nil) // the copy is waited for, and handled
					}
					return nil
				})
				host.Handle(in.Subscription("b"), acks)
				began := time.Now()
				s.run(t)
				time.Sleep(30 * time.Second)
				select {
				case err := <-s.done:
					t.Fatalf("ended with a copy waiting: %v", err)
				default:
				}
				time.Sleep(time.Hour)
				if c.stays {
					if !s.Ready() {
						t.Error("not ready any more")
					}
					s.stop()
				}
				if err := s.result(t); err != nil {
					t.Fatal(err)
				}
				took := time.Since(began)
				if got := q.took("a"); len(got) != 2 {
					t.Errorf("%d messages went to a after %v, want the copy as well", len(got), took)
				}
			})
		})
	}
}

func TestHostWithoutSubscriptionsStays(t *testing.T) {
	q := newQueues()
	s := newService()
	p := host.To[parcel](s.Host, attach(s.Host, "out", q).To("orders"))
	if _, err := p.Publish(t.Context(), parcel{7}); !errors.Is(err, host.ErrEndpointDown) || !strings.Contains(err.Error(), "while Run runs") {
		t.Errorf("before Run: got %v, want ErrEndpointDown", err)
	}
	s.serve(t)
	r, err := p.Publish(t.Context(), parcel{7}, host.WithHeader("a", "1"), host.WithHeader("A", "2"), host.WithContentType("application/json"))
	if err != nil || r.Unrouted {
		t.Fatalf("got %v, %v", r, err)
	}
	want := []core.Message{{Name: "orders", Payload: []byte(`{"id":7}`), Headers: core.Headers{
		{Name: "a", Value: []byte("1")}, {Name: "A", Value: []byte("2")}, {Name: "content-type", Value: []byte("application/json")},
	}}}
	if diff := cmp.Diff(want, q.took("orders")); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	s.stop()
	if err := s.result(t); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Publish(t.Context(), parcel{7}); !errors.Is(err, host.ErrEndpointDown) {
		t.Errorf("after Run: got %v, want ErrEndpointDown", err)
	}
}

func TestPublishErrors(t *testing.T) {
	synctest.Test(t, testPublishErrors)
}

func testPublishErrors(t *testing.T) {
	q := newQueues()
	q.published = func(m pluginapi.Outgoing) *pluginapi.Receipt {
		switch string(m.Message.Payload) {
		case "refused":
			return &pluginapi.Receipt{Status: pluginapi.ReceiptRefused, Fault: &core.Fault{Code: core.FaultDenied, Message: "no"}}
		case "unknown":
			return &pluginapi.Receipt{Status: pluginapi.ReceiptUnknown, Fault: &core.Fault{Code: core.FaultTimeout, Message: "no answer"}}
		case "unread":
			return &pluginapi.Receipt{Status: pluginapi.ReceiptConfirmed, Unrouted: true, Position: []byte("7")}
		}
		return nil
	}
	s := newService()
	p := host.To[[]byte](s.Host, attach(s.Host, "out", q).To("orders"))
	s.serve(t)
	for payload, want := range map[string]struct {
		maybe bool
		code  core.FaultCode
	}{"refused": {false, core.FaultDenied}, "unknown": {true, core.FaultTimeout}} {
		_, err := p.Publish(t.Context(), []byte(payload))
		var e *host.PublishError
		var f *core.Fault
		if !errors.As(err, &e) || e.MaybeSent != want.maybe || !errors.As(err, &f) || f.Code != want.code || e.To != dest("out", "orders") {
			t.Errorf("%s: got %v (maybe sent %v)", payload, err, e != nil && e.MaybeSent)
		}
	}
	if r, err := p.Publish(t.Context(), []byte("unread")); err != nil || !r.Unrouted || string(r.Position) != "7" {
		t.Errorf("unread: got %v, %v", r, err)
	}
	_, err := p.Publish(t.Context(), []byte("x"), host.WithDelay(time.Second))
	if err == nil || !strings.Contains(err.Error(), "cannot delay; leave WithDelay out") {
		t.Errorf("a delay at a destination that has none: got %v", err)
	}
	s.Crash("out")
	synctest.Wait()
	if _, err := p.Publish(t.Context(), []byte("x")); !errors.Is(err, host.ErrEndpointDown) {
		t.Errorf("at an endpoint that is down: got %v, want at once ErrEndpointDown", err)
	}
	eventually(t, "the endpoint comes back", func() bool {
		_, err := p.Publish(t.Context(), []byte("x"))
		return err == nil
	})
}
