// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// What a source takes back before it could be handled is found at the start,
// where its holds cannot be prolonged.
func TestHoldsThatAreTooShort(t *testing.T) {
	lease := hosttest.Lease()
	prolonged := lease
	prolonged.Extend = true
	for name, c := range map[string]struct {
		source core.Capabilities
		wait   time.Duration
		window int
		rules  []host.Rule
		want   string // "" = nothing
		warns  bool
	}{
		"batch":            {lease, 30 * time.Second, 0, nil, "HandleBatch: a batch that does not become full is handled after 30s, and the source takes a delivery back after 30s", false},
		"short batch":      {lease, 29 * time.Second, 0, nil, "", false},
		"prolonged batch":  {prolonged, time.Hour, 0, nil, "", false},
		"batch of a queue": {hosttest.Queue(), time.Hour, 0, nil, "", false},
		"rate": {lease, 0, 0, []host.Rule{host.RateLimit(2, 1)},
			"at 2 a second the last of a full window of 1024 is begun after 8m32s, and the source takes a delivery back after 30s", true},
		"high rate":      {lease, 0, 0, []host.Rule{host.RateLimit(1000, 1)}, "", true},
		"small window":   {lease, 0, 30, []host.Rule{host.RateLimit(2, 1)}, "", true},
		"prolonged rate": {prolonged, 0, 0, []host.Rule{host.RateLimit(2, 1)}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := hosttest.NewBroker()
			book := &logBook{}
			h := host.New(b.Replace(), host.WithLogger(slog.New(slog.NewTextHandler(book, nil))))
			var options []host.SubscriptionOption
			if c.window > 0 {
				options = append(options, host.Window(c.window, 0))
			}
			orders := h.Endpoint("in", b.Plugin(c.source), nil).Subscription("orders", options...)
			b.Source("orders", c.source)
			if c.wait > 0 {
				host.HandleBatch(orders, 10, c.wait, func(context.Context, []*host.Message[[]byte]) []error { return nil }, c.rules...)
			} else {
				host.Handle(orders, func(context.Context, *host.Message[[]byte]) error { return nil }, c.rules...)
			}
			stop, err := hosttest.Serve(h)
			refused := c.want != "" && !c.warns
			switch {
			case refused && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			case !refused && err != nil:
				t.Error(err)
			}
			warned := book.lines("level=WARN", "option=RateLimit")
			if want := c.warns && c.want != ""; want != (len(warned) == 1) || want && !strings.Contains(warned[0], c.want) {
				t.Errorf("warned %v, want %q", warned, c.want)
			}
			if err == nil {
				if err := stop(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
