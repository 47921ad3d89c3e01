// SPDX-License-Identifier: Apache-2.0

package pipe_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pipe"
	"github.com/longshore-go/longshore/plugins/pipe/settings"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// sampleTime is the time on the lines of samples/stdio.txt.
var sampleTime = time.Date(2026, 11, 30, 2, 26, 30, 999, time.UTC)

// bench is an endpoint on two pipes of the test's own, called directly.
type bench struct {
	t    *testing.T
	ctx  context.Context //nolint:containedctx // of the test
	conn pluginapi.Conn
	in   *os.File // what the endpoint reads is written here
	out  *output  // what it has printed
	log  *servicetest.Log
	end  func() // closes the endpoint, once
}

// output collects what is printed.
type output struct {
	r    *os.File
	done chan struct{}
	mu   sync.Mutex
	text strings.Builder
}

// open connects an endpoint whose output is collected.
func open(t *testing.T, set settings.Settings) *bench {
	t.Helper()
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := openOn(t, set, outW)
	b.out = &output{r: outR, done: make(chan struct{})}
	go b.out.collect()
	t.Cleanup(func() {
		b.end()
		<-b.out.done
	})
	return b
}

func (o *output) collect() {
	defer close(o.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := o.r.Read(buf)
		o.mu.Lock()
		o.text.Write(buf[:n])
		o.mu.Unlock()
		if err != nil {
			_ = o.r.Close()
			return
		}
	}
}

// openOn connects an endpoint that prints to out, which is closed.
func openOn(t *testing.T, set settings.Settings, out *os.File) *bench {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdio, err := pluginapi.NewStdio(inR, out)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{inR, out} {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{t: t, in: inW, log: &servicetest.Log{}}
	e := configure(t, set, stdio, b.log)
	ctx, cancel := context.WithTimeout(t.Context(), servicetest.Limit)
	b.ctx = ctx
	if b.conn, err = e.Connect(ctx, nil); err != nil {
		t.Fatal(err)
	}
	b.end = sync.OnceFunc(func() {
		closing, stop := context.WithTimeout(context.Background(), servicetest.Limit/3)
		defer stop()
		if _, err := b.conn.Close(closing); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := stdio.Close(); err != nil {
			t.Errorf("close stdio: %v", err)
		}
		_ = inW.Close()
	})
	t.Cleanup(cancel)
	t.Cleanup(b.end)
	return b
}

func configure(t *testing.T, set settings.Settings, stdio *pluginapi.Stdio, log io.Writer) pluginapi.Endpoint {
	t.Helper()
	return servicetest.Configure(t, pipe.New(pipe.Clock(func() time.Time { return sampleTime })), set, stdio, log)
}

// feed writes input and ends it.
func (b *bench) feed(text string) {
	b.write(text)
	if err := b.in.Close(); err != nil {
		b.t.Error(err)
	}
}

// write writes input beside the test, which may have more than a pipe holds.
func (b *bench) write(text string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = b.in.WriteString(text)
	}()
	if len(text) <= 32<<10 {
		<-done
	}
}

// feedAll writes input of any length and ends it, beside the test.
func (b *bench) feedAll(text string) {
	go func() {
		_, _ = b.in.WriteString(text)
		_ = b.in.Close()
	}()
}

func (b *bench) subscribe(key string) pluginapi.Subscription {
	b.t.Helper()
	s, err := b.conn.Subscribe(b.ctx, pluginapi.Registration{Name: key})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// all receives until the subscription ends or has caught up, releasing each
// delivery at once, and returns the deliveries, reports and the end.
func (b *bench) all(s pluginapi.Subscription) (ds []pluginapi.Delivery, rs []pluginapi.Report, caughtUp bool, err error) {
	for {
		batch, err := s.Receive(b.ctx, servicetest.Plenty)
		ds = append(ds, batch.Deliveries...)
		rs = append(rs, batch.Reports...)
		release(s, batch.Deliveries)
		if err != nil || batch.CaughtUp {
			return ds, rs, batch.CaughtUp, err
		}
	}
}

func release(s pluginapi.Subscription, ds []pluginapi.Delivery) {
	var hs []any
	for _, d := range ds {
		hs = append(hs, d.Handle)
	}
	s.(pluginapi.Releaser).Release(hs)
}

// toEnd is all for input that ends.
func (b *bench) toEnd(s pluginapi.Subscription) ([]pluginapi.Delivery, []pluginapi.Report) {
	b.t.Helper()
	ds, rs, _, err := b.all(s)
	if !errors.Is(err, io.EOF) {
		b.t.Fatalf("ended with %v", err)
	}
	return ds, rs
}

// publish publishes and waits for the receipts.
func (b *bench) publish(msgs ...pluginapi.Outgoing) []pluginapi.Receipt {
	b.t.Helper()
	return servicetest.Publish(b.ctx, b.t, b.conn, msgs...)
}

type indexed struct {
	i int
	r pluginapi.Receipt
}

func (b *bench) start(msgs ...pluginapi.Outgoing) chan indexed {
	c := make(chan indexed, len(msgs))
	b.conn.Publish(b.ctx, msgs, func(i int, r pluginapi.Receipt) { c <- indexed{i, r} })
	return c
}

// printed ends the endpoint and returns all it has printed.
func (b *bench) printed() string {
	b.end()
	<-b.out.done
	b.out.mu.Lock()
	defer b.out.mu.Unlock()
	return b.out.text.String()
}
