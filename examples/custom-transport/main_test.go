// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
)

// The transport runs in the test's own process, in the host that a service would
// have; what the service publishes goes to a broker in the test. The numbers end,
// so the host ends by itself.
func TestServiceOnTheTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		h := host.New(hosttest.Logger(t))
		numbers := h.Endpoint("numbers", host.Plugin{InProcess: new(ticks)}, map[string]any{"count": 4})
		out := h.Endpoint("out", b.Plugin(), nil)
		began, took := time.Now(), time.Duration(0)
		host.Handle(numbers.Subscription("numbers"), func(_ context.Context, m *host.Message[int]) error {
			if took = time.Since(began); m.Value == 3 && took < time.Minute {
				return host.RetryAfter(time.Hour, errors.New("three is late"))
			}
			m.Replace(fmt.Append(nil, m.Value*m.Value))
			return nil
		}, host.Forward(out.To("squares")))
		if err := hosttest.Start(t, h, b).Ended(); err != nil {
			t.Error(err)
		}
		if got := fmt.Sprint(b.Published("squares")); got != `["1" "4" "16" "9"]` {
			t.Errorf("got %s", got)
		}
		if took != time.Hour {
			t.Errorf("three came again after %v", took)
		}
	})
}

// Settings are checked before anything is connected.
func TestSettingsAreChecked(t *testing.T) {
	h := host.New(hosttest.Logger(t))
	numbers := h.Endpoint("numbers", host.Plugin{InProcess: new(ticks)}, map[string]any{"count": 0})
	host.Handle(numbers.Subscription("numbers"), func(context.Context, *host.Message[int]) error { return nil })
	var refused *host.StartError
	if _, err := hosttest.Serve(h); !errors.As(err, &refused) || refused.Findings[0].Option != "settings.count" {
		t.Errorf("got %v", err)
	}
}
