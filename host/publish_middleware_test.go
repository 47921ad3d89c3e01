// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// around is middleware that is f.
func around(f func(ctx context.Context, o *host.Outgoing, next host.PublishNext) (host.Receipt, error)) func(host.PublishNext) host.PublishNext {
	return func(next host.PublishNext) host.PublishNext {
		return func(ctx context.Context, o *host.Outgoing) (host.Receipt, error) { return f(ctx, o, next) }
	}
}

// marks is middleware that writes its name into a header.
func marks(name string) func(host.PublishNext) host.PublishNext {
	return around(func(ctx context.Context, o *host.Outgoing, next host.PublishNext) (host.Receipt, error) {
		o.SetHeader("path", o.Header("PATH")+name)
		return next(ctx, o)
	})
}

func TestPublishMiddlewareRunsOutermostFirst(t *testing.T) {
	x := newExchange(t, settings.Settings{}, host.WithPublishMiddleware(marks("a"), marks("b")))
	p := host.To[core.Message](x.Host, x.mem.To("out"), host.PublishMiddleware(marks("c"), marks("d")))
	other := host.To[core.Message](x.Host, x.mem.To("other"))
	x.serve(t)
	own := core.Headers{{Name: "Path", Value: []byte("-")}, {Name: "x", Value: []byte("1")}}
	for _, p := range []*host.Publisher[core.Message]{p, other} {
		if _, err := p.Publish(x.ctx, core.Message{Headers: own}); err != nil {
			t.Fatal(err)
		}
		pending, err := p.PublishAsync(x.ctx, core.Message{Headers: own})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pending.Receipt(x.ctx); err != nil {
			t.Fatal(err)
		}
	}
	for queue, want := range map[string]string{"out": "-abcd", "other": "-ab"} {
		for _, m := range x.Published(queue) {
			if got, _ := m.Header("path"); got != want || len(m.Headers) != 2 {
				t.Errorf("%s: headers %v, want path %s", queue, m.Headers, want)
			}
		}
	}
	if string(own[0].Value) != "-" {
		t.Errorf("the caller's headers are %v now", own)
	}
}

var errUnwilling = errors.New("unwilling")

// TestPublishMiddlewareThatMisbehaves: what the caller is told, and what leaves.
func TestPublishMiddlewareThatMisbehaves(t *testing.T) {
	type say = func(ctx context.Context, o *host.Outgoing, next host.PublishNext) (host.Receipt, error)
	for name, c := range map[string]struct {
		does  say
		now   string // what Publish says
		later string // what PublishAsync says
		sent  int    // how many left, of one Publish and one PublishAsync
	}{
		"does nothing": {func(ctx context.Context, o *host.Outgoing, next host.PublishNext) (host.Receipt, error) {
			return host.Receipt{Position: []byte("mine")}, nil
		}, "mine", "mine", 0},
		"refuses": {func(ctx context.Context, o *host.Outgoing, next host.PublishNext) (host.Receipt, error) {
			return host.Receipt{}, errUnwilling
		}, "publish to out@mem: unwilling", "publish to out@mem: unwilling", 0},
		"fails what it has passed on": {func(ctx context.Context, o *host.Outgoing, next host.PublishNext) (host.Receipt, error) {
			_, _ = next(ctx, o)
			return host.Receipt{}, errUnwilling
		}, "publish to out@mem (it may have been sent): unwilling", "publish to out@mem (it may have been sent): unwilling", 2},
		"passes it on twice": {func(ctx context.Context, o *host.Outgoing, next host.PublishNext) (host.Receipt, error) {
			if _, err := next(ctx, o); err != nil {
				return host.Receipt{}, err
			}
			return next(ctx, o)
		}, "", "publish to out@mem (it may have been sent): the message has left already; middleware may pass it on once here", 3},
		"tries again": {func(ctx context.Context, o *host.Outgoing, next host.PublishNext) (host.Receipt, error) {
			delay := o.Delay
			o.Delay = time.Hour // which the destination cannot
			if _, err := next(ctx, o); err == nil {
				return host.Receipt{}, errors.New("it was delayed")
			}
			o.Delay = delay
			return next(ctx, o)
		}, "", "", 2},
		"makes a message of its own": {func(ctx context.Context, o *host.Outgoing, next host.PublishNext) (host.Receipt, error) {
			return next(ctx, &host.Outgoing{To: o.To, Message: o.Message})
		}, "publish to out@mem: middleware must pass on the Outgoing that it was given", "publish to out@mem: middleware must pass on the Outgoing that it was given", 0},
		"passes on nil": {func(ctx context.Context, o *host.Outgoing, next host.PublishNext) (host.Receipt, error) {
			return next(ctx, nil)
		}, "publish to out@mem: middleware must pass on the Outgoing that it was given", "publish to out@mem: middleware must pass on the Outgoing that it was given", 0},
		"changes the destination": {func(ctx context.Context, o *host.Outgoing, next host.PublishNext) (host.Receipt, error) {
			o.To.Name = "elsewhere"
			return next(ctx, o)
		}, "publish to out@mem: middleware changed the destination to elsewhere@mem; publish to it with a publisher of its own", "publish to out@mem: middleware changed the destination to elsewhere@mem; publish to it with a publisher of its own", 0},
		"panics": {func(ctx context.Context, o *host.Outgoing, next host.PublishNext) (host.Receipt, error) {
			panic("boom")
		}, "panic boom", "panic boom", 0},
		"panics after all": {func(ctx context.Context, o *host.Outgoing, next host.PublishNext) (host.Receipt, error) {
			_, _ = next(ctx, o)
			panic("boom")
		}, "panic boom", "panic boom", 2},
	} {
		t.Run(name, func(t *testing.T) {
			x := newExchange(t, settings.Settings{})
			p := host.To[[]byte](x.Host, x.mem.To("out"), host.InFlight(1, 1<<20), host.PublishMiddleware(around(c.does)))
			x.serve(t)
			said := func(f func() (host.Receipt, error)) (text string) {
				defer func() {
					if v := recover(); v != nil {
						text = fmt.Sprint("panic ", v)
					}
				}()
				r, err := f()
				if err != nil {
					failure(t, err)
					return err.Error()
				}
				if len(r.Position) > 0 && string(r.Position) == "mine" {
					return "mine"
				}
				return ""
			}
			now := said(func() (host.Receipt, error) { return p.Publish(x.ctx, []byte("m")) })
			later := said(func() (host.Receipt, error) {
				pending, err := p.PublishAsync(x.ctx, []byte("m"))
				if err != nil {
					return host.Receipt{}, err
				}
				return pending.Receipt(x.ctx)
			})
			if diff := cmp.Diff([]string{c.now, c.later}, []string{now, later}); diff != "" {
				t.Error(diff)
			}
			eventually(t, "all receipts are there", func() bool { return x.Health().Endpoints[0].Published.Missing == 0 })
			if got := len(x.Published("out")); got != c.sent {
				t.Errorf("%d messages left, want %d", got, c.sent)
			}
			if n := len(x.Published("elsewhere")); n != 0 {
				t.Errorf("%d messages went elsewhere", n)
			}
		})
	}
}

// TestPublishMiddlewareTriesAgain: middleware that tries again sees each failure
// with what it means.
func TestPublishMiddlewareTriesAgain(t *testing.T) {
	var seen []string
	x := newExchange(t, settings.Settings{}, host.WithPublishMiddleware(
		around(func(ctx context.Context, o *host.Outgoing, next host.PublishNext) (host.Receipt, error) {
			for {
				r, err := next(ctx, o)
				var e *host.PublishError
				if err == nil || !errors.As(err, &e) || e.MaybeSent {
					return r, err
				}
				seen = append(seen, e.Err.Error())
			}
		})))
	p := host.To[[]byte](x.Host, x.mem.To("out"))
	x.serve(t)
	x.FailPublishes("out", memory.PublishFault{Times: 2, Status: memory.PublishRefused})
	if _, err := p.Publish(x.ctx, []byte("m")); err != nil {
		t.Error(err)
	}
	if len(seen) != 2 || !strings.Contains(seen[0], "on command") {
		t.Errorf("seen %v", seen)
	}
	x.FailPublishes("out", memory.PublishFault{Times: 1, Status: memory.PublishUnknown})
	_, err := p.Publish(x.ctx, []byte("m"))
	if e := failure(t, err); !e.MaybeSent {
		t.Errorf("got %v", e)
	}
}
