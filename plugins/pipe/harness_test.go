// SPDX-License-Identifier: Apache-2.0

package pipe_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pipe"
	"github.com/longshore-go/longshore/plugins/pipe/settings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sampleTime is the time on the lines of samples/stdio.txt.
var sampleTime = time.Date(2026, 11, 30, 2, 26, 30, 999, time.UTC)

// testLimit bounds a test on a busy machine, with the race detector on.
const testLimit = 3 * time.Minute

// bench is an endpoint on two pipes of the test's own, called directly.
type bench struct {
	t    *testing.T
	ctx  context.Context //nolint:containedctx // of the test
	conn pluginapi.Conn
	in   *os.File // what the endpoint reads is written here
	out  *output  // what it has printed
	log  *lockedBuilder
	end  func() // closes the endpoint, once
}

// output collects what is printed.
type output struct {
	r    *os.File
	done chan struct{}
	mu   sync.Mutex
	text strings.Builder
}

// lockedBuilder is a log.
type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
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
	b := &bench{t: t, in: inW, log: &lockedBuilder{}}
	e := configure(t, set, stdio, b.log)
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	b.ctx = ctx
	if b.conn, err = e.Connect(ctx, nil); err != nil {
		t.Fatal(err)
	}
	b.end = sync.OnceFunc(func() {
		closing, stop := context.WithTimeout(context.Background(), 5*time.Second)
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
	raw, err := pluginapi.EncodeSettings(set)
	if err != nil {
		t.Fatal(err)
	}
	e, err := pipe.New(pipe.Clock(func() time.Time { return sampleTime })).Configure(pluginapi.Settings{
		Options: pluginapi.NewOptions(raw), Endpoint: "in", Generation: 1, Stdio: stdio,
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
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

// plenty is a window that no test uses up.
var plenty = pluginapi.Room{Messages: 1000, Bytes: 1 << 30}

// all receives until the subscription ends or has caught up, releasing each
// delivery at once, and returns the deliveries, reports and the end.
func (b *bench) all(s pluginapi.Subscription) (ds []pluginapi.Delivery, rs []pluginapi.Report, caughtUp bool, err error) {
	for {
		batch, err := s.Receive(b.ctx, plenty)
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
	p := b.start(msgs...)
	rs := make([]pluginapi.Receipt, len(msgs))
	for range msgs {
		select {
		case r := <-p:
			rs[r.i] = r.r
		case <-b.ctx.Done():
			b.t.Fatal("a receipt is missing")
		}
	}
	return rs
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

func message(key, payload string, headers ...string) pluginapi.Outgoing {
	m := pluginapi.Outgoing{Purpose: pluginapi.PurposeApplication}
	m.Message = core.Message{Name: key, Payload: []byte(payload), Headers: headersOf(headers...)}
	return m
}

func headersOf(pairs ...string) core.Headers {
	var hs core.Headers
	for i := 0; i < len(pairs); i += 2 {
		hs = append(hs, core.Header{Name: pairs[i], Value: []byte(pairs[i+1])})
	}
	return hs
}

// texts shows deliveries as "name payload headers".
func texts(ds []pluginapi.Delivery) []string {
	var out []string
	for _, d := range ds {
		text := d.Message.Name + " " + string(d.Message.Payload)
		for _, h := range d.Message.Headers {
			text += " " + h.Name + "=" + string(h.Value)
		}
		out = append(out, text)
	}
	return out
}
