// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
)

// Each message of a batch has a span of its own; one alone gives the handler its
// context.
func TestTracerOfBatches(t *testing.T) {
	for name, c := range map[string]struct {
		n    int
		f    func(ctx context.Context, ms []*host.Message[[]byte]) []error
		want []string
	}{
		"all right": {2, func(context.Context, []*host.Message[[]byte]) []error { return nil },
			[]string{"handled >in/orders/0: <nil>, 0", "handled >in/orders/1: <nil>, 1"}},
		"one by one": {3, func(context.Context, []*host.Message[[]byte]) []error {
			return []error{nil, host.Drop(errors.New("bad"))}
		}, []string{
			"handled >in/orders/0: <nil>, 0", "handled >in/orders/1: bad, 1",
			"handled >in/orders/2: the handler returned no entry for it, 2",
		}},
		"a panic": {2, func(context.Context, []*host.Message[[]byte]) []error { panic("boom") },
			[]string{"handled >in/orders/0: it panicked, 0", "handled >in/orders/1: it panicked, 1"}},
		"alone": {1, func(ctx context.Context, _ []*host.Message[[]byte]) []error {
			return []error{host.Drop(errors.New(ctx.Value(spanKey{}).(string)))}
		}, []string{"handled >in/orders/0: >in/orders/0, 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told spans
				g := &gauge{}
				q := newQueues()
				s := newService(host.WithTracer(&told), host.WithMeter(g))
				host.HandleBatch(attach(s.Host, "in", q).Subscription("orders"), c.n, time.Second, c.f, host.MaxAttempts(1))
				s.run(t)
				synctest.Wait()
				for i := range c.n {
					q.put("orders", fmt.Sprint(i))
				}
				time.Sleep(2 * time.Second)
				s.stop()
				if err := s.result(t); err != nil {
					t.Error(err)
				}
				if d := cmp.Diff(c.want, told.all()); d != "" {
					t.Errorf("told (-want +got):\n%s", d)
				}
				handled := 0
				for _, line := range g.all() {
					if strings.HasPrefix(line, "handled in/orders attempt 1: ") {
						handled++
					}
				}
				if handled != c.n {
					t.Errorf("the meter was told of %d handled messages, want %d: %v", handled, c.n, g.all())
				}
			})
		})
	}
}
