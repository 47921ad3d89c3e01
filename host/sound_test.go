// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// brittle is an error that cannot be read where it is nil, or says so.
type brittle struct{ text string }

func (e *brittle) Error() string {
	if e.text == "" {
		panic("no text")
	}
	return e.text
}

// onBroker runs a service with the endpoint "in" on a broker of its own, in a
// bubble.
func onBroker(t *testing.T, register func(h *host.Host, in *host.Endpoint), test func(b *hosttest.Broker, s *hosttest.Service), opts ...host.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		h := host.New(append(opts, b.Replace(), hosttest.Logger(t))...)
		register(h, h.Endpoint("in", host.Plugin{Name: "queues"}, nil))
		test(b, hosttest.Start(t, h, b))
	})
}

// An error of the user's that cannot be read, as a nil pointer that was returned as
// an error, is read by the engine for dead letters, rejects and lines all the same.
func TestErrorsThatCannotBeRead(t *testing.T) {
	var none *brittle
	for name, err := range map[string]error{"nil pointer": none, "panics": &brittle{}} {
		t.Run(name, func(t *testing.T) {
			fails := func(err error) host.Handler[[]byte] {
				return func(context.Context, *host.Message[[]byte]) error { return err }
			}
			onBroker(t, func(_ *host.Host, in *host.Endpoint) {
				dead := host.DeadLetterTo(in.To("dead"))
				host.Handle(in.Subscription("plain"), fails(err), host.MaxAttempts(1), dead)
				host.Handle(in.Subscription("wrapped"), fails(host.DeadLetter(err)), dead)
				host.Handle(in.Subscription("joined"), fails(errors.Join(err, errors.New("other"))), host.MaxAttempts(1), dead)
				host.Handle(in.Subscription("class"), fails(err), dead, host.MaxAttempts(3), host.OnError(host.As[*brittle](), host.AsDeadLetter))
				host.Handle(in.Subscription("thrown"), func(context.Context, *host.Message[[]byte]) error { panic(err) },
					dead, host.OnPanic(host.AsDeadLetter))
				host.Handle(in.Subscription("dropped"), fails(host.Drop(err)))
				host.Handle(in.Subscription("computed"), fails(errors.New("no")), host.MaxAttempts(3),
					host.RetryToFunc(func(core.Message, uint64) (core.Destination, error) { return core.Destination{}, err }))
			}, func(b *hosttest.Broker, s *hosttest.Service) {
				for _, sub := range []string{"plain", "wrapped", "joined", "class", "thrown", "dropped", "computed"} {
					b.Deliver(sub, hosttest.Text(sub))
				}
				s.Wait()
				dead := b.Published("dead")
				if len(dead) != 5 {
					t.Errorf("%d dead letters, want 5", len(dead))
				}
				for _, m := range dead {
					if m.Header("x-longshore-reason") == "" {
						t.Errorf("the dead letter of %s gives no reason", m)
					}
				}
				if got := fmt.Sprint(b.Verdicts("dropped")); !strings.Contains(got, "reject") {
					t.Errorf("got %s for what was dropped", got)
				}
			})
		})
	}
}

// What a journal throws is an error of it, and ends nothing.
func TestJournalsThatThrow(t *testing.T) {
	for name, throw := range map[string]func() error{
		"panic": func() error { panic("disk") },
		"exit":  func() error { runtime.Goexit(); return nil },
		"error": func() error { return (*brittle)(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			onBroker(t, func(_ *host.Host, in *host.Endpoint) {
				host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error { return errors.New("no") },
					host.MaxAttempts(2), host.Backoff(host.Constant(time.Second)), host.DeadLetterTo(in.To("dead")))
			}, func(b *hosttest.Broker, s *hosttest.Service) {
				b.Deliver("orders", hosttest.Text("x"))
				s.Wait()
				if got := len(b.Published("dead")); got != 1 {
					t.Errorf("%d dead letters, want the end of the attempts", got)
				}
			}, host.WithJournal(throwing{throw}))
		})
	}
}

// throwing is a journal that can only say what was there before.
type throwing struct{ throw func() error }

func (j throwing) Store(context.Context, host.Copy, time.Duration) (string, error) {
	return "", j.throw()
}
func (j throwing) Forget(context.Context, string) error                  { return j.throw() }
func (j throwing) Park(context.Context, host.Copy, string, string) error { return j.throw() }
func (j throwing) Due(context.Context, int) ([]host.Row, error)          { return nil, nil }

// A function of OnNotAcked that panics is logged, and one that ends its goroutine
// ends nothing else; the delivery is settled as ever, wherever they are called.
func TestUndoThatPanics(t *testing.T) {
	for name, tt := range map[string]struct {
		err   error
		rules []host.Rule
		want  string
	}{
		"handler": {host.Drop(nil), nil, "[1 reject]"},
		"publish": {nil, []host.Rule{host.MaxAttempts(1)}, "[1 reject]"},
	} {
		t.Run(name, func(t *testing.T) {
			onBroker(t, func(_ *host.Host, in *host.Endpoint) {
				host.Handle(in.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
					m.OnNotAcked(func(error) { panic("undo") })
					m.OnNotAcked(func(error) { runtime.Goexit() })
					return tt.err
				}, append(tt.rules, host.Forward(in.To("out")))...)
			}, func(b *hosttest.Broker, s *hosttest.Service) {
				b.FailPublishes("out", hosttest.Refused, 1)
				b.Deliver("orders", hosttest.Text("x"))
				s.Wait()
				if got := fmt.Sprint(b.Verdicts("orders")); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// What the handler of a batch does to its slice does not mix up whose error is
// whose: its list is about the messages as the slice is when it returns.
func TestBatchesThatAreReordered(t *testing.T) {
	type messages = []*host.Message[[]byte]
	bad := func(ms messages) []error {
		errs := make([]error, len(ms))
		for i, m := range ms {
			if m != nil && string(m.Value) == "a" {
				errs[i] = host.Drop(errors.New("bad"))
			}
		}
		return errs
	}
	byValue := func(x, y *host.Message[[]byte]) int { return strings.Compare(string(x.Value), string(y.Value)) }
	for name, tt := range map[string]struct {
		f    func(ms messages) []error
		want string // of c, b, a, d, in any order
	}{
		"sorted":             {func(ms messages) []error { slices.SortFunc(ms, byValue); return bad(ms) }, "1 ack, 2 ack, 3 reject, 4 ack"},
		"sorted, all acked":  {func(ms messages) []error { slices.SortFunc(ms, byValue); return nil }, "1 ack, 2 ack, 3 ack, 4 ack"},
		"emptied, all acked": {func(ms messages) []error { clear(ms); return nil }, "1 ack, 2 ack, 3 ack, 4 ack"},
		"one taken out": {func(ms messages) []error {
			return bad(slices.DeleteFunc(ms, func(m *host.Message[[]byte]) bool { return string(m.Value) == "b" }))
		}, "1 ack, 2 reject, 3 reject, 4 ack"}, // the second is retried, over its cap
		"one twice":   {func(ms messages) []error { ms[0] = ms[2]; return bad(ms) }, "1 reject, 2 ack, 3 reject, 4 ack"},
		"a clone":     {func(ms messages) []error { ms[0] = ms[0].Clone(); return bad(ms) }, "1 reject, 2 ack, 3 reject, 4 ack"},
		"a foreigner": {func(ms messages) []error { ms[3] = new(host.Message[[]byte]); return bad(ms) }, "1 ack, 2 ack, 3 reject, 4 reject"},
		"panic after": {func(ms messages) []error { clear(ms); panic("no") }, "1 reject, 2 reject, 3 reject, 4 reject"},
	} {
		t.Run(name, func(t *testing.T) {
			onBroker(t, func(_ *host.Host, in *host.Endpoint) {
				host.HandleBatch(in.Subscription("orders"), 4, time.Second,
					func(_ context.Context, ms messages) []error { return tt.f(ms) }, host.MaxAttempts(1))
			}, func(b *hosttest.Broker, s *hosttest.Service) {
				b.Deliver("orders", hosttest.Text("c"), hosttest.Text("b"), hosttest.Text("a"), hosttest.Text("d"))
				s.Wait()
				var got []string
				for _, v := range b.Verdicts("orders") {
					got = append(got, v.String())
				}
				slices.Sort(got)
				if got := strings.Join(got, ", "); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			})
		})
	}
}
