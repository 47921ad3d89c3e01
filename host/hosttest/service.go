// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/host/internal/kit"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/pluginapi"
)

// Service is a host that runs in a test.
type Service struct {
	tb      testing.TB
	host    *host.Host
	brokers []*Broker
	cancel  context.CancelFunc
	life    context.Context //nolint:containedctx // ends when Run has returned
	err     error           // what Run returned, valid then
	taken   atomic.Bool     // the test has the error
	changed chan struct{}   // something happened at a broker

	elsewhere bool // brokers were given, and no endpoint is on one
}

// Start runs a host and returns when it is ready, or has ended already because
// its sources had. It fails the test where the host does not start. The brokers
// that its endpoints are on are found, and need be named only where the endpoints
// reach them through a transport of the test's own: Wait looks at them, and what
// fails tells what they hold.
//
// At the end of the test the host is stopped. A host that does not stop within
// the limit is aborted and fails the test, and so does an error of its Run that
// neither Stop nor Ended has returned.
func Start(tb testing.TB, h *host.Host, brokers ...*Broker) *Service {
	tb.Helper()
	s := run(h, brokers)
	s.tb = tb
	tb.Cleanup(s.cleanup)
	if s.elsewhere {
		s.taken.Store(true)
		tb.Fatalf("hosttest: no endpoint of the host runs on the broker that Start was given; make the host with host.New(broker.Replace()), or attach endpoints with broker.Plugin()")
	}
	if err := s.awaitReady(); err != nil {
		s.taken.Store(true)
		tb.Fatalf("hosttest: %v", err)
	}
	return s
}

// Serve is Start without a test, as for an Example: it runs a host until it is
// ready, and returns what stops it and returns what Run returned.
func Serve(h *host.Host) (stop func() error, err error) {
	s := run(h, nil)
	if err := s.awaitReady(); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s.stop, nil
}

// run runs a host, and finds the brokers that it is on beside those given.
func run(h *host.Host, brokers []*Broker) *Service {
	s := &Service{host: h, changed: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	life, ended := context.WithCancel(context.Background())
	s.cancel, s.life = cancel, life
	var inProcess []pluginapi.Transport
	asked := false
	told := make(chan struct{})
	ctx = kit.Ask(ctx, func(ts []pluginapi.Transport) {
		inProcess, asked = ts, true
		close(told)
	})
	go func() {
		defer ended()
		s.err = h.Run(ctx)
	}()
	select {
	case <-told:
	case <-life.Done(): // it did not come so far
	}
	s.elsewhere = asked && len(brokers) > 0 && len(inProcess) == 0
	s.brokers = slices.Clone(brokers)
	for _, t := range inProcess {
		if t, ok := t.(*standIn); ok {
			s.brokers = append(s.brokers, t.broker)
		}
	}
	seen := map[*Broker]bool{nil: true}
	s.brokers = slices.DeleteFunc(s.brokers, func(b *Broker) bool {
		twice := seen[b]
		seen[b] = true
		return twice
	})
	for _, b := range s.brokers {
		b.queues.Tell(s.changed)
		b.mu.Lock()
		b.services = append(b.services, s)
		b.mu.Unlock()
	}
	return s
}

// limit is the longest limit of the service's brokers.
func (s *Service) limit() time.Duration {
	limit := time.Duration(0)
	for _, b := range s.brokers {
		limit = max(limit, b.limit)
	}
	return limitOr(limit)
}

// ended reports whether Run has returned.
func (s *Service) ended() bool { return s.life.Err() != nil }

// notices waits until the host knows that a generation of a plugin is dead.
func (s *Service) notices(endpoint string, generation uint64) {
	s.tb.Helper()
	_, inTime := s.poll(s.limit(), func() bool {
		for _, e := range s.host.Health().Endpoints {
			if e.Name == endpoint && e.Generation == generation && e.State == host.EndpointUp {
				return false
			}
		}
		return true
	})
	if !inTime {
		s.tb.Fatalf("hosttest: waited %v for the host to notice that the plugin of endpoint %s is dead%s", s.limit(), endpoint, s.reports())
	}
}

// Wait waits until there is nothing left to do: all that was delivered or
// published to a queue that is read has its verdict, nothing is to come back by
// itself, and in the host nothing is in work, no copy waits, no receipt is
// missing, and no call of a hook (host.AfterSettle, host.OnFinalFailure) waits or
// runs. What handlers and hooks wrote may be read without a lock then. A delivery
// that was left unsettled is not waited for, unless a lease brings it back.
func (s *Service) Wait() {
	s.tb.Helper()
	left := ""
	ok, inTime := s.poll(s.limit(), func() bool {
		if left = s.left(); left == "" {
			left = s.left() // what left the host in between is at a broker
		}
		return left == "" || s.flooded() != nil
	})
	switch b := s.flooded(); {
	case left == "":
	case b != nil:
		s.tb.Fatalf("hosttest: %s%s", b.roundabout(), s.reports())
	case ok || inTime:
		s.tb.Fatalf("hosttest: the host has ended, and there is still %s%s", left, s.reports())
	default:
		s.tb.Fatalf("hosttest: waited %v for everything to be settled, and there is still %s%s", s.limit(), left, s.reports())
	}
}

// left says what is still to be done, "" for nothing.
func (s *Service) left() string {
	var parts []string
	add := func(n uint64, one, more, of string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one+of)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s%s", n, more, of))
		}
	}
	for _, b := range s.brokers {
		pending := 0
		b.view(func(v memory.View) { pending = v.Pending() })
		add(uint64(pending), "message", "messages", " that the broker has no verdict on")
	}
	if s.ended() {
		return strings.Join(parts, ", ")
	}
	h := s.host.Health()
	add(uint64(h.Waiting), "copy", "copies", " that waits in the host")
	for _, e := range h.Endpoints {
		add(e.Published.Missing, "receipt", "receipts", " missing on endpoint "+e.Name)
		for _, sub := range e.Subscriptions {
			add(sub.Counters.InWork, "delivery", "deliveries", " of "+sub.Name+" in work")
			add(uint64(max(sub.Hooks, 0)), "hook", "hooks", " of "+sub.Name+" to call or to return")
		}
	}
	return strings.Join(parts, ", ")
}

// flooded returns a broker whose MessageLimit is reached, nil without.
func (s *Service) flooded() *Broker {
	for _, b := range s.brokers {
		if b.flooded() {
			return b
		}
	}
	return nil
}

// Stop stops the host as a signal does, and returns what its Run returned. A
// host that does not stop within the limit is aborted and fails the test.
func (s *Service) Stop() error {
	s.tb.Helper()
	s.cancel()
	s.awaitEnd()
	s.taken.Store(true)
	return s.err
}

// Ended waits until the host has ended by itself, and returns what its Run
// returned. It fails the test where it does not end.
func (s *Service) Ended() error {
	s.tb.Helper()
	if _, inTime := s.poll(s.limit(), s.ended); !inTime {
		s.tb.Fatalf("hosttest: waited %v for the host to end by itself: %s%s", s.limit(), s.state(), s.reports())
	}
	s.taken.Store(true)
	return s.err
}

// stop stops the host, with force after the limit.
func (s *Service) stop() error {
	s.cancel()
	if _, inTime := s.poll(s.limit(), s.ended); inTime {
		return s.err
	}
	return s.abort()
}

// abort ends a host that did not stop, and says so.
func (s *Service) abort() error {
	s.host.Abort()
	if _, inTime := s.poll(s.limit(), s.ended); inTime {
		return errors.Join(fmt.Errorf("the host did not stop within %v and was aborted", s.limit()), s.err)
	}
	return fmt.Errorf("the host did not stop within %v, nor within that after Abort", s.limit())
}

// state says how the host is, and what of it is not as it should be.
func (s *Service) state() string {
	switch {
	case s.ended() && s.err != nil:
		return fmt.Sprintf("the host has ended: %v", s.err)
	case s.ended():
		return "the host has ended by itself or was stopped"
	}
	h := s.host.Health()
	text := "the host is " + string(h.State)
	if h.Ready {
		text = "the host is ready"
	}
	for _, e := range h.Endpoints {
		if e.State != host.EndpointUp {
			text += fmt.Sprintf("; endpoint %s is %s%s", e.Name, e.State, because(e.Reason))
		}
		for _, sub := range e.Subscriptions {
			if sub.State != host.SubscriptionOpen {
				text += fmt.Sprintf("; subscription %s is %s%s", sub.Name, sub.State, because(sub.Reason))
			}
		}
	}
	return text
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// reports are those of the brokers, on lines of their own.
func (s *Service) reports() string {
	text := ""
	for _, b := range s.brokers {
		text += "\n" + b.report()
	}
	return text
}
