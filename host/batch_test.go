// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

// joined are the values of a batch.
func joined(ms []*host.Message[[]byte]) string {
	var out []string
	for _, m := range ms {
		out = append(out, string(m.Value))
	}
	return strings.Join(out, "+")
}

// A batch runs when it is full, when its time is over, and when the window lets
// nothing more in.
func TestBatches(t *testing.T) {
	for name, c := range map[string]struct {
		max, window int
		put         []string
		want        []string // when and what
	}{
		"full":                  {max: 2, put: []string{"a", "b", "c", "d"}, want: []string{"0s a+b", "0s c+d"}},
		"its time is over":      {max: 3, put: []string{"a", "b", "c", "d"}, want: []string{"0s a+b+c", "5s d"}},
		"nothing more can come": {max: 10, window: 2, put: []string{"a", "b", "c"}, want: []string{"0s a+b", "5s c"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := newQueues()
				s := newService()
				var began time.Time
				var got []string
				host.HandleBatch(attach(s.Host, "in", in).Subscription("orders", host.Window(c.window, 0)), c.max, 5*time.Second,
					func(_ context.Context, ms []*host.Message[[]byte]) []error {
						got = append(got, fmt.Sprintf("%v %s", time.Since(began), joined(ms)))
						return nil
					})
				in.put("orders", c.put...)
				began = time.Now()
				s.run(t)
				time.Sleep(time.Minute)
				s.stop()
				if err := <-s.done; err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("batches (-want +got):\n%s", diff)
				}
				if n := len(in.verdicts("orders")); n != len(c.put) {
					t.Errorf("%d are settled, want %d", n, len(c.put))
				}
			})
		})
	}
}

// What user code does with a batch counts for every element of it.
func TestBatchesThatThrow(t *testing.T) {
	for name, c := range map[string]struct {
		handle func(ctx context.Context) []error
		rules  []host.Rule
		log    string
	}{
		"panic":             {handle: func(context.Context) []error { panic("ouch") }, log: "panic=ouch"},
		"Goexit":            {handle: func(context.Context) []error { runtime.Goexit(); return nil }, log: "runtime.Goexit"},
		"a panic as errors": {handle: func(context.Context) []error { e := &host.PanicError{Value: "ouch"}; return []error{e, e} }, log: "panic=ouch"},
		"its time is over": {handle: func(ctx context.Context) []error {
			<-ctx.Done()
			return []error{host.Drop(ctx.Err()), host.Drop(ctx.Err())}
		},
			rules: []host.Rule{host.Timeout(time.Second)}, log: "deadline exceeded"},
		"no entry at all": {handle: func(context.Context) []error { return []error{} }, rules: []host.Rule{host.MaxAttempts(1)}, log: "expected=2 returned=0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := newQueues()
				s := newService()
				calls := 0
				host.HandleBatch(attach(s.Host, "in", in).Subscription("orders"), 2, time.Second,
					func(ctx context.Context, ms []*host.Message[[]byte]) []error {
						if calls++; calls > 1 {
							return nil
						}
						return c.handle(ctx)
					}, append(c.rules, host.OnPanic(host.AsDrop))...)
				in.put("orders", "a", "b", "c", "d")
				s.run(t)
				time.Sleep(time.Minute)
				s.stop()
				if err := <-s.done; err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff([]string{"ack c", "ack d", "reject a", "reject b"}, in.verdicts("orders")); diff != "" {
					t.Errorf("verdicts (-want +got):\n%s", diff)
				}
				if len(s.log.lines(c.log)) == 0 {
					t.Errorf("nothing tells of %q", c.log)
				}
			})
		})
	}
}

// Codecs that throw are beside the batch, and so is a message whose key cannot be
// told.
func TestBatchesOfMessagesThatCannotBeOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newQueues()
		s := newService(host.WithCodec(csvLines))
		var got []string
		host.HandleBatch(attach(s.Host, "in", in).Subscription("lines"), 10, time.Second,
			func(_ context.Context, ms []*host.Message[line]) []error {
				for _, m := range ms {
					got = append(got, m.Value.A)
				}
				return nil
			}, host.OnPanic(host.AsAck), host.DefaultContentType("text/csv"), host.Workers(2),
			host.ByKeyFunc(func(m core.Message) string {
				if strings.HasPrefix(string(m.Payload), "key") {
					panic("no key")
				}
				return ""
			}))
		in.put("lines", "a,1", "panic,1", "wrong", "key,1", "b,1")
		s.run(t)
		time.Sleep(time.Minute)
		s.stop()
		if err := <-s.done; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" {
			t.Errorf("handled (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"ack a,1", "ack b,1", "ack key,1", "ack panic,1", "reject wrong"}, in.verdicts("lines")); diff != "" {
			t.Errorf("verdicts (-want +got):\n%s", diff)
		}
	})
}

// Each acked element is forwarded, and held back until it is; hooks and
// OnNotAcked are per element.
func TestBatchesForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newQueues()
		s := newService()
		var told, undone tale
		host.HandleBatch(attach(s.Host, "in", in).Subscription("orders"), 3, time.Second,
			func(_ context.Context, ms []*host.Message[[]byte]) []error {
				errs := make([]error, len(ms))
				for i, m := range ms {
					m.OnNotAcked(func(err error) { undone.add("%v", err) })
					m.Replace([]byte(strings.ToUpper(string(m.Value))))
					if string(m.Value) == "b" {
						errs[i] = host.Drop(errors.New("bad"))
					}
				}
				return errs
			}, host.Forward(dest("", "out")), host.AfterSettle(told.settled))
		in.put("orders", "a", "b", "c")
		s.run(t)
		time.Sleep(time.Minute)
		s.stop()
		if err := <-s.done; err != nil {
			t.Error(err)
		}
		var out []string
		for _, m := range in.took("out") {
			out = append(out, string(m.Payload))
		}
		if diff := cmp.Diff([]string{"A", "C"}, out); diff != "" {
			t.Errorf("forwarded (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"bad"}, undone.all()); diff != "" {
			t.Errorf("not acked (-want +got):\n%s", diff)
		}
		want := []string{"settled a 1 ack acked <nil>", "settled b 1 drop dropped bad", "settled c 1 ack acked <nil>"}
		if diff := cmp.Diff(want, told.all()); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}

func TestBatchesThatAreRefused(t *testing.T) {
	handle := func(context.Context, []*host.Message[[]byte]) []error { return nil }
	s := newService()
	in := attach(s.Host, "in", newQueues())
	host.HandleBatch(in.Subscription("none"), 0, time.Second, handle)
	host.HandleBatch(in.Subscription("many"), 100_001, time.Second, handle)
	host.HandleBatch(in.Subscription("now"), 1, 0, handle)
	host.HandleBatch[[]byte](in.Subscription("nothing"), 1, time.Second, nil)
	host.HandleBatch(in.Subscription("replies"), 1, time.Second, handle, host.ReplyTo(in.To("x")))
	two := in.Subscription("two")
	host.HandleBatch(two, 1, time.Second, handle)
	host.HandleReply(two, twice)
	e := startError(t, s)
	want := []string{
		"many: HandleBatch", "none: HandleBatch", "nothing: HandleBatch", "now: HandleBatch", "replies: ReplyTo", "two: HandleReply",
	}
	if diff := cmp.Diff(want, options(e)); diff != "" {
		t.Errorf("findings (-want +got):\n%s\n%v", diff, e)
	}
}
