// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory/memtest"
	"github.com/longshore-go/longshore/plugins/file/internal/format"
	"github.com/longshore-go/longshore/plugins/file/internal/format/formattest"
	"github.com/longshore-go/longshore/plugins/file/settings"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
)

// service is a host with the file plugin as a process.
type service struct {
	t    *testing.T
	host *host.Host
	in   *host.Endpoint
	path string
	log  *lockedBuilder

	publishers map[string]*host.Publisher[core.Message]
	runs       chan string       // of handlers: "name attempt payload"
	settled    chan host.Settled // of subscriptions with a handler of handle
	began      time.Time
	cancel     context.CancelFunc
	done       chan error
}

// pluginPath is the built plugin.
func pluginPath(t *testing.T) string {
	t.Helper()
	return memtest.Binary(t, "github.com/longshore-go/longshore/plugins/file/longshore-transport-file")
}

// newService returns a host whose handlers are still to be set. Without a path
// of the settings it is a new one.
func newService(t *testing.T, set settings.Settings, opts ...host.Option) *service {
	t.Helper()
	if set.Path == "" {
		set.Path = newPath(t)
	}
	s := &service{
		t: t, path: set.Path, log: &lockedBuilder{}, done: make(chan error, 1),
		publishers: map[string]*host.Publisher[core.Message]{},
		runs:       make(chan string, 10_000), settled: make(chan host.Settled, 10_000),
	}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.host = host.New(append([]host.Option{host.WithLogger(log)}, opts...)...)
	s.in = s.host.Endpoint("in", host.Plugin{Name: "file", Path: pluginPath(t)}, set)
	return s
}

// publishes declares keys that put publishes under.
func (s *service) publishes(keys ...string) {
	for _, k := range keys {
		s.publishers[k] = host.To[core.Message](s.host, s.in.To(k))
	}
}

// read declares a subscription.
func (s *service) read(name string, o settings.Subscription) *host.Subscription {
	return s.in.Subscription(name, host.Options(o))
}

// handle sets the handler of a subscription: it notes each run, then says what f
// says of it.
func (s *service) handle(sub *host.Subscription, f func(m *host.Message[[]byte]) error, rules ...host.Rule) {
	host.Handle(sub, func(_ context.Context, m *host.Message[[]byte]) error {
		s.runs <- fmt.Sprintf("%s %d %s", m.Name(), m.Attempt(), m.Value)
		return f(m)
	}, append(rules, host.AfterSettle(func(_ context.Context, d host.Settled) { s.settled <- d }))...)
}

// always returns a handler that says the same each time.
func always(err error) func(*host.Message[[]byte]) error {
	return func(*host.Message[[]byte]) error { return err }
}

// launch runs the host.
func (s *service) launch() {
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	s.cancel = cancel
	s.began = time.Now()
	go func() { s.done <- s.host.Run(ctx) }()
}

// start runs the host until it serves.
func (s *service) start() {
	s.t.Helper()
	s.launch()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for !s.host.Ready() {
		select {
		case err := <-s.done:
			s.t.Fatalf("the host ended with %v\n%s", err, s.log)
		case <-look.C:
		}
	}
}

// put publishes a payload, which is confirmed.
func (s *service) put(key, payload string, headers ...string) {
	s.t.Helper()
	m := core.Message{Payload: []byte(payload), Headers: headersOf(headers...)}
	if _, err := s.publishers[key].Publish(s.t.Context(), m); err != nil {
		s.t.Fatalf("publish %s: %v\n%s", payload, err, s.log)
	}
}

// handled waits for n runs and as many settlements, and returns the runs.
func (s *service) handled(n int) []string {
	s.t.Helper()
	runs := s.ran(n)
	for range n {
		s.settlement()
	}
	return runs
}

// ran waits for n runs.
func (s *service) ran(n int) []string {
	s.t.Helper()
	var runs []string
	for len(runs) < n {
		select {
		case r := <-s.runs:
			runs = append(runs, r)
		case err := <-s.done:
			s.t.Fatalf("the host ended with %v after %q\n%s", err, runs, s.log)
		case <-time.After(testLimit / 3):
			s.t.Fatalf("%d of %d runs: %q\n%s", len(runs), n, runs, s.log)
		}
	}
	return runs
}

// settlement waits for one.
func (s *service) settlement() host.Settled {
	s.t.Helper()
	select {
	case d := <-s.settled:
		return d
	case <-time.After(testLimit / 3):
		s.t.Fatalf("nothing was settled\n%s", s.log)
		return host.Settled{}
	}
}

// stop stops the host and returns what the file holds then.
func (s *service) stop() []string {
	s.t.Helper()
	s.cancel()
	return s.ended()
}

// ended waits for the end without an error and returns what the file holds.
func (s *service) ended() []string {
	s.t.Helper()
	if err := s.wait(); err != nil {
		s.t.Errorf("the host ended with %v\n%s", err, s.log)
	}
	if n := len(s.runs); n > 0 {
		s.t.Errorf("%d runs too many, the next one of %s", n, <-s.runs)
	}
	return contents(s.t, s.path)
}

// wait waits for the end of the host.
func (s *service) wait() error {
	defer s.cancel()
	return <-s.done
}

// refused runs a host whose start is refused with one finding of a
// subscription, whose text has all of texts.
func (s *service) refused(subscription, option string, texts ...string) {
	s.t.Helper()
	s.launch()
	err := s.wait()
	e, ok := errors.AsType[*host.StartError](err)
	if !ok {
		s.t.Fatalf("ended with %v", err)
	}
	if len(e.Findings) != 1 {
		s.t.Fatalf("findings %v", e.Findings)
	}
	f := e.Findings[0]
	if f.Subscription != subscription || f.Option != option || f.Fix == "" {
		s.t.Errorf("finding %+v", f)
	}
	for _, text := range texts {
		if !strings.Contains(f.String(), text) {
			s.t.Errorf("%q does not name %s", f, text)
		}
	}
}

// logged counts the log lines of a code.
func (s *service) logged(code string) int {
	n := 0
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, "code="+code+" ") || strings.HasSuffix(line, "code="+code+"\n") {
			n++
		}
	}
	return n
}

// silent checks that nothing was logged as a warning or an error but findings of
// the start.
func (s *service) silent() {
	s.t.Helper()
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, "level=WARN") && !strings.Contains(line, "code=L-CHECK") || strings.Contains(line, "level=ERROR") {
			s.t.Errorf("logged %s", line)
		}
	}
}

// contents reads a file by a reader of its own: each record as "key payload
// header=value ...", an end mark as "END". The record that begins files is left
// out. Numbers have to be in order.
func contents(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := format.ParseHeader(b)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	p := format.Parser{Interval: h.Interval}
	numbers := map[string]uint64{}
	for off := format.HeaderSize; off < len(b); {
		var r format.Record
		n, err := p.Next(b[off:], int64(off), &r)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		off += n
		switch key := string(r.Key); {
		case r.IsEnd():
			got = append(got, "END")
		case key == format.PrimeKey:
		default:
			numbers[key]++
			if r.Sequence != numbers[key] {
				t.Errorf("record %d of %s has the number %d", numbers[key], key, r.Sequence)
			}
			got = append(got, shownRecord(t, &r))
		}
	}
	return got
}

func shownRecord(t *testing.T, r *format.Record) string {
	headers, payload, err := envelope.Decode(r.Payload)
	if err != nil {
		t.Error(err)
	}
	text := string(r.Key) + " " + string(payload)
	for _, h := range headers {
		text += " " + h.Name + "=" + string(h.Value)
	}
	return text
}

// copied is how a copy with a count looks in contents.
func copied(key, payload string, sequence, count int) string {
	return fmt.Sprintf("%s %s stream-sequence=%d x-ruststream-retry-count=%d", key, payload, sequence, count)
}

// written writes a file with records "key payload" as the reference does, and
// returns its path.
func written(t testing.TB, records ...string) string {
	t.Helper()
	b := formattest.New(format.DefaultInterval)
	b.Prime()
	for _, r := range records {
		key, payload, _ := strings.Cut(r, " ")
		b.Add(key, payload)
	}
	path := newPath(t)
	if err := os.WriteFile(path, b.Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sorted returns texts in order, for what has none.
func sorted(texts []string) []string {
	slices.Sort(texts)
	return texts
}
