// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/freeport"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

func TestMain(m *testing.M) {
	if address, plugin, ok := strings.Cut(os.Getenv(hostChild), " "); ok {
		serveUntilKilled(address, plugin)
		return
	}
	leaktest.Main(m)
}

// anyPort is an address of this machine with a port that is free.
const anyPort = "tcp://127.0.0.1:0"

// heldPort is an address whose port is the test's, also while nobody listens there.
func heldPort(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("tcp://127.0.0.1:%d", freeport.Hold(t))
}

// closed is an address that nobody listens on.
const closed = "tcp://127.0.0.1:1"

// configure configures an endpoint that logs to log, nil = nowhere.
func configure(t testing.TB, set settings.Settings, log io.Writer) pluginapi.Endpoint {
	t.Helper()
	return servicetest.Configure(t, zmq.New(), set, nil, log)
}

// bench is an endpoint that is called directly.
type bench struct {
	t    testing.TB
	ctx  context.Context //nolint:containedctx // of the test
	conn pluginapi.Conn
	log  *servicetest.Log
	end  func() []byte // closes the endpoint, once
}

// reading is the usage of a service with one subscription.
func reading(name string) pluginapi.Usage {
	return pluginapi.Usage{Registrations: registrations(name)}
}

// connect connects an endpoint that is used so.
func connect(t testing.TB, set settings.Settings, u pluginapi.Usage) *bench {
	t.Helper()
	b, err := resume(t, set, u, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// resume is connect with what another life handed over.
func resume(t testing.TB, set settings.Settings, u pluginapi.Usage, state []byte) (*bench, error) {
	t.Helper()
	b := &bench{t: t, log: &servicetest.Log{}}
	e := configure(t, set, b.log)
	e.Inspect(u)
	ctx, cancel := context.WithTimeout(context.Background(), servicetest.Limit)
	b.ctx = ctx
	var err error
	if b.conn, err = e.Connect(ctx, state); err != nil {
		cancel()
		return nil, err
	}
	b.end = sync.OnceValue(func() []byte {
		defer cancel()
		resume, err := b.conn.Close(ctx)
		if err != nil {
			t.Errorf("close: %v", err)
		}
		return resume
	})
	t.Cleanup(func() { b.end() })
	return b, nil
}

// address is where the endpoint listens.
func (b *bench) address() string {
	b.t.Helper()
	as := b.conn.(pluginapi.Addresser).Addresses()
	if len(as) != 1 {
		b.t.Fatalf("addresses %v", as)
	}
	return as[0]
}

// subscribe opens a subscription that is closed before the endpoint is.
func (b *bench) subscribe(name string) pluginapi.Subscription {
	b.t.Helper()
	s, err := b.conn.Subscribe(b.ctx, pluginapi.Registration{Name: name})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// take receives n deliveries. What they lie in may be used again by then, so they
// are copies.
func (b *bench) take(s pluginapi.Subscription, n int) []pluginapi.Delivery {
	b.t.Helper()
	var ds []pluginapi.Delivery
	for len(ds) < n {
		batch, err := s.Receive(b.ctx, pluginapi.Room{Messages: n - len(ds), Bytes: servicetest.Plenty.Bytes})
		for _, d := range batch.Deliveries {
			d.Message = d.Message.Clone()
			ds = append(ds, d)
		}
		if batch.Memory != nil {
			batch.Memory.Release()
		}
		if err != nil {
			b.t.Fatalf("received %d of %d: %v\n%s", len(ds), n, err, b.log)
		}
	}
	return ds
}

// quiet checks that nothing is received for a moment.
func (b *bench) quiet(s pluginapi.Subscription) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 50*time.Millisecond)
	defer cancel()
	batch, err := s.Receive(ctx, servicetest.Plenty)
	if len(batch.Deliveries) > 0 || !errors.Is(err, context.DeadlineExceeded) {
		b.t.Errorf("received %v, %v", servicetest.Texts(batch.Deliveries), err)
	}
}

// publish publishes and waits for the receipts.
func (b *bench) publish(msgs ...pluginapi.Outgoing) []pluginapi.Receipt {
	b.t.Helper()
	return servicetest.Publish(b.ctx, b.t, b.conn, msgs...)
}

// put publishes messages that are confirmed.
func (b *bench) put(msgs ...pluginapi.Outgoing) {
	b.t.Helper()
	for i, r := range b.publish(msgs...) {
		if r.Status != pluginapi.ReceiptConfirmed || r.Unrouted {
			b.t.Fatalf("message %d: %+v %v", i, r, r.Fault)
		}
	}
}

// eventually polls until ok says so.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	limit := time.NewTimer(servicetest.Limit / 3)
	defer limit.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-limit.C:
			t.Fatalf("never: %s", what)
		}
	}
}

// longestWait is the most that peer_wait may be: peers of tests may take long to
// connect.
const longestWait = core.Duration(10 * time.Second)

// binds and dials are the settings of the two sides.
func binds(pattern, address string) settings.Settings {
	return settings.Settings{Pattern: pattern, Bind: address, PeerWait: longestWait}
}

func dials(pattern string, addresses ...string) settings.Settings {
	return settings.Settings{Pattern: pattern, Connect: addresses, PeerWait: longestWait}
}
