// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/memtest"
	"github.com/longshore-go/longshore/internal/memory/settings"
	"github.com/longshore-go/longshore/internal/memory/transport"
)

// exchange is a memory broker with its transport in this process, and a service
// with the endpoint "mem" on it.
type exchange struct {
	*memory.Broker
	*service
	mem *host.Endpoint
	ctx context.Context
}

func newExchange(t *testing.T, set settings.Settings, opts ...host.Option) *exchange {
	t.Helper()
	b := memtest.Broker(t)
	s := newService(opts...)
	set.Address = "in process"
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	return &exchange{b, s, s.Endpoint("mem", host.Plugin{InProcess: transport.New(transport.Dial(b.Dial))}, set), ctx}
}

// held waits until the receipts of n messages to a queue are kept back.
func (x *exchange) held(t *testing.T, queue string, n int) {
	t.Helper()
	if err := x.Wait(x.ctx, "receipts kept back", func(v memory.View) bool { return v.HeldReceipts(queue) == n }); err != nil {
		t.Fatal(err)
	}
}

// texts returns the payloads that came to a queue, in order.
func (x *exchange) texts(queue string) []string {
	var out []string
	for _, m := range x.Published(queue) {
		out = append(out, string(m.Payload))
	}
	return out
}

// isDone reports whether a publish has come to its end.
func isDone(p *host.Pending) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// async publishes without waiting.
func async(t *testing.T, p *host.Publisher[[]byte], text string, opts ...host.SendOption) *host.Pending {
	t.Helper()
	pending, err := p.PublishAsync(t.Context(), []byte(text), opts...)
	if err != nil {
		t.Fatalf("PublishAsync %s: %v", text, err)
	}
	return pending
}

// failure returns the *PublishError of an error.
func failure(t *testing.T, err error) *host.PublishError {
	t.Helper()
	var e *host.PublishError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *PublishError", err)
	}
	return e
}

// faultCode returns the code of the fault behind an error.
func faultCode(t *testing.T, err error) core.FaultCode {
	t.Helper()
	var f *core.Fault
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a fault", err)
	}
	return f.Code
}
