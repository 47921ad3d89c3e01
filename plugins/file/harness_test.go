// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(groupChild); path != "" {
		readUntilKilled(path)
		return
	}
	if path := os.Getenv(hostChild); path != "" {
		serveUntilKilled(path)
		return
	}
	leaktest.Main(m)
}

// newPath is a path in a folder of the test's own.
func newPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "orders.ss")
}

// bench is an endpoint that is called directly.
type bench struct {
	t    testing.TB
	ctx  context.Context //nolint:containedctx // of the test
	conn pluginapi.Conn
	log  *servicetest.Log
	end  func() []byte // closes the endpoint, once
}

// writes is the usage of a service that publishes under keys.
func writes(keys ...string) pluginapi.Usage {
	var u pluginapi.Usage
	for _, k := range keys {
		u.Destinations = append(u.Destinations, pluginapi.Target{Name: k, Purpose: pluginapi.PurposeApplication})
	}
	return u
}

// configure configures an endpoint that logs to log, nil = nowhere.
func configure(t testing.TB, set settings.Settings, log io.Writer, opts ...file.Option) pluginapi.Endpoint {
	t.Helper()
	return servicetest.Configure(t, file.New(opts...), set, nil, log)
}

// connect connects an endpoint that is used so.
func connect(t testing.TB, set settings.Settings, u pluginapi.Usage, opts ...file.Option) (*bench, error) {
	t.Helper()
	return resume(t, set, u, nil, opts...)
}

// resume is connect with what another life handed over.
func resume(t testing.TB, set settings.Settings, u pluginapi.Usage, state []byte, opts ...file.Option) (*bench, error) {
	t.Helper()
	b := &bench{t: t, log: &servicetest.Log{}}
	e := configure(t, set, b.log, opts...)
	e.Inspect(u)
	ctx, cancel := context.WithTimeout(t.Context(), servicetest.Limit)
	t.Cleanup(cancel)
	b.ctx = ctx
	var err error
	if b.conn, err = e.Connect(ctx, state); err != nil {
		return nil, err
	}
	b.end = sync.OnceValue(func() []byte {
		closing, stop := context.WithTimeout(context.Background(), servicetest.Limit)
		defer stop()
		state, err := b.conn.Close(closing)
		if err != nil {
			t.Errorf("close: %v", err)
		}
		return state
	})
	t.Cleanup(func() { b.end() })
	return b, nil
}

// open is connect where nothing is refused.
func open(t testing.TB, set settings.Settings, u pluginapi.Usage, opts ...file.Option) *bench {
	t.Helper()
	b, err := connect(t, set, u, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// subscribe opens a subscription, which is closed with the test.
func (b *bench) subscribe(name string, o settings.Subscription) pluginapi.Subscription {
	b.t.Helper()
	s, err := b.conn.Subscribe(b.ctx, registration(b.t, 0, name, o))
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// take receives n deliveries, reports besides.
func (b *bench) take(s pluginapi.Subscription, n int) (ds []pluginapi.Delivery, rs []pluginapi.Report) {
	b.t.Helper()
	for len(ds) < n {
		batch, err := s.Receive(b.ctx, pluginapi.Room{Messages: n - len(ds), Bytes: servicetest.Plenty.Bytes})
		ds, rs = append(ds, batch.Deliveries...), append(rs, batch.Reports...)
		if err != nil {
			b.t.Fatalf("received %d of %d: %v", len(ds), n, err)
		}
	}
	return ds, rs
}

// toEnd receives until a replay has caught up or a live subscription has ended.
func (b *bench) toEnd(s pluginapi.Subscription) (ds []pluginapi.Delivery, rs []pluginapi.Report) {
	b.t.Helper()
	for {
		batch, err := s.Receive(b.ctx, servicetest.Plenty)
		ds, rs = append(ds, batch.Deliveries...), append(rs, batch.Reports...)
		if batch.CaughtUp || errors.Is(err, io.EOF) {
			return ds, rs
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// quiet checks that nothing is there to be received.
func (b *bench) quiet(s pluginapi.Subscription) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 50*time.Millisecond)
	defer cancel()
	batch, err := s.Receive(ctx, servicetest.Plenty)
	if len(batch.Deliveries)+len(batch.Reports) > 0 || batch.CaughtUp || !errors.Is(err, context.DeadlineExceeded) {
		b.t.Errorf("received %+v, %v", batch, err)
	}
}

// publish publishes and waits for the receipts.
func (b *bench) publish(msgs ...pluginapi.Outgoing) []pluginapi.Receipt {
	b.t.Helper()
	return servicetest.Publish(b.ctx, b.t, b.conn, msgs...)
}

// put publishes payloads under a key, which are confirmed.
func (b *bench) put(key string, payloads ...string) {
	b.t.Helper()
	var msgs []pluginapi.Outgoing
	for _, p := range payloads {
		msgs = append(msgs, servicetest.Message(key, p))
	}
	for i, r := range b.publish(msgs...) {
		if r.Status != pluginapi.ReceiptConfirmed {
			b.t.Fatalf("%s: %v, %v", payloads[i], r.Status, r.Fault)
		}
	}
}
