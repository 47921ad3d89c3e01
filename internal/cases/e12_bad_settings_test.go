// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// nobody fails the test when a plugin is or was connected.
func nobody(t *testing.T, b *bench) {
	t.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	if c, err := b.Client(ctx, "mem"); err == nil {
		t.Errorf("plugin %d is connected", c.PID())
	}
	if a := b.Account(); a.Deliveries != 0 || a.Queued != 1 {
		t.Errorf("account: %v, want nothing to be read", a)
	}
}

// E-12: odd settings are refused at start, by registration and field, and
// nothing is connected.
func TestE12BadSettings(t *testing.T) {
	t.Parallel()
	handle := func(_ context.Context, _ *host.Message[[]byte]) error { return nil }
	for name, tt := range map[string]struct {
		declare func(in *host.Endpoint)
		want    []string // "subscription: option"
	}{
		"cap -1":   {rules(handle, host.MaxAttempts(-1)), []string{"orders: MaxAttempts"}},
		"cap 0":    {rules(handle, host.MaxAttempts(0)), []string{"orders: MaxAttempts"}},
		"cap 2^31": {rules(handle, host.MaxAttempts(math.MaxInt32+1)), []string{"orders: MaxAttempts"}},
		"backoff 0": {
			rules(handle, host.Backoff(host.Constant(0))), []string{"orders: Backoff"},
		},
		"backoff -5s": {rules(handle, host.Backoff(host.Exponential(-5*time.Second, time.Second))), []string{"orders: Backoff"}},
		"undecodable after -5s is at once": {
			rules(handle, host.OnUndecodable(host.AsRetryAfter(-5*time.Second))), nil,
		},
		"unknown reaction to a panic":   {rules(handle, host.OnPanic(-1000)), []string{"orders: OnPanic"}},
		"unknown reaction to bad bytes": {rules(handle, host.OnUndecodable(-1000)), []string{"orders: OnUndecodable"}},
		"dead letter is the source": {func(in *host.Endpoint) {
			host.Handle(in.Subscription("orders"), handle, host.MaxAttempts(3), host.DeadLetterTo(in.To("orders")))
		}, []string{"orders: DeadLetterTo"}},
		"dead letters go round": {func(in *host.Endpoint) {
			host.Handle(in.Subscription("orders"), handle, host.MaxAttempts(1), host.DeadLetterTo(in.To("other")))
			host.Handle(in.Subscription("other"), handle, host.MaxAttempts(2), host.DeadLetterTo(in.To("orders")))
		}, []string{"orders: DeadLetterTo"}}, // one finding with both places
		"empty subscription": {func(in *host.Endpoint) { host.Handle(in.Subscription(""), handle) }, []string{": Subscription"}},
		"empty dead letter": {func(in *host.Endpoint) {
			host.Handle(in.Subscription("orders"), handle, host.DeadLetterTo(in.To("")))
		}, []string{"orders: DeadLetterTo"}},
		"two registrations with one name": {func(in *host.Endpoint) {
			host.Handle(in.Subscription("orders"), handle)
			host.Handle(in.Subscription("orders"), handle)
		}, []string{"orders: Subscription"}},
		"window below 0": {func(in *host.Endpoint) {
			host.Handle(in.Subscription("orders", host.Window(-1, 0)), handle)
		}, []string{"orders: Window"}},
		"workers 0":     {rules(handle, host.Workers(0)), []string{"orders: Workers"}},
		"workers -1":    {rules(handle, host.Workers(-1)), []string{"orders: Workers"}},
		"workers 2^31":  {rules(handle, host.Workers(math.MaxInt32+1)), []string{"orders: Workers"}},
		"workers twice": {rules(handle, host.Workers(2), host.Workers(2)), []string{"orders: Workers"}},
		"keys by nothing": {
			rules(handle, host.Workers(2), host.ByKeyFunc(nil)), []string{"orders: ByKeyFunc"},
		},
		"keys in two ways": {
			rules(handle, host.Workers(2), host.ByKey(), host.ByKeyFunc(func(m core.Message) string { return m.Name })),
			[]string{"orders: ByKey"},
		},
		"rate 0":             {rules(handle, host.RateLimit(0, 1)), []string{"orders: RateLimit"}},
		"rate -5":            {rules(handle, host.RateLimit(-5, 1)), []string{"orders: RateLimit"}},
		"rate that is none":  {rules(handle, host.RateLimit(math.NaN(), 1)), []string{"orders: RateLimit"}},
		"rate without end":   {rules(handle, host.RateLimit(math.Inf(1), 1)), []string{"orders: RateLimit"}},
		"burst 0":            {rules(handle, host.RateLimit(10, 0)), []string{"orders: RateLimit"}},
		"burst -1":           {rules(handle, host.RateLimit(10, -1)), []string{"orders: RateLimit"}},
		"circuit of -1":      {rules(handle, host.CircuitBreaker(host.Circuit{Of: -1})), []string{"orders: CircuitBreaker"}},
		"circuit of 2^31":    {rules(handle, host.CircuitBreaker(host.Circuit{Of: math.MaxInt32 + 1})), []string{"orders: CircuitBreaker"}},
		"circuit share -0.5": {rules(handle, host.CircuitBreaker(host.Circuit{Share: -0.5})), []string{"orders: CircuitBreaker"}},
		"circuit share 1.5":  {rules(handle, host.CircuitBreaker(host.Circuit{Share: 1.5})), []string{"orders: CircuitBreaker"}},
		"circuit share that is none": {
			rules(handle, host.CircuitBreaker(host.Circuit{Share: math.NaN()})), []string{"orders: CircuitBreaker"},
		},
		"circuit pause -5s": {
			rules(handle, host.CircuitBreaker(host.Circuit{Pause: -5 * time.Second})), []string{"orders: CircuitBreaker"},
		},
		"circuit pause above the longest": {
			rules(handle, host.CircuitBreaker(host.Circuit{Pause: time.Minute, Longest: time.Second})), []string{"orders: CircuitBreaker"},
		},
		"circuit probes -1":      {rules(handle, host.CircuitBreaker(host.Circuit{Probes: -1})), []string{"orders: CircuitBreaker"}},
		"elapsed 0":              {rules(handle, host.MaxElapsed(0)), []string{"orders: MaxElapsed"}},
		"elapsed -5s":            {rules(handle, host.MaxElapsed(-5*time.Second)), []string{"orders: MaxElapsed"}},
		"snoozes -1":             {rules(handle, host.SnoozeLimit(-1, time.Second)), []string{"orders: SnoozeLimit"}},
		"snoozed for 0s":         {rules(handle, host.SnoozeLimit(1, 0)), []string{"orders: SnoozeLimit"}},
		"errors that match none": {rules(handle, host.OnError(host.ErrorMatch{}, host.AsDrop)), []string{"orders: OnError"}},
		"no errors named":        {rules(handle, host.OnError(host.Is(), host.AsDrop)), []string{"orders: OnError"}},
		"every error by type":    {rules(handle, host.OnError(host.As[error](), host.AsDrop)), []string{"orders: OnError"}},
		"unknown reaction to an error": {
			rules(handle, host.OnError(host.Is(io.EOF), -1000)), []string{"orders: OnError"},
		},
		"one error twice": {
			rules(handle, host.OnError(host.Is(io.EOF), host.AsDrop), host.OnError(host.Is(io.EOF), host.AsAck)),
			[]string{"orders: OnError"},
		},
		"odd defaults of an endpoint": {func(in *host.Endpoint) {
			in.Defaults(host.Workers(0))
			host.Handle(in.Subscription("orders"), handle)
		}, []string{": Workers"}},
		"jitter -0.1": {
			rules(handle, host.Backoff(host.Constant(time.Second).Jitter(-0.1))), []string{"orders: Backoff"},
		},
		"jitter 1.1": {
			rules(handle, host.Backoff(host.Constant(time.Second).Jitter(1.1))), []string{"orders: Backoff"},
		},
		"no delays":      {rules(handle, host.Backoff(host.Delays())), []string{"orders: Backoff"}},
		"no schedule":    {rules(handle, host.Backoff(host.Schedule{})), []string{"orders: Backoff"}},
		"a delay of -1s": {rules(handle, host.Backoff(host.Delays(time.Second, -time.Second))), []string{"orders: Backoff"}},
		"timeout 0":      {rules(handle, host.Timeout(0)), []string{"orders: Timeout"}},
		"floor -1ns":     {rules(handle, host.Floor(-1)), []string{"orders: Floor"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.Publish("orders", memory.Text("one"))
			s := newService(t)
			in := b.attach(s, "mem", b.Settings.With(settings.Rest, settings.KindA()))
			tt.declare(in)
			if tt.want == nil {
				s.serve()
				s.stops()
				return
			}
			e := s.refused()
			got := map[string]bool{}
			for _, f := range e.Findings {
				got[f.Subscription+": "+f.Option] = true
				if f.Endpoint != "mem" || f.Fix == "" || len(f.Places) == 0 || !strings.Contains(e.Error(), f.Option) {
					t.Errorf("finding %+v", f)
				}
			}
			for _, w := range tt.want {
				if !got[w] {
					t.Errorf("no finding %q in: %v", w, e)
				}
			}
			if len(got) != len(tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			nobody(t, b)
		})
	}
}

// rules declares one subscription.
func rules(handle host.Handler[[]byte], rules ...host.Rule) func(in *host.Endpoint) {
	return func(in *host.Endpoint) { host.Handle(in.Subscription("orders"), handle, rules...) }
}

// E-12: a handler's retry after 0 or less is at once, as documented; one after
// 292 years, the longest there is, waits and hurts nobody. A stop without a
// limit would wait for it, one with a limit lists it.
func TestE12OddDelaysOfHandlers(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := newService(t, host.WithDrainLimit(200*time.Millisecond))
			in := b.attach(s, "mem", b.Settings.With("orders", k.caps))
			runs := newTally()
			after := map[string]time.Duration{"zero": 0, "negative": -time.Hour, "for ever": math.MaxInt64, "least": math.MinInt64}
			host.Handle(in.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
				p := string(m.Value)
				runs.ran(p, m.Attempt())
				if d, odd := after[p]; odd && runs.runs(p) == 1 {
					return host.RetryAfter(d, nil)
				}
				return nil
			}, append(backTo(in, "orders", k.caps), host.MaxAttempts(3))...)
			s.serve()
			for p := range after {
				b.Publish("orders", memory.Text(p))
			}
			b.Publish("orders", memory.Text("good"))
			for _, p := range []string{"zero", "negative", "least"} {
				eventually(t, "the second run of "+p, func() bool { return runs.runs(p) == 2 })
			}
			eventually(t, "the good one", func() bool { return runs.runs("good") == 1 })
			if runs.runs("for ever") != 1 {
				t.Errorf("what waits for ever ran %d times", runs.runs("for ever"))
			}
			s.stop()
			err := s.ends()
			if !copies(k.caps) { // held unsettled: nothing is cut off that is not given back
				b.wait("it is back", func(v memory.View) bool {
					a := v.Account("orders")
					return a.Queued == 1 && a.Lost == 0
				})
				return
			}
			var e *host.AbandonedError
			if !errors.As(err, &e) || len(e.Subscriptions) != 1 || e.Subscriptions[0].Copies != 1 {
				t.Errorf("got %v, want the copy that waits to be listed", err)
			}
		})
	}
}

// E-12: the same in a service file, with the line and the fix; nothing starts.
func TestE12BadServiceFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Publish("orders", memory.Text("one"))
	const head = "subscriptions:\n  - from: mem\n    name: orders\n    forward: {to: mem, name: done}\n"
	for name, tt := range map[string]struct{ text, place, field string }{
		"cap -1":                          {head + "    max_attempts: -1\n", ":7:", "max_attempts"},
		"cap 0":                           {head + "    max_attempts: 0\n", ":7:", "max_attempts"},
		"cap 2^31":                        {head + "    max_attempts: 2147483648\n", ":7:", "max_attempts"},
		"cap of words":                    {head + "    max_attempts: many\n", ":7:", "max_attempts"},
		"backoff 0":                       {head + "    backoff: {first: 0s, max: 1s}\n", ":7:", "backoff.first"},
		"backoff -5s":                     {head + "    backoff: {first: -5s, max: 1s}\n", ":7:", "backoff.first"},
		"backoff of 300 years":            {head + "    backoff: {first: 1s, max: 2628000h}\n", ":7:", "backoff.max"},
		"unknown policy":                  {head + "    on_undecodable: retry_for_ever\n", ":7:", "on_undecodable"},
		"unknown field":                   {head + "    on_failure: retry\n", ":7:", "on_failure"},
		"workers 0":                       {head + "    workers: 0\n", ":7:", "workers"},
		"keys of no header":               {head + "    by_key: \"\"\n", ":7:", "by_key"},
		"rate 0":                          {head + "    rate_limit: {per_second: 0}\n", ":7:", "rate_limit.per_second"},
		"circuit share 2":                 {head + "    circuit_breaker: {share: 2}\n", ":7:", "circuit_breaker.share"},
		"elapsed 0":                       {head + "    max_elapsed: 0s\n", ":7:", "max_elapsed"},
		"default of -1":                   {head + "defaults:\n  workers: -1\n", ":8:", "defaults.workers"},
		"dead letter is the source":       {head + "    max_attempts: 2\n    dead_letter: {to: mem, name: orders}\n", ":8:", "dead_letter"},
		"empty dead letter":               {head + "    dead_letter: {to: mem, name: \"\"}\n", ":7:", "dead_letter.name"},
		"empty name":                      {strings.Replace(head, "name: orders", `name: ""`, 1), ":5:", "name"},
		"two registrations with one name": {head + strings.TrimPrefix(head, "subscriptions:\n"), ":8:", "name"},
		"unknown endpoint":                {strings.Replace(head, "from: mem", "from: men", 1), ":4:", "from"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endpoints := fmt.Sprintf("endpoints:\n  mem: {transport: memory, settings: %s}\n",
				inYAML(t, b.Settings.With(settings.Rest, settings.KindA())))
			file := serviceFile(t, endpoints+tt.text)
			p := startProgram(t, file, nil, nil)
			if status := p.status(); status != 3 && status != 2 {
				t.Errorf("status %d", status)
			}
			said := p.log.String()
			if !strings.Contains(said, tt.place) || !strings.Contains(said, tt.field) {
				t.Errorf("it does not name %s and %s:\n%s", tt.place, tt.field, said)
			}
			nobody(t, b)
		})
	}
}
