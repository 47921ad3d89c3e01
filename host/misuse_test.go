// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// What was not made by its function says so where it is used, and not as a nil
// pointer somewhere within.
func TestZeroValuesThatPanic(t *testing.T) {
	h, e, p := new(host.Host), new(host.Endpoint), new(host.Publisher[string])
	ctx := t.Context()
	for name, f := range map[string]func(){
		"Endpoint of a Host":               func() { h.Endpoint("in", host.Plugin{Name: "queues"}, nil) },
		"To of a Host":                     func() { host.To[string](h, core.Destination{}) },
		"Run of a Host":                    func() { _ = h.Run(ctx) },
		"RunUntilSignal of a Host":         func() { _ = host.RunUntilSignal(ctx, nil) },
		"Explain of a Host":                func() { _, _ = h.Explain(ctx) },
		"Health of a Host":                 func() { h.Health() },
		"Ready of a Host":                  func() { (*host.Host)(nil).Ready() },
		"Abort of a Host":                  func() { h.Abort() },
		"Endpoint.Subscription":            func() { e.Subscription("orders") },
		"Endpoint.Defaults":                func() { (*host.Endpoint)(nil).Defaults() },
		"Endpoint.To of":                   func() { (*host.Endpoint)(nil).To("x") },
		"Endpoint.Name of":                 func() { e.Name() },
		"Endpoint.Addresses of":            func() { e.Addresses() },
		"Endpoint.Subscription of":         func() { (*host.Endpoint)(nil).Subscription("x") },
		"Subscription.Pause of":            func() { (*host.Subscription)(nil).Pause() },
		"Subscription.Resume of":           func() { new(host.Subscription).Resume() },
		"Subscription.Paused of":           func() { (*host.Subscription)(nil).Paused() },
		"Subscription.Name of":             func() { (*host.Subscription)(nil).Name() },
		"Handle without a subscription":    func() { host.Handle(new(host.Subscription), acks) },
		"Publisher that To did not make":   func() { _, _ = p.Publish(ctx, "x") },
		"Publisher that To did not make; ": func() { _, _ = p.PublishAsync(ctx, "x") },
		"Publisher that To did not":        func() { _ = (*host.Publisher[string])(nil).PublishWith(nil, "x") },
		"Publisher that To did":            func() { p.Destination() },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "longshore: "+name) {
					t.Errorf("thrown: %s", got)
				}
			}()
			f()
		})
	}
}

// Nonsense within options and rules is a finding, or means nothing.
func TestNilsWithinOptionsAndRules(t *testing.T) {
	var codec *nothing
	var target *host.Publisher[string]
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), host.WithCodec(codec), host.WithLogger(&slog.Logger{}), host.Option{},
		host.WithDefaults(host.Rule{}))
	in := h.Endpoint("in", host.Plugin{Name: "queues"}, nil)
	in.Defaults(host.Rule{})
	host.To[string](h, in.To("out"), host.PublisherOption{})
	host.Handle(in.Subscription("s0", nil), acks, host.Rule{}, host.DeadLetterTo(in.To("dead"), nil))
	host.Handle(in.Subscription("s1"), acks, host.Publishes(target))
	host.Handle(in.Subscription("s2"), acks, host.Publishes(&host.Publisher[string]{}))
	host.Handle(in.Subscription("s3"), acks, host.OnError(host.Is((*brittle)(nil)), host.AsDrop), host.OnError(host.Is((*brittle)(nil)), host.AsAck))
	host.Handle(in.Subscription("s4"), acks, host.OnError(host.ErrorMatch{}, host.AsDrop))
	err := h.Run(t.Context())
	var se *host.StartError
	if !errors.As(err, &se) {
		t.Fatalf("got %v, want a *StartError", err)
	}
	for _, want := range []string{
		"host: WithCodec: *host_test.nothing cannot say its content types",
		"host: WithLogger: is nil, or has no handler",
		"subscription s1 of endpoint in: Publishes: number 1 is no publisher",
		"subscription s2 of endpoint in: Publishes: number 1 is no publisher",
		"subscription s3 of endpoint in: OnError: Is(*host_test.brittle that cannot be read: <nil>) is given twice",
		"subscription s4 of endpoint in: OnError: matches nothing",
	} {
		if !slices.ContainsFunc(se.Findings, func(f host.Finding) bool {
			return strings.HasPrefix(f.String(), want) && len(f.Places) > 0 && f.Fix != ""
		}) {
			t.Errorf("no finding with its place: %s\n%v", want, err)
		}
	}
	if len(se.Findings) != 6 {
		t.Errorf("%d findings, want 6: %v", len(se.Findings), err)
	}
}

// nothing is a codec that has fields to say its content types with.
type nothing struct{ types []string }

func (c *nothing) ContentTypes() []string      { return c.types }
func (c *nothing) Marshal(any) ([]byte, error) { return nil, nil }
func (c *nothing) Unmarshal([]byte, any) error { return nil }

// A nil signal is none, so that the others hold, or the default.
func TestRunUntilNoSignal(t *testing.T) {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), hosttest.Logger(t))
	host.Handle(h.Endpoint("in", host.Plugin{Name: "queues"}, nil).Subscription("orders"), acks)
	b.CatchUp()
	if err := host.RunUntilSignal(t.Context(), h, nil, os.Interrupt); err != nil {
		t.Error(err)
	}
}

// Types that a handler could never be given a message of, all of which would be
// dropped, are refused.
func TestTypesThatCannotBeRead(t *testing.T) {
	h := host.New(hosttest.NewBroker().Replace(), hosttest.Logger(t))
	in := h.Endpoint("in", host.Plugin{Name: "queues"}, nil)
	host.Handle(in.Subscription("s0"), func(context.Context, *host.Message[fmt.Stringer]) error { return nil })
	host.Handle(in.Subscription("s1"), func(context.Context, *host.Message[proto.Message]) error { return nil })
	host.HandleBatch(in.Subscription("s2"), 2, time.Second, func(context.Context, []*host.Message[error]) []error { return nil })
	host.HandleReply(in.Subscription("s3"), func(context.Context, *host.Message[error]) (proto.Message, error) { return nil, nil })
	host.Handle(in.Subscription("s4"), func(context.Context, *host.Message[wrapperspb.StringValue]) error { return nil })
	host.Handle(in.Subscription("fine"), func(context.Context, *host.Message[any]) error { return nil })
	host.To[proto.Message](h, in.To("out")) // it can be written
	err := h.Run(t.Context())
	var se *host.StartError
	if !errors.As(err, &se) || len(se.Findings) != 5 {
		t.Fatalf("got %v, want five findings", err)
	}
	for i, f := range se.Findings {
		if f.Subscription != fmt.Sprintf("s%d", i) || len(f.Places) != 1 {
			t.Errorf("finding %d: %v", i, f)
		}
	}
}

// A message that no handler has cannot hold anything back, and is nobody's to pass
// on.
func TestMessagesOfNobody(t *testing.T) {
	type embeds struct{ host.Incoming }
	nobody := map[string]host.Incoming{
		"nil": nil, "nil pointer": (*host.Message[[]byte])(nil), "embeds nothing": embeds{}, "zero": new(host.Message[[]byte]),
		"another type": new(host.Message[int]),
	}
	for name, other := range nobody {
		t.Run(name, func(t *testing.T) {
			var errs [2]error
			onBroker(t, func(h *host.Host, in *host.Endpoint) {
				p := host.To[string](h, in.To("out"))
				host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
					errs[0] = p.PublishWith(other, "x")
					return nil
				}, host.Publishes(p), host.Middleware(func(next host.Next) host.Next {
					return func(ctx context.Context, m host.Incoming) error {
						errs[1] = next(ctx, other)
						return next(ctx, embeds{m})
					}
				}))
			}, func(b *hosttest.Broker, s *hosttest.Service) {
				b.Deliver("orders", hosttest.Text("x"))
				s.Wait()
				if got := fmt.Sprint(b.Verdicts("orders")); got != "[1 ack]" {
					t.Errorf("got %s", got)
				}
				if errs[0] == nil || !strings.Contains(errs[0].Error(), "not in the hands of its handler") {
					t.Errorf("PublishWith: %v", errs[0])
				}
				if errs[1] == nil || !strings.Contains(errs[1].Error(), "not the one it was given") {
					t.Errorf("next: %v", errs[1])
				}
			})
		})
	}
}

// No context and no function of a tracer stand for no span.
func TestTracerWithoutSpans(t *testing.T) {
	onBroker(t, func(h *host.Host, in *host.Endpoint) {
		p := host.To[string](h, in.To("out"))
		host.Handle(in.Subscription("orders"), func(ctx context.Context, _ *host.Message[[]byte]) error {
			_, err := p.Publish(ctx, "x")
			return err
		}, host.MaxAttempts(1))
		host.HandleBatch(in.Subscription("batches"), 1, time.Second,
			func(ctx context.Context, _ []*host.Message[[]byte]) []error { return []error{ctx.Err()} }, host.MaxAttempts(1))
	}, func(b *hosttest.Broker, s *hosttest.Service) {
		b.Deliver("orders", hosttest.Text("x"))
		b.Deliver("batches", hosttest.Text("x"))
		s.Wait()
		if got := fmt.Sprint(b.Verdicts("orders"), b.Verdicts("batches"), len(b.Published("out"))); got != "[1 ack] [2 ack] 1" {
			t.Errorf("got %s", got)
		}
	}, host.WithTracer(spanless{}))
}

// spanless makes no spans.
type spanless struct{}

func (spanless) StartHandling(context.Context, host.Incoming) (context.Context, func(error)) {
	return nil, nil
}

func (spanless) StartPublishing(context.Context, *host.Outgoing) (context.Context, func(error)) {
	return nil, nil
}

// An outcome that was thrown is a panic, whether or not middleware recovers it; a
// panic that is the cause of an outcome is that outcome.
func TestPanicsAndOutcomes(t *testing.T) {
	recovers := host.Middleware(func(next host.Next) host.Next {
		return func(ctx context.Context, m host.Incoming) (err error) {
			defer func() {
				if v := recover(); v != nil {
					err = fmt.Errorf("recovered: %w", &host.PanicError{Value: v})
				}
			}()
			return next(ctx, m)
		}
	})
	throws := func(context.Context, *host.Message[[]byte]) error { panic(host.Drop(errors.New("x"))) }
	onBroker(t, func(_ *host.Host, in *host.Endpoint) {
		host.Handle(in.Subscription("a"), throws, host.OnPanic(host.AsAck))
		host.Handle(in.Subscription("b"), throws, host.OnPanic(host.AsAck), recovers)
		host.Handle(in.Subscription("c"), func(context.Context, *host.Message[[]byte]) error {
			return host.Drop(&host.PanicError{Value: "x"})
		}, host.OnPanic(host.AsAck))
		host.Handle(in.Subscription("d"), func(context.Context, *host.Message[[]byte]) error {
			return (*host.PanicError)(nil)
		}, host.OnPanic(host.AsAck), host.MaxAttempts(1))
	}, func(b *hosttest.Broker, s *hosttest.Service) {
		var got []string
		for _, sub := range []string{"a", "b", "c", "d"} {
			b.Deliver(sub, hosttest.Text("x"))
			s.Wait()
			got = append(got, fmt.Sprint(b.Verdicts(sub)))
		}
		if got := strings.Join(got, " "); got != "[1 ack] [2 ack] [3 reject] [4 ack]" {
			t.Errorf("got %s", got)
		}
	})
}

// All wrong numbers of one rule or option are told, with one fix each.
func TestAllWrongNumbersAreTold(t *testing.T) {
	h := host.New(hosttest.NewBroker().Replace(), hosttest.Logger(t), host.WithWaitingLimits(0, -1), host.WithRestartBackoff(0, -time.Second))
	in := h.Endpoint("in", host.Plugin{Name: "queues"}, nil)
	host.Handle(in.Subscription("orders"), acks, host.RateLimit(0, 0), host.SnoozeLimit(2, 0),
		host.CircuitBreaker(host.Circuit{Share: 2, Of: -1, Pause: -1, Longest: -1, Probes: -1}),
		host.Backoff(host.Constant(0).Jitter(2)))
	err := h.Run(t.Context())
	for _, want := range []string{
		"WithWaitingLimits: messages 0 is below 1, and bytes -1 is below 1 (", "; use 1 or more for messages; use 1 or more for bytes",
		"WithRestartBackoff: first 0s is below 1ns, and longest -1s is below 1ns (",
		"RateLimit: 0 a second is no rate, and a burst of 0 lets nothing through (",
		"Share 2 is no share, and Of -1 is no number of outcomes, and Pause -1ns is no time, and Longest -1ns is no time, and Probes -1 is no number",
		"Backoff: 0s is no delay, and its jitter 2 is no share",
		"SnoozeLimit: 0s is no time (",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not stand in %v", want, err)
		}
	}
}

// What names nothing is said to name nothing.
func TestEmptyDestinations(t *testing.T) {
	h := host.New(hosttest.NewBroker().Replace(), hosttest.Logger(t))
	h.Endpoint("in", host.Plugin{Name: "queues"}, nil)
	host.To[string](h, core.Destination{})
	host.To[string](h, core.Destination{Name: "x"})
	err := h.Run(t.Context())
	for _, want := range []string{"a publisher names no destination", "x names no endpoint"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not stand in %v", want, err)
		}
	}
	onBroker(t, func(h *host.Host, in *host.Endpoint) {
		host.Handle(in.Subscription("orders"), func(ctx context.Context, _ *host.Message[[]byte]) error {
			for d, want := range map[core.Destination]string{{}: "it names no destination", {Name: "x"}: "x names no endpoint"} {
				if _, err := host.Request[string, string](ctx, h, d, "x"); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
			return nil
		})
	}, func(b *hosttest.Broker, s *hosttest.Service) {
		b.Deliver("orders", hosttest.Text("x"))
		s.Wait()
	})
}

// A loop by a default tells how to leave the default out.
func TestLoopsOfDefaultsNameNoDefaults(t *testing.T) {
	b := hosttest.NewBroker()
	h := host.New(b.Replace(), hosttest.Logger(t), host.WithDefaults(host.DeadLetterTo(core.Destination{Name: "dead"}), host.MaxAttempts(2)))
	host.Handle(h.Endpoint("in", host.Plugin{Name: "queues"}, nil).Subscription("dead"), acks)
	if err := h.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "NoDefaults") {
		t.Errorf("got %v", err)
	}
}

// What is never retried is logged as that.
func TestNeverRetryIsLoggedAsThat(t *testing.T) {
	s := newService()
	q := newQueues()
	host.Handle(attach(s.Host, "in", q).Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
		return os.ErrNotExist
	}, host.OnError(host.Is(os.ErrNotExist), host.NeverRetry))
	s.serve(t)
	q.put("orders", "x")
	eventually(t, "it is logged", func() bool { return len(s.log.lines("code=L-ERR", "outcome=never-retry")) == 1 })
}
