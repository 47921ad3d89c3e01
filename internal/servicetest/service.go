// SPDX-License-Identifier: Apache-2.0

// Package servicetest has what the tests of our transports share: a service
// whose handlers' runs and settlements are noted, its log, and messages written
// in short.
package servicetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
)

// Limit bounds a test on a busy machine, with the race detector on.
const Limit = 6 * time.Minute

// Service is a host under test. It is made by New, given endpoints and handlers,
// run by Launch or Start, and waited for.
type Service struct {
	*host.Host
	Log    *Log
	Began  time.Time          // when Launch was called
	Cancel context.CancelFunc // asks for the stop, once launched

	t       *testing.T
	runs    notes[string]
	settled notes[host.Settled]
	closes  []io.Closer
	done    chan struct{} // closed when Run has returned
	err     error         // of Run, after done
}

// New returns a service that logs into its Log. Its limits are those of a busy
// machine, on which processes start late and stand still.
func New(t *testing.T, opts ...host.Option) *Service {
	t.Helper()
	log := &Log{}
	ours := []host.Option{
		host.WithLogger(log.Logger()), host.WithStartLimit(Limit / 3), host.WithConnectLimit(Limit / 3), host.WithHeartbeat(time.Second, int(Limit/3/time.Second)),
	}
	return &Service{
		Host: host.New(append(ours, opts...)...),
		Log:  log, t: t, done: make(chan struct{}),
		runs: newNotes[string](), settled: newNotes[host.Settled](),
	}
}

// Closes takes what is closed when the host has ended.
func (s *Service) Closes(cs ...io.Closer) { s.closes = append(s.closes, cs...) }

// Handle sets the handler of a subscription: each run is noted as "name attempt
// payload", then f says what becomes of it.
func (s *Service) Handle(sub *host.Subscription, f func(m *host.Message[[]byte]) error, rules ...host.Rule) {
	host.Handle(sub, func(_ context.Context, m *host.Message[[]byte]) error {
		s.runs.add(fmt.Sprintf("%s %d %s", m.Name(), m.Attempt(), m.Value))
		return f(m)
	}, append(rules, host.AfterSettle(func(_ context.Context, d host.Settled) { s.settled.add(d) }))...)
}

// Always returns a handler that says the same each time.
func Always(err error) func(*host.Message[[]byte]) error {
	return func(*host.Message[[]byte]) error { return err }
}

// Launch runs the host, within the test's limit.
func (s *Service) Launch() {
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	s.Cancel, s.Began = cancel, time.Now()
	go func() {
		defer close(s.done)
		s.err = s.Run(ctx)
		cancel()
		for _, c := range s.closes {
			_ = c.Close() // some are closed by the test
		}
	}()
}

// Start runs the host until it serves.
func (s *Service) Start() {
	s.t.Helper()
	s.Launch()
	s.Eventually("the host serves", s.Ready)
}

// Eventually polls until ok says so, or the host has ended.
func (s *Service) Eventually(what string, ok func() bool) {
	s.t.Helper()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	limit := time.NewTimer(Limit / 3)
	defer limit.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-s.done:
			s.t.Fatalf("the host ended with %v before %s\n%s", s.err, what, s.Log)
		case <-limit.C:
			s.t.Fatalf("never: %s\n%s", what, s.Log)
		}
	}
}

// Ran waits for n further runs and returns them.
func (s *Service) Ran(n int) []string {
	s.t.Helper()
	return take(s, &s.runs, n, "runs")
}

// Handled waits for n further runs and as many settlements, and returns the
// runs.
func (s *Service) Handled(n int) []string {
	s.t.Helper()
	runs := s.Ran(n)
	take(s, &s.settled, n, "settlements")
	return runs
}

// Settlement waits for the next one.
func (s *Service) Settlement() host.Settled {
	s.t.Helper()
	return take(s, &s.settled, 1, "settlements")[0]
}

// take waits for n further notes. A host that has ended writes none.
func take[T any](s *Service, of *notes[T], n int, what string) []T {
	s.t.Helper()
	limit := time.NewTimer(Limit / 3)
	defer limit.Stop()
	done := s.done
	var got []T
	for {
		if got = append(got, of.next(n-len(got))...); len(got) == n {
			return got
		}
		if done == nil {
			s.t.Fatalf("the host ended with %v after %d of %d %s: %v\n%s", s.err, len(got), n, what, got, s.Log)
		}
		select {
		case <-of.more:
		case <-done:
			done = nil // look once more
		case <-limit.C:
			s.t.Fatalf("%d of %d %s: %v\n%s", len(got), n, what, got, s.Log)
		}
	}
}

// Runs returns all runs so far.
func (s *Service) Runs() []string { return s.runs.all() }

// Wait waits for the end of the host and returns what Run did.
func (s *Service) Wait() error {
	<-s.done
	return s.err
}

// Ended waits for the end of the host, which has to be without an error.
func (s *Service) Ended() {
	s.t.Helper()
	if err := s.Wait(); err != nil {
		s.t.Errorf("the host ended with %v\n%s", err, s.Log)
	}
}

// Stop stops the host, which has to end without an error and without a run that
// was not waited for.
func (s *Service) Stop() {
	s.t.Helper()
	s.Cancel()
	s.Ended()
	s.NoMoreRuns()
}

// Rest returns the runs so far that were not waited for.
func (s *Service) Rest() []string { return s.runs.next(math.MaxInt) }

// NoMoreRuns checks that all runs so far were waited for.
func (s *Service) NoMoreRuns() {
	s.t.Helper()
	if left := s.Rest(); len(left) > 0 {
		s.t.Errorf("%d runs too many, the first one of %s", len(left), left[0])
	}
}

// Refused runs a host whose start is refused with one finding, about this
// subscription and option, whose text has all of texts.
func (s *Service) Refused(subscription, option string, texts ...string) {
	s.t.Helper()
	s.Launch()
	err := s.Wait()
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
