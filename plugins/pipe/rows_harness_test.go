// SPDX-License-Identifier: Apache-2.0

package pipe_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory/memtest"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
	"github.com/longshore-go/longshore/plugins/pipe/settings"
)

// service is a host with the pipe plugin as a process, on pipes of the test's
// own.
type service struct {
	t    *testing.T
	host *host.Host
	in   *host.Endpoint
	key  *host.Subscription
	log  *lockedBuilder

	stdin  *os.File // the test's end
	closer []*os.File
	out    *os.File // the host's end
	read   chan []string
	cancel context.CancelFunc
	done   chan error

	mu    sync.Mutex
	seen  []string // runs of handlers: "name attempt payload"
	began time.Time
}

// newService returns a host whose handler of the key "k" is still to be set.
func newService(t *testing.T, set settings.Settings, opts ...host.Option) *service {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := wire(t, set, inR, outW, opts...)
	s.stdin, s.read = inW, make(chan []string, 1)
	s.closer = append(s.closer, inW)
	go func() { s.read <- collectLines(outR) }()
	return s
}

// wire returns a host between two given pipes, which it takes over.
func wire(t *testing.T, set settings.Settings, in, out *os.File, opts ...host.Option) *service {
	t.Helper()
	s := &service{t: t, log: &lockedBuilder{}, out: out, done: make(chan error, 1)}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.host = host.New(append([]host.Option{host.WithLogger(log)}, opts...)...)
	s.in = s.host.Endpoint("in", host.Plugin{
		Name:  "pipe",
		Path:  memtest.Binary(t, "github.com/longshore-go/longshore/plugins/pipe/longshore-transport-pipe"),
		Stdio: &host.Stdio{In: in, Out: out},
	}, set)
	s.key = s.in.Subscription("k")
	s.closer = []*os.File{in, out}
	return s
}

func collectLines(r *os.File) []string {
	defer func() { _ = r.Close() }()
	var got []string
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		got = append(got, scan.Text())
	}
	return got
}

// handle sets the handler of a subscription: it notes each run, then says what
// f says of the attempt.
func (s *service) handle(sub *host.Subscription, f func(m *host.Message[[]byte]) error, rules ...host.Rule) {
	host.Handle(sub, func(_ context.Context, m *host.Message[[]byte]) error {
		s.mu.Lock()
		s.seen = append(s.seen, fmt.Sprintf("%s %d %s", m.Name(), m.Attempt(), m.Value))
		s.mu.Unlock()
		return f(m)
	}, rules...)
}

// always returns a handler that says the same each time.
func always(err error) func(*host.Message[[]byte]) error {
	return func(*host.Message[[]byte]) error { return err }
}

// start runs the host.
func (s *service) start() {
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	s.cancel = cancel
	s.began = time.Now()
	go func() { s.done <- s.host.Run(ctx) }()
}

// run feeds the host an input and returns what it printed, once it has ended.
func (s *service) run(input string) []string {
	s.t.Helper()
	s.start()
	s.feed(input)
	return s.ended()
}

func (s *service) feed(input string) {
	if _, err := s.stdin.WriteString(input); err != nil {
		s.t.Error(err)
	}
	if err := s.stdin.Close(); err != nil {
		s.t.Error(err)
	}
}

// ended waits for the end without an error and returns what was printed.
func (s *service) ended() []string {
	s.t.Helper()
	if err := s.wait(); err != nil {
		s.t.Errorf("the host ended with %v\n%s", err, s.log)
	}
	return <-s.read
}

// wait waits for the end of the host and closes what it had.
func (s *service) wait() error {
	defer s.cancel()
	err := <-s.done
	for _, f := range s.closer {
		_ = f.Close()
	}
	return err
}

// runs returns the runs of handlers so far.
func (s *service) runs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
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

// outputLine is the form of every line that may be printed.
var outputLine = regexp.MustCompile(`^\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d) \| ([A-Za-z0-9._-]{1,249}) \| (\d+)\] (.+)$`)

// parsed takes printed lines apart: "key payload header=value ...". It is a
// reader of its own, beside the transport's. The headers of dead letters that
// differ from run to run are left out.
func parsed(t *testing.T, lines []string) []string {
	t.Helper()
	var got []string
	for _, line := range lines {
		m := outputLine.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("%q is no message", line)
			continue
		}
		if _, err := time.Parse("2006-01-02T15:04:05", m[1]); err != nil {
			t.Error(err)
		}
		headers, payload, err := envelope.Decode([]byte(m[4]))
		if err != nil {
			t.Error(err)
		}
		text := m[2] + " " + string(payload)
		for _, h := range headers {
			text += " " + h.Name + "=" + string(h.Value)
		}
		got = append(got, text)
	}
	return got
}

// copied is how a copy with a count looks after parsed.
func copied(key, payload string, sequence, count int) string {
	return fmt.Sprintf("%s %s stream-sequence=%d x-ruststream-retry-count=%d", key, payload, sequence, count)
}

// to is a destination on the endpoint.
func (s *service) to(name string) core.Destination { return s.in.To(name) }
