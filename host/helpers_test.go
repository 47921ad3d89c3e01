// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

// patience is how long a test waits for what must happen at once: a busy machine
// may stand still for seconds. It costs nothing where all is well.
const patience = 2 * time.Minute

// logBook collects what a host logs.
type logBook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// text returns all of it.
func (l *logBook) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// lines returns the lines that hold all the words.
func (l *logBook) lines(words ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
lines:
	for line := range strings.Lines(l.b.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue lines
			}
		}
		out = append(out, strings.TrimSpace(line))
	}
	return out
}

// service is a host under test.
type service struct {
	*host.Host
	log   *logBook
	stop  context.CancelFunc
	done  chan error
	ended time.Time // valid after done
}

// stopTook returns how long after began the host had ended.
func (s *service) stopTook(began time.Time) time.Duration { return s.ended.Sub(began) }

// newService returns a host that logs into a book.
func newService(opts ...host.Option) *service {
	s := &service{log: &logBook{}, done: make(chan error, 1)}
	logger := slog.New(slog.NewTextHandler(io.MultiWriter(s.log), &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.Host = host.New(append([]host.Option{host.WithLogger(logger)}, opts...)...)
	return s
}

// run starts the host; the test's end aborts it.
func (s *service) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := s.Run(ctx)
		s.ended = time.Now()
		s.done <- err
	}()
	t.Cleanup(func() {
		cancel()
		s.Abort()
		<-ended
		if t.Failed() {
			t.Log("host's log:\n" + strings.Join(s.log.lines(), "\n"))
		}
	})
}

// serve runs the host until it is ready.
func (s *service) serve(t *testing.T) {
	t.Helper()
	s.run(t)
	deadline := time.Now().Add(patience)
	for !s.Ready() {
		select {
		case err := <-s.done:
			t.Fatalf("the host does not start: %v", err)
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("the host does not become ready")
		}
	}
}

// result waits for Run to return.
func (s *service) result(t *testing.T) error {
	t.Helper()
	select {
	case err := <-s.done:
		return err
	case <-time.After(patience):
		t.Fatal("the host does not stop")
		return nil
	}
}

// eventually waits until ok says so.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// receive waits for a value.
func receive[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing comes")
		panic("unreached")
	}
}

// attach attaches queues in process.
func attach(h *host.Host, name string, q *queues) *host.Endpoint {
	return h.Endpoint(name, host.Plugin{InProcess: q}, nil)
}

// acks is a handler that acks.
func acks(context.Context, *host.Message[[]byte]) error { return nil }

// retries is a handler that asks for a retry.
func retries(context.Context, *host.Message[[]byte]) error { return host.Retry(nil) }

// startError runs the host, which must not start, and returns its findings.
func startError(t *testing.T, s *service) *host.StartError {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := s.Run(ctx)
	var se *host.StartError
	if !errors.As(err, &se) {
		t.Fatalf("got %v, want a *StartError", err)
	}
	return se
}

// dest is a destination.
func dest(endpoint, name string) core.Destination {
	return core.Destination{Endpoint: endpoint, Name: name}
}
