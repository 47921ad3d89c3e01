// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

// named is middleware that tells when it is entered and left.
func named(told *tale, name string) func(host.Next) host.Next {
	return func(next host.Next) host.Next {
		return func(ctx context.Context, m host.Incoming) error {
			told.add("%s in", name)
			err := next(context.WithValue(ctx, ctxKey(name), name), m)
			told.add("%s out %v", name, err)
			return err
		}
	}
}

type ctxKey string

// The first is outermost, all of them see the message without its type, and what
// they put into the context reaches the handler.
func TestMiddleware(t *testing.T) {
	in := newQueues()
	s := newService()
	var told tale
	look := func(next host.Next) host.Next {
		return func(ctx context.Context, m host.Incoming) error {
			if _, limited := ctx.Deadline(); !limited {
				t.Error("middleware runs outside of the rule Timeout")
			}
			told.add("%s %s %s/%s %s attempt %d last %v snoozes %d published %v", m.Name(), m.Header("X-A"), m.Endpoint(), m.Subscription(),
				m.Payload(), m.Attempt(), m.Last(), m.Snoozes(), !m.Published().IsZero())
			return next(ctx, m)
		}
	}
	host.Handle(attach(s.Host, "in", in).Subscription("orders"), func(ctx context.Context, m *host.Message[order]) error {
		told.add("handler %d %v %v", m.Value.ID, ctx.Value(ctxKey("one")), ctx.Value(ctxKey("two")))
		return host.Drop(nil)
	}, host.MaxAttempts(2), host.Timeout(time.Minute), host.Middleware(named(&told, "one"), look, named(&told, "two")))
	s.serve(t)
	in.take(core.Message{Name: "orders", Payload: []byte(`{"id":7}`), Headers: core.Headers{{Name: "x-a", Value: []byte("1")}}}, nil)
	put(in, "orders", "", "{") // undecodable: middleware does not run
	eventually(t, "both are settled", func() bool { return len(in.verdicts("orders")) == 2 })
	want := []string{
		"one in", `orders 1 in/orders {"id":7} attempt 1 last false snoozes 0 published false`, "two in",
		"handler 7 one two", "two out drop", "one out drop",
	}
	if diff := cmp.Diff(want, told.lines); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

type order struct {
	ID int `json:"id"`
}

// What middleware returns is the outcome, whatever the handler said.
func TestMiddlewareDecides(t *testing.T) {
	stranger := make(chan host.Incoming, 1)
	for name, c := range map[string]struct {
		wrap func(next host.Next, ctx context.Context, m host.Incoming) error
		want string
		log  string // a part of a line; "" = none is asked for
	}{
		"nil without the handler acks": {
			func(host.Next, context.Context, host.Incoming) error { return nil }, "ack x", "",
		},
		"an error in place of an ack": {
			func(next host.Next, ctx context.Context, m host.Incoming) error {
				return errors.Join(next(ctx, m), host.DeadLetter(errors.New("why")))
			}, "ack x", "code=L-ERR",
		},
		"an embedded message stands for itself": {
			func(next host.Next, ctx context.Context, m host.Incoming) error {
				return next(ctx, struct{ host.Incoming }{m})
			}, "ack x", "",
		},
		"no message": {
			func(next host.Next, ctx context.Context, _ host.Incoming) error { return next(ctx, nil) }, "ack x",
			"middleware passed on a message that is not the one",
		},
		"a message of another subscription": {
			func(next host.Next, ctx context.Context, _ host.Incoming) error {
				return next(ctx, <-stranger)
			}, "ack x", "middleware passed on a message that is not the one",
		},
		"twice is twice": {
			func(next host.Next, ctx context.Context, m host.Incoming) error {
				return errors.Join(next(ctx, m), next(ctx, m))
			}, "ack x", "",
		},
		"a context of its own": {
			func(next host.Next, _ context.Context, m host.Incoming) error { return next(context.Background(), m) }, "ack x", "",
		},
		"a panic is the handler's": {
			func(host.Next, context.Context, host.Incoming) error { panic("ouch") }, "ack x", "panic=ouch",
		},
		"Goexit is the handler's": {
			func(host.Next, context.Context, host.Incoming) error { runtime.Goexit(); return nil }, "ack x", "runtime.Goexit",
		},
		"a panic that was recovered is one": {
			func(host.Next, context.Context, host.Incoming) error {
				return errors.Join(errors.New("more"), &host.PanicError{Value: "ouch", Stack: "here"})
			}, "ack x", "panic=ouch stack=here",
		},
		"an outcome around a panic holds": {
			func(host.Next, context.Context, host.Incoming) error {
				return host.Drop(&host.PanicError{Value: "ouch"})
			}, "reject x", "code=L-ERR",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := newQueues()
			s := newService()
			e := attach(s.Host, "in", in)
			host.Handle(e.Subscription("orders"), acks, host.MaxAttempts(1), host.DeadLetterTo(e.To("q")), host.OnPanic(host.AsAck),
				host.Middleware(func(next host.Next) host.Next {
					return func(ctx context.Context, m host.Incoming) error { return c.wrap(next, ctx, m) }
				}))
			select {
			case <-stranger:
			default:
			}
			stranger <- &host.Message[[]byte]{}
			s.serve(t)
			in.put("orders", "x")
			eventually(t, "it is settled", func() bool { return len(in.verdicts("orders")) == 1 })
			if got := in.verdicts("orders")[0]; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if c.log != "" && len(s.log.lines(c.log)) != 1 {
				t.Errorf("%d lines with %q, want one", len(s.log.lines(c.log)), c.log)
			}
		})
	}
}

// With Forward and no handler there is middleware all the same.
func TestMiddlewareWithoutHandler(t *testing.T) {
	in := newQueues()
	s := newService()
	var told tale
	host.Handle[[]byte](attach(s.Host, "in", in).Subscription("orders"), nil, host.Forward(dest("", "out")), host.Middleware(named(&told, "one")))
	s.serve(t)
	in.put("orders", "x")
	eventually(t, "it is forwarded", func() bool { return len(in.took("out")) == 1 })
	if diff := cmp.Diff([]string{"one in", "one out <nil>"}, told.lines); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestMiddlewareThatIsRefused(t *testing.T) {
	same := func(next host.Next) host.Next { return next }
	for name, c := range map[string]struct {
		rules []host.Rule
		say   string
	}{
		"nil":               {[]host.Rule{host.Middleware(same, nil)}, "number 2 is nil"},
		"returns nil":       {[]host.Rule{host.Middleware(same, func(host.Next) host.Next { return nil }, same)}, "number 2 returned nil"},
		"panics when built": {[]host.Rule{host.Middleware(func(host.Next) host.Next { panic("no") }, same)}, "number 1 cannot be built: no"},
		"given twice":       {[]host.Rule{host.Middleware(same), host.Middleware(same)}, "given twice"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService()
			host.Handle(attach(s.Host, "in", newQueues()).Subscription("orders"), acks, c.rules...)
			e := startError(t, s)
			if len(e.Findings) != 1 || !strings.Contains(e.Findings[0].Message, c.say) || len(e.Findings[0].Places) == 0 {
				t.Errorf("got %v, want one finding with %q", e, c.say)
			}
		})
	}
	t.Run("with batches", func(t *testing.T) {
		s := newService()
		host.HandleBatch(attach(s.Host, "in", newQueues()).Subscription("orders"), 10, time.Second,
			func(context.Context, []*host.Message[[]byte]) []error { return nil }, host.Middleware(same))
		e := startError(t, s)
		if len(e.Findings) != 1 || !strings.Contains(e.Findings[0].Message, "HandleBatch") || len(e.Findings[0].Places) != 2 {
			t.Errorf("got %v, want one finding with both places", e)
		}
	})
}
