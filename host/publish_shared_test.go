// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/pluginapi"
)

// A message that was cut off is its caller's again, as a handler's is its host's: a
// transport in this process that reads what it was given until it has an answer
// reads what was published.
func TestPublishDoesNotShareWhatItIsCutOffFrom(t *testing.T) {
	pass := host.PublishMiddleware(func(next host.PublishNext) host.PublishNext {
		return func(ctx context.Context, o *host.Outgoing) (host.Receipt, error) { return next(ctx, o) }
	})
	for name, opts := range map[string][]host.PublisherOption{"plain": nil, "middleware": {pass}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, s := newQueues(), newService(host.StayUp())
				read, release := make(chan string, 4), make(chan struct{})
				q.published = func(m pluginapi.Outgoing) *pluginapi.Receipt {
					<-release
					read <- string(m.Message.Payload) + " " + string(m.Message.Headers[0].Value)
					return nil
				}
				e := attach(s.Host, "out", q)
				raw := host.To[[]byte](s.Host, e.To("raw"), opts...)
				whole := host.To[core.Message](s.Host, e.To("whole"), opts...)
				s.serve(t)
				payload, value := []byte("payload"), []byte("value")
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				defer cancel()
				if _, err := raw.Publish(ctx, payload, host.WithHeader("h", "value")); !failure(t, err).MaybeSent {
					t.Errorf("got %v, want one that was cut off", err)
				}
				if _, err := whole.Publish(t.Context(), core.Message{Payload: payload, Headers: core.Headers{{Name: "h", Value: value}}},
					host.WithTimeout(20*time.Millisecond)); err == nil {
					t.Error("no error")
				}
				copy(payload, "PAYLOAD")
				copy(value, "VALUE")
				close(release)
				if got := receive(t, read); got != "payload value" {
					t.Errorf("the transport read %q", got)
				}
				// What is published in the meantime does not change it either.
				if _, err := raw.Publish(t.Context(), []byte("another"), host.WithHeader("h", "one")); err != nil {
					t.Error(err)
				}
				for got := range read {
					if got == "another one" {
						break
					}
					if got != "payload value" {
						t.Errorf("the transport read %q", got)
					}
				}
			})
		})
	}
}
