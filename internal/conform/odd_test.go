// SPDX-License-Identifier: Apache-2.0

package conform_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/conform"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/memtest"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// odd is a transport that the protocol allows and few have seen.
type odd struct {
	name        string
	source      settings.Source
	destination settings.Destination
	inject      bool
	collect     bool
	fixed       bool // no case has a name of its own
	only        []string
}

// whole are the cases that meet every transport.
var whole = []string{"inspect/", "credit/", "settle/", "honesty/", "unsettled/", "publish/", "copy/", "stop/", "kill/", "process/long", "process/beats", "process/signals"}

func odds() []odd {
	publishing := []string{"publish/", "copy/", "honesty/deliver-after", "settle/requeue", "settle/order", "credit/bytes", "process/long"}
	none := source(core.Capabilities{Order: core.OrderTotal})
	unordered := source(core.Capabilities{
		Ack: core.AckSingle, Requeue: core.RequeueDelayed, Reject: core.RejectDeadLetters, Unsettled: core.UnsettledOnTimeout, MaxHold: hold, MaxDelay: time.Second,
	})
	return []odd{
		{name: "small", destination: settings.Destination{MaxBytes: 256, MaxHeaders: 1}, only: whole},
		{name: "no headers", destination: settings.Destination{Headers: "none"}, only: publishing},
		{name: "text headers", destination: settings.Destination{Headers: "native-text", NoRepeats: true, MaxHeaders: 2}, only: publishing},
		{name: "enveloped", destination: settings.Destination{Headers: "enveloped", Dedups: true, MaxDelay: core.Duration(5 * time.Second)}, only: publishing},
		{name: "short delay", destination: settings.Destination{MaxDelay: core.Duration(time.Millisecond)}, only: []string{"publish/deliver-after", "honesty/deliver-after"}},
		{name: "nothing kept, nothing confirmed", source: none, destination: settings.Destination{Confirms: "nothing", Retains: "nothing", Headers: "none"}, only: whole},
		{name: "kept by the process", source: source(settings.KindU()), destination: settings.Destination{Confirms: "queued", Retains: "process"}, only: whole},
		{name: "handed over", source: none, destination: settings.Destination{Confirms: "handed-over", Retains: "nothing"}, only: publishing},
		{name: "unordered", source: unordered, only: []string{"settle/", "unsettled/", "honesty/", "credit/", "publish/order", "stop/"}},
		{name: "read only", destination: settings.Destination{Refuse: "read only"}, inject: true, only: whole},
		{name: "write only", source: settings.Source{Refuse: "write only"}, collect: true, only: append(slices.Clone(whole), "setup/", "leak/")},
		{name: "inject and collect", source: source(settings.KindK()), inject: true, collect: true, only: []string{"publish/", "copy/", "credit/", "stop/"}},
		{name: "one name", fixed: true, only: []string{"credit/", "settle/requeue", "unsettled/after-close", "publish/receipts"}},
	}
}

// TestOdd proves transports that promise little, or strange things, and keep it.
func TestOdd(t *testing.T) {
	places := make(chan struct{}, 3)
	for _, o := range odds() {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			runOdd(t, o)
		})
	}
}

func runOdd(t *testing.T, o odd) {
	b := memtest.Start(t)
	s := conform.Subject{
		Path: b.Path, Settings: b.Settings.WithSource(settings.Rest, o.source).WithDestination(settings.Rest, o.destination),
		Quiet: 100 * time.Millisecond, MaxHold: 2 * hold,
	}
	if o.inject {
		s.Inject = func(_ context.Context, at conform.Place, ms []core.Message) error {
			for _, m := range ms {
				b.Publish(at.Name, memory.Message{Headers: m.Headers, Payload: m.Payload})
			}
			return nil
		}
	}
	if o.collect {
		s.Destination = "out-" + conform.CaseWord
		s.Collect = func(ctx context.Context, at conform.Place, ready func(), got func(core.Message)) error {
			ready()
			for seen := 0; ; {
				var ms []memory.Message
				err := b.Wait(ctx, "a message", func(v memory.View) bool {
					ms = v.Published(at.Name)[seen:]
					return len(ms) > 0
				})
				if err != nil {
					return errors.Join(err, ctx.Err())
				}
				for _, m := range ms {
					got(core.Message{Name: at.Name, Headers: m.Headers, Payload: m.Payload})
				}
				seen += len(ms)
			}
		}
	}
	if o.fixed {
		s.Subscription = "fixed"
	}
	r, err := conform.Run(t.Context(), s, conform.Options{Parallel: 8, Only: func(id string) bool {
		// The largest payloads take their time, and nothing of them is odd.
		if o.destination.MaxBytes == 0 && (id == "publish/payload-5mib" || id == "publish/payload-max" || id == "publish/payload-over") {
			return false
		}
		return slices.ContainsFunc(o.only, func(begin string) bool { return strings.HasPrefix(id, begin) })
	}})
	if err != nil {
		t.Fatal(err)
	}
	honest(t, r)
}
