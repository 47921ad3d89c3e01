// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/pluginapi"
)

// options lists the findings as "subscription: option".
func options(e *host.StartError) []string {
	var out []string
	for _, f := range e.Findings {
		out = append(out, f.Subscription+": "+f.Option)
	}
	slices.Sort(out)
	return out
}

// unaddressed is a source without an address of its own.
func unaddressed() *queues {
	q := newQueues()
	q.source.Address = ""
	return q
}

// counting is a source that counts deliveries.
func counting() *queues {
	q := newQueues()
	q.source.Counts = core.CountNative
	return q
}

func TestStartRefuses(t *testing.T) {
	fn := func(core.Message, uint64) (core.Destination, error) { return core.Destination{Name: "t"}, nil }
	q := dest("in", "q")
	for name, c := range map[string]struct {
		source *queues
		rules  []host.Rule
		want   []string // options
		words  []string // that stand in the error
	}{
		"S-GEN-60: no way back": {unaddressed(), nil, []string{"RetryTo"}, []string{"subscription orders", "RetryTo"}},
		"S-GEN-60: with a cap": {
			unaddressed(), []host.Rule{host.MaxAttempts(3)}, []string{"RetryTo"}, []string{"subscription orders"},
		},
		"S-GEN-60: RetryTo is a way":     {unaddressed(), []host.Rule{host.RetryTo(dest("", "t"))}, nil, nil},
		"S-GEN-61: RetryToFunc is a way": {unaddressed(), []host.Rule{host.RetryToFunc(fn)}, nil, nil},
		"S-GEN-62: a cap of 0":           {newQueues(), []host.Rule{host.MaxAttempts(0)}, []string{"MaxAttempts"}, []string{"subscription orders", "start_test.go:"}},
		"S-GEN-63: twice": {
			newQueues(), []host.Rule{host.MaxAttempts(3), host.MaxAttempts(3)}, []string{"MaxAttempts"},
			[]string{"given twice", "start_test.go:", " and "},
		},
		"S-GEN-64: RetryTo on a counting source": {
			counting(), []host.Rule{host.MaxAttempts(3), host.DeadLetterTo(q), host.RetryTo(dest("in", "t"))},
			[]string{"RetryTo"}, []string{"subscription orders", "MaxAttempts", "DeadLetterTo"},
		},
		"D8: the own dead letter": {
			newQueues(), []host.Rule{host.MaxAttempts(1), host.DeadLetterTo(dest("", "orders"))}, []string{"DeadLetterTo"},
			[]string{"orders@in", "come back to this subscription"},
		},
		"an endpoint that is not attached": {
			newQueues(), []host.Rule{host.DeadLetterTo(dest("elsewhere", "q"))}, []string{"DeadLetterTo"},
			[]string{"q@elsewhere", "attach an endpoint"},
		},
		"all right": {newQueues(), []host.Rule{host.MaxAttempts(3), host.DeadLetterTo(q)}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService()
			in := attach(s.Host, "in", c.source)
			host.Handle(in.Subscription("orders"), acks, c.rules...)
			_, err := s.Explain(t.Context())
			if c.want == nil {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			e := startError(t, s)
			var got []string
			for _, f := range e.Findings {
				got = append(got, f.Option)
				if f.Fix == "" {
					t.Errorf("%v names no fix", f)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%v", diff, e)
			}
			for _, w := range c.words {
				if !strings.Contains(e.Error(), w) {
					t.Errorf("%q does not stand in %q", w, e)
				}
			}
			if err == nil || err.Error() != e.Error() {
				t.Errorf("Explain says %v, Run says %v", err, e)
			}
			if n := c.source.open(); n != 0 {
				t.Errorf("%d connections were opened", n)
			}
		})
	}
}

func TestStartReportsEverythingTogether(t *testing.T) {
	s := newService(host.WithDrainLimit(-time.Second))
	bad := newQueues()
	bad.configured = func(pluginapi.Settings) error {
		return &core.Fault{Code: core.FaultInvalid, Message: "settings are wrong", Diagnostics: []core.Diagnostic{
			{Path: "tls.ca_file", Message: "does not exist", Fix: "name a file"},
			{Path: "topics[2]", Message: "is empty", Fix: "give a name"},
		}}
	}
	attach(s.Host, "bad", bad)
	in := attach(s.Host, "in", unaddressed())
	host.Handle(in.Subscription("a"), acks)
	host.Handle(in.Subscription("b"), acks, host.MaxAttempts(0), host.RetryTo(dest("in", "x")), host.Timeout(-1))
	in.Subscription("c")
	s.Endpoint("gone", host.Plugin{Name: "there-is-no-such-transport"}, nil)
	s.Endpoint("in", host.Plugin{InProcess: newQueues()}, nil)
	host.To[[]byte](s.Host, dest("nowhere", "x"))
	e := startError(t, s)
	want := []string{
		": Endpoint",             // in twice
		": Plugin",               // gone
		": To",                   // nowhere
		": WithDrainLimit",       // the host's own
		": settings.tls.ca_file", // bad
		": settings.topics[2]",   // bad
		"a: RetryTo",
		"b: MaxAttempts",
		"b: Timeout",
		"c: Handle",
	}
	if diff := cmp.Diff(want, options(e)); diff != "" {
		t.Errorf("findings (-want +got):\n%s\n%v", diff, e)
	}
}

func TestStartChecksSettingsBySchema(t *testing.T) {
	type settings struct {
		Address string      `json:"address" required:"true"`
		Secret  core.Secret `json:"secret"`
		QoS     int         `json:"qos" min:"0" max:"2"`
	}
	type options struct {
		Group string `json:"group" required:"true"`
	}
	var bound settings
	fresh := func() *queues {
		q := newQueues()
		q.settings, q.options = pluginapi.SchemaOf[settings](), pluginapi.SchemaOf[options]()
		q.configured = func(s pluginapi.Settings) error { return s.Bind(&bound) }
		return q
	}
	for name, c := range map[string]struct {
		settings, options any
		want              []string
	}{
		"a struct":           {settings{Address: "x", Secret: core.NewSecret("hunter2")}, options{"g"}, nil},
		"a map":              {map[string]any{"address": "x", "secret": "hunter2"}, map[string]any{"group": "g"}, nil},
		"nothing is given":   {nil, nil, []string{": settings.address", "orders: options.group"}},
		"an unknown field":   {map[string]any{"address": "x", "adddress": "y"}, options{"g"}, []string{": settings.adddress"}},
		"out of range":       {settings{Address: "x", QoS: 3}, options{"g"}, []string{": settings.qos"}},
		"of another type":    {map[string]any{"address": "x", "qos": "hunter2"}, options{"g"}, []string{": settings.qos"}},
		"no settings at all": {func() {}, options{"g"}, []string{": settings"}},
		"an unknown option":  {settings{Address: "x"}, map[string]any{"group": "g", "gruop": 1}, []string{"orders: options.gruop"}},
		"no options at all":  {settings{Address: "x"}, func() {}, []string{"orders: options"}},
	} {
		t.Run(name, func(t *testing.T) {
			bound = settings{}
			s := newService()
			in := s.Endpoint("in", host.Plugin{InProcess: fresh()}, c.settings)
			host.Handle(in.Subscription("orders", host.Options(c.options)), acks)
			_, err := s.Explain(t.Context())
			if c.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				if bound.Address != "x" || bound.Secret.Reveal() != "hunter2" {
					t.Errorf("the plugin got %+v", bound)
				}
				return
			}
			var e *host.StartError
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want a *StartError", err)
			}
			var got []string
			for _, f := range e.Findings {
				got = append(got, f.Subscription+": "+f.Option)
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%v", diff, e)
			}
			if strings.Contains(e.Error(), "hunter2") {
				t.Errorf("the error shows a value: %v", e)
			}
		})
	}
}

func TestStartDeclares(t *testing.T) {
	s := newService() // S-GEN-65
	in := attach(s.Host, "in", newQueues())
	host.Handle(in.Subscription("plain"), acks)
	host.Handle(in.Subscription("capped"), acks, host.MaxAttempts(3))
	s.serve(t)
	lines := s.log.lines("code=L-DECL")
	if len(lines) != 1 {
		t.Fatalf("got %d lines, want 1: %v", len(lines), lines)
	}
	for _, w := range []string{"level=INFO", "subscription=capped", "max_attempts=3", "applied_by=host"} {
		if !strings.Contains(lines[0], w) {
			t.Errorf("%q lacks %s", lines[0], w)
		}
	}
}

func TestStartWarnsOfRetriesThatCannotBe(t *testing.T) {
	q := newQueues() // S-GEN-92, on a source such as MQTT QoS 1
	q.source = core.Capabilities{Ack: core.AckSingle, Unsettled: core.UnsettledLost, Address: "own"}
	s := newService()
	host.Handle(attach(s.Host, "in", q).Subscription("orders"), acks)
	s.serve(t)
	if lines := s.log.lines("level=WARN", "code=L-CHECK", "subscription=orders", "fix="); len(lines) != 1 {
		t.Errorf("got %v, want one warning", lines)
	}
	if lines := s.log.lines("level=INFO", "not promised to come again"); len(lines) != 1 {
		t.Errorf("got %v, want one line that says what is lost (S-MQT-37)", lines)
	}
}

func TestNothingIsDeliveredBeforeAllSubscriptionsAreOpen(t *testing.T) {
	q := newQueues() // D22, S-GEN-75
	q.put("first", "one")
	second := make(chan struct{})
	q.subscribed = func(ctx context.Context, r pluginapi.Registration) error {
		if r.Name != "second" {
			return nil
		}
		select {
		case <-second:
		case <-ctx.Done():
		}
		return &core.Fault{Code: core.FaultDenied, Message: "not for you"}
	}
	s := newService()
	in := attach(s.Host, "in", q)
	host.Handle(in.Subscription("first"), func(context.Context, *host.Message[[]byte]) error {
		t.Error("the first subscription's handler was called")
		return nil
	})
	host.Handle(in.Subscription("second"), acks)
	s.run(t)
	eventually(t, "the first subscription is open", func() bool { return q.open() == 1 })
	if s.Ready() {
		t.Error("the host is ready before its second subscription is open")
	}
	close(second)
	err := s.result(t)
	var e *host.StartError
	if !errors.As(err, &e) || len(e.Findings) != 1 || e.Findings[0].Subscription != "second" {
		t.Fatalf("got %v, want a refusal of the second subscription", err)
	}
	var f *core.Fault
	if !errors.As(err, &f) || f.Code != core.FaultDenied {
		t.Errorf("the fault is not behind %v", err)
	}
	if q.open() != 0 {
		t.Error("a connection was left open")
	}
	if left := q.left("first"); len(left) != 1 {
		t.Errorf("the first queue has %v left, want its message", left)
	}
}

func TestWhatIsNarrowedIsCheckedAgain(t *testing.T) {
	q := newQueues()
	q.source.Requeue, q.source.Counts = core.RequeueNow, core.CountNative
	q.narrowed = func(name string) []core.Capabilities {
		return []core.Capabilities{{Ack: core.AckSingle, Unsettled: core.UnsettledLost}} // counts no more, no way back
	}
	s := newService()
	host.Handle(attach(s.Host, "in", q).Subscription("orders"), acks, host.MaxAttempts(3))
	e := startError(t, s)
	if diff := cmp.Diff([]string{"orders: RetryTo"}, options(e)); diff != "" {
		t.Errorf("findings (-want +got):\n%s\n%v", diff, e)
	}
	if q.open() != 0 {
		t.Error("a connection was left open")
	}
}

func TestStartIsCutShort(t *testing.T) {
	for name, block := range map[string]func(q *queues, until func(ctx context.Context) error){
		"while connecting": func(q *queues, until func(ctx context.Context) error) {
			q.connected = func(ctx context.Context, _ []byte) error { return until(ctx) }
		},
		"while subscribing": func(q *queues, until func(ctx context.Context) error) {
			q.subscribed = func(ctx context.Context, _ pluginapi.Registration) error { return until(ctx) }
		},
	} {
		for how, cut := range map[string]func(s *service){
			"by the context": func(s *service) { s.stop() },
			"by an abort":    func(s *service) { s.Abort() },
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				q := newQueues()
				reached := make(chan struct{}, 1)
				block(q, func(ctx context.Context) error {
					reached <- struct{}{}
					<-ctx.Done()
					return ctx.Err()
				})
				s := newService()
				host.Handle(attach(s.Host, "in", q).Subscription("orders"), acks)
				s.run(t)
				receive(t, reached)
				cut(s)
				err := s.result(t)
				var e *host.StartError
				if !errors.As(err, &e) || !errors.Is(err, context.Canceled) || len(e.Findings) > 0 {
					t.Errorf("got %v, want a *StartError that says it was cut short", err)
				}
				if q.open() != 0 {
					t.Error("a connection was left open")
				}
			})
		}
	}
}

func TestStartThatTakesTooLong(t *testing.T) {
	q := newQueues()
	q.connected = func(ctx context.Context, _ []byte) error {
		<-ctx.Done()
		return ctx.Err()
	}
	s := newService(host.WithConnectLimit(20 * time.Millisecond))
	host.Handle(attach(s.Host, "in", q).Subscription("orders"), acks)
	e := startError(t, s)
	if !strings.Contains(e.Error(), "endpoint in") {
		t.Errorf("%v does not name the endpoint", e)
	}
}

// What a diagnostic leaves out its fault says.
func TestFaultsOfConnectNameTheirField(t *testing.T) {
	for name, d := range map[string]core.Diagnostic{
		"its own reason":     {Path: "password", Message: "is wrong", Fix: "set the right one"},
		"the fault's reason": {Path: "password", Fix: "set the right one"},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueues() // L-05
			q.connected = func(context.Context, []byte) error {
				return &core.Fault{Code: core.FaultDenied, Message: "the broker says that it is wrong", Diagnostics: []core.Diagnostic{d}}
			}
			s := newService()
			host.Handle(attach(s.Host, "in", q).Subscription("orders"), acks)
			e := startError(t, s)
			for _, want := range []string{"password", "is wrong", "set the right one"} {
				if !strings.Contains(e.Error(), want) {
					t.Errorf("%q does not say %q", e, want)
				}
			}
		})
	}
}
