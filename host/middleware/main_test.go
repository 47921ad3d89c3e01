// SPDX-License-Identifier: Apache-2.0

package middleware_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
	"github.com/longshore-go/longshore/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// service is a host with one subscription, orders, on a broker.
type service struct {
	*hosttest.Service
	broker *hosttest.Broker
	host   *host.Host
	in     *host.Endpoint
}

// bubble runs a test in a bubble with a service that register fills.
func bubble(t *testing.T, register func(s *service), test func(t *testing.T, s *service), opts ...host.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := hosttest.NewBroker()
		s := &service{broker: b, host: host.New(append(opts, b.Replace(), hosttest.Logger(t))...)}
		s.in = s.host.Endpoint("in", host.Plugin{Name: "queues"}, nil)
		register(s)
		s.Service = hosttest.Start(t, s.host, b)
		test(t, s)
	})
}

// book collects lines.
type book struct {
	mu    sync.Mutex
	lines []string
}

func (b *book) add(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, fmt.Sprintf(format, args...))
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprint(b.lines)
}

// notes is middleware that writes down what came of the next.
func (b *book) notes(next host.Next) host.Next {
	return func(ctx context.Context, m host.Incoming) error {
		err := next(ctx, m)
		b.add("%s: %v", m.Payload(), err)
		return err
	}
}

func got(t *testing.T, what fmt.Stringer, want string) {
	t.Helper()
	if got := what.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
