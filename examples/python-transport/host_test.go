// SPDX-License-Identifier: Apache-2.0

package pythontransport

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/hosttest"
	"github.com/longshore-go/longshore/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// register is a service: orders lie in a database, and what is shipped goes to
// another transport.
func register(h *host.Host, sqlite host.Plugin, database string) *host.Publisher[string] {
	shop := h.Endpoint("shop", sqlite, map[string]any{"path": database})
	out := h.Endpoint("out", host.Plugin{Name: "mqtt"}, nil)
	host.Handle(shop.Subscription("orders"), func(_ context.Context, m *host.Message[string]) error {
		if m.Value == "no bread" {
			return errors.New("sold out")
		}
		return nil
	}, host.MaxAttempts(2), host.Forward(out.To("shipped")), host.DeadLetterTo(out.To("dead")))
	return host.To[string](h, shop.To("orders"))
}

// The Python process is real; the other endpoint is on a broker in the test.
func TestServiceOnThePlugin(t *testing.T) {
	path := setUp(t)
	b := hosttest.NewBroker()
	h := host.New(hosttest.ReplaceEach(map[string]*hosttest.Broker{"out": b}), hosttest.Logger(t))
	orders := register(h, host.Plugin{Name: "sqlite", Path: path}, filepath.Join(t.TempDir(), "queue.db"))
	s := hosttest.Start(t, h, b)
	for _, order := range []string{"three loaves", "no bread"} {
		if _, err := orders.Publish(t.Context(), order); err != nil {
			t.Fatal(err)
		}
	}
	shipped, dead := b.WaitPublished(t, "shipped", 1), b.WaitPublished(t, "dead", 1)
	s.Wait()
	if shipped[0].Text() != `"three loaves"` || dead[0].Text() != `"no bread"` || dead[0].Header("x-longshore-attempts") != "2" {
		t.Errorf("shipped %v, dead %v %v", shipped, dead, dead[0].Headers)
	}
}

// The same service without Python.
func TestServiceWithoutThePlugin(t *testing.T) {
	b := hosttest.NewBroker()
	b.Source("orders", hosttest.CountingQueue())
	h := host.New(b.Replace(), hosttest.Logger(t))
	register(h, host.Plugin{Name: "sqlite"}, "nowhere")
	s := hosttest.Start(t, h, b)
	b.Deliver("orders", hosttest.JSON("no bread"))
	s.Wait()
	if n := len(b.Published("dead")); n != 1 {
		t.Errorf("%d dead letters", n)
	}
}
