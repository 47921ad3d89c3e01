// SPDX-License-Identifier: Apache-2.0

package pipe_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pipe"
	"github.com/longshore-go/longshore/plugins/pipe/settings"
)

// without calls Receive without room until stop is called.
func without(b *bench, s pluginapi.Subscription) (stop func()) {
	ctx, cancel := context.WithCancel(b.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.Receive(ctx, pluginapi.Room{})
	}()
	return func() {
		cancel()
		<-done
	}
}

// A subscription that has no room, as one that is paused, keeps no receipt back.
func TestReceiptsWithoutRoom(t *testing.T) {
	b := open(t, settings.Settings{Loopback: true})
	s := b.subscribe("k")
	for _, early := range []bool{true, false} {
		var receipt chan indexed
		if early {
			receipt = b.start(servicetest.Message("k", "x"))
		}
		stop := without(b, s)
		if !early {
			receipt = b.start(servicetest.Message("k", "y"))
		}
		select {
		case r := <-receipt:
			if r.r.Status != pluginapi.ReceiptConfirmed {
				t.Errorf("receipt %+v", r.r)
			}
		case <-b.ctx.Done():
			t.Fatalf("no receipt, published before: %v", early)
		}
		stop()
	}
	var got []string
	for len(got) < 2 {
		batch, err := s.Receive(b.ctx, servicetest.Plenty)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range batch.Deliveries {
			got = append(got, string(d.Message.Payload))
		}
	}
	if got[0] != "x" || got[1] != "y" {
		t.Errorf("got %q", got)
	}
}

// A service may publish to a subscription of its own that it has paused.
func TestPublishToAPausedSubscription(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(r.Close(), w.Close(), null.Close()) }() // at the end of the test nobody needs them
	h := host.New(hosttest.Logger(t))
	e := h.Endpoint("p", host.Plugin{Name: "pipe", InProcess: pipe.New(), Stdio: &host.Stdio{In: r, Out: null}}, settings.Settings{Loopback: true})
	sub, own := e.Subscription("x"), host.To[string](h, e.To("x"))
	handled := make(chan string, 3)
	host.Handle(sub, func(_ context.Context, m *host.Message[string]) error {
		handled <- m.Value
		return nil
	}, host.MaxAttempts(2))
	s := hosttest.Start(t, h)
	for round, want := range []string{"a", "b", "c"} {
		if round != 1 { // once with room
			sub.Pause()
		}
		if _, err := own.Publish(t.Context(), want, host.WithTimeout(servicetest.Limit/3)); err != nil {
			t.Error(err)
		}
		sub.Resume()
		if got := <-handled; got != want {
			t.Errorf("got %q", got)
		}
		s.Wait()
	}
}
