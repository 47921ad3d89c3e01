// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// TestBatchesHoldBackForEachElement: what belongs to an element that fails does
// not leave.
func TestBatchesHoldBackForEachElement(t *testing.T) {
	x := newExchange(t, settings.Settings{}.With("orders", settings.KindA()))
	out := host.To[[]byte](x.Host, x.mem.To("out"))
	host.HandleBatch(x.mem.Subscription("orders"), 3, time.Second, func(_ context.Context, ms []*host.Message[[]byte]) []error {
		errs := make([]error, len(ms))
		for i, m := range ms {
			if err := out.PublishWith(m, m.Value); err != nil {
				t.Error(err)
			}
			if string(m.Value) == "two" {
				errs[i] = host.Drop(errors.New("unwanted"))
			}
		}
		return errs
	}, host.Publishes(out))
	x.Publish("orders", memory.Text("one"), memory.Text("two"), memory.Text("three"))
	x.serve(t)
	x.settled(t, "orders")
	if diff := cmp.Diff([]string{"one", "three"}, x.texts("out")); diff != "" {
		t.Error(diff)
	}
	if a := x.Account("orders"); a.Acked != 2 || a.Rejected != 1 {
		t.Errorf("account: %v", a)
	}
}

// TestHeldBackOverKills kills both plugins again and again while deliveries hold
// two publishes back: in the end each delivery is acked and each of its two
// messages arrived, some of them twice.
func TestHeldBackOverKills(t *testing.T) {
	b := newBench(t)
	s := b.service(host.WithRestartBackoff(time.Millisecond, time.Millisecond), host.WithBreaker(100, time.Minute))
	in := b.attach(s.Host, "in", b.Settings.With("orders", settings.KindA()))
	other := b.attach(s.Host, "other", b.Settings)
	here, there := host.To[[]byte](s.Host, in.To("here")), host.To[[]byte](s.Host, other.To("there"))
	var handled atomic.Int64
	host.Handle(in.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		handled.Add(1)
		if err := here.PublishWith(m, m.Value); err != nil {
			return err
		}
		return there.PublishWith(m, m.Value)
	}, host.Publishes(here, there), host.Backoff(host.Constant(5*time.Millisecond)))
	const n = 2000
	var want sync.Map
	for i := range n {
		text := strings.Repeat("x", i%50) + string(rune('0'+i%10)) + time.Duration(i).String()
		want.Store(text, true)
		b.Publish("orders", memory.Text(text))
	}
	s.serve(t)
	for i := range 6 {
		c, err := b.Client(b.ctx, []string{"in", "other"}[i%2])
		b.must(t, err)
		before := handled.Load()
		if err := b.Wait(b.ctx, "some are handled", func(v memory.View) bool {
			a := v.Account("orders")
			return handled.Load() > before+100 || a.Queued+a.Outstanding == 0
		}); err != nil {
			t.Fatal(err)
		}
		b.must(t, c.Kill())
	}
	b.must(t, b.Wait(b.ctx, "all is settled", func(v memory.View) bool {
		a := v.Account("orders")
		return a.Queued == 0 && a.Outstanding == 0
	}))
	if a := b.Account("orders"); a.Lost != 0 || a.Rejected != 0 {
		t.Errorf("account: %v", a)
	}
	for _, queue := range []string{"here", "there"} {
		came := make(map[string]bool)
		for _, m := range b.Published(queue) {
			came[string(m.Payload)] = true
		}
		want.Range(func(text, _ any) bool {
			if !came[text.(string)] {
				t.Errorf("%v did not come to %s", text, queue)
			}
			return true
		})
	}
}
