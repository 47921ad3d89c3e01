// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// The load of TestKillsUnderLoad.
const (
	killMessages = 4_000
	kills        = 20
	window       = 64 // of a source without acks
)

// TestKillsUnderLoad kills the plugin with signal 9 again and again while it
// carries a load of every outcome, and accounts for each message afterwards:
// what Unsettled says survives a plugin, survives.
func TestKillsUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("takes its time")
	}
	dir := runtimeFolder(t) // of all of them
	t.Cleanup(func() { (&bench{dir: dir}).nothingLeft(t) })
	for name, source := range map[string]core.Capabilities{
		"A settles":              settings.KindA(),
		"C counts":               settings.KindC(),
		"D delays":               settings.KindD(),
		"M resumes a session":    settings.KindM(),
		"U has no acks at all":   settings.KindU(),
		"A, with no dead letter": settings.KindA(),
		"A, by workers and keys": settings.KindA(),
		"C, in batches":          settings.KindC(),
		"U, in batches by keys":  settings.KindU(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &killLoad{bench: openBench(t, dir), source: source, runs: make(map[string]int), done: make(map[string]string)}
			l.dead = name != "A, with no dead letter"
			l.keys = strings.Contains(name, "keys")
			l.batches = strings.Contains(name, "batches")
			l.run(t)
		})
	}
}

// killLoad is one run of TestKillsUnderLoad.
type killLoad struct {
	*bench
	source core.Capabilities
	dead   bool

	keys, batches bool // by several workers

	mu   sync.Mutex
	runs map[string]int    // handler runs by payload
	done map[string]string // the last outcome that ends a message, by payload
}

// handle gives every outcome its share.
func (l *killLoad) handle(_ context.Context, m *host.Message[[]byte]) error {
	p := string(m.Value)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[p]++
	switch kind := p[len(p)-1]; {
	case kind == '0' && m.Attempt() < 3: // fails until it is spent
		return errors.New("always")
	case kind == '0':
		l.done[p] = "spent"
		return errors.New("always")
	case kind == '1' && m.Attempt() == 1:
		return host.Retry(nil)
	case kind == '2' && m.Attempt() == 1:
		return host.RetryAfter(5*time.Millisecond, nil)
	case kind == '3':
		l.done[p] = "dropped"
		return host.Drop(nil)
	default:
		l.done[p] = "acked"
		return nil
	}
}

// handleAll is handle of batches.
func (l *killLoad) handleAll(ctx context.Context, ms []*host.Message[[]byte]) []error {
	out := make([]error, len(ms))
	for i, m := range ms {
		out[i] = l.handle(ctx, m)
	}
	return out
}

func (l *killLoad) run(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	s := l.service(host.WithRestartBackoff(time.Millisecond, 10*time.Millisecond), host.WithBreaker(10*kills, time.Hour))
	in := l.attach(s.Host, "mem", l.Settings.With("orders", l.source))
	rules := []host.Rule{host.MaxAttempts(3)}
	if l.dead {
		rules = append(rules, host.DeadLetterTo(in.To("graves")))
	}
	if l.keys {
		rules = append(rules, host.Workers(4), host.ByKeyFunc(func(m core.Message) string { return string(m.Payload[4:]) }))
	}
	if l.batches { // four workers with two batches each are no more than the window
		host.HandleBatch(in.Subscription("orders"), window/8, 2*time.Millisecond, l.handleAll, rules...)
	} else {
		host.Handle(in.Subscription("orders"), l.handle, rules...)
	}
	for i := range killMessages {
		l.Publish("orders", memory.Text(fmt.Sprintf("%05d", i)))
	}
	s.serve(t)
	for n := range kills {
		// Evenly over the load, so that the last one still hits it.
		l.must(t, l.Wait(ctx, "progress", func(v memory.View) bool {
			a := v.Account("orders")
			return a.Settled()+a.Sent >= (n+1)*killMessages/(kills+5)
		}))
		c, err := l.Client(ctx, "mem")
		l.must(t, err)
		l.must(t, c.Kill())
	}
	if l.source.Unsettled != core.UnsettledLost {
		// The broker alone cannot tell: copies may still wait in the host, and tries
		// that failed in a kill are spaced out by now.
		deadline := time.Now().Add(patience)
		for len(l.missing()) > 0 && time.Now().Before(deadline) {
			time.Sleep(100 * time.Millisecond) // a look at all of them costs time
		}
		if len(l.missing()) > 0 {
			l.account(t, s)
			return
		}
	}
	l.must(t, l.WaitIdle(ctx, "orders"))
	s.stop()
	if err := s.result(t); err != nil {
		t.Error(err)
	}
	l.account(t, s)
}

// missing lists the messages that did not come to the end that they should.
// A source that counts counts crashes as well, so what was delivered too often is
// a dead letter without another run.
func (l *killLoad) missing() []string {
	buried := l.buried()
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for i := range killMessages {
		p := fmt.Sprintf("%05d", i)
		want := "acked"
		switch p[4] {
		case '0':
			want = "spent"
		case '3':
			want = "dropped"
		}
		ended := l.done[p] == want || l.source.Counts == core.CountNative && buried[p]
		if !ended {
			out = append(out, fmt.Sprintf("%s came to %q after %d runs, not to %q", p, l.done[p], l.runs[p], want))
		}
	}
	return out
}

// buried is the set of dead letters.
func (l *killLoad) buried() map[string]bool {
	buried := make(map[string]bool)
	for _, m := range l.Published("graves") {
		buried[string(m.Payload)] = true
	}
	return buried
}

// account compares what every message came to with what it should, at the
// handler and at the broker.
func (l *killLoad) account(t *testing.T, s *service) {
	t.Helper()
	missing := l.missing()
	graves, buried := l.Published("graves"), l.buried()
	l.mu.Lock()
	runs := 0
	for _, n := range l.runs {
		runs += n
	}
	l.mu.Unlock()
	a := l.Account("orders")
	t.Logf("%d messages, %d kills: %d missing, %d handler runs, %d dead letters of %d messages; broker: %v",
		killMessages, kills, len(missing), runs, len(graves), len(buried), a)
	if l.source.Unsettled == core.UnsettledLost {
		// A plugin of this transport reads nothing beyond its window of 64, so a
		// life loses at most that many deliveries on their way, and as many
		// copies whose receipts were missing.
		if lost := a.Sent - runs; lost > kills*window {
			t.Errorf("%d deliveries did not reach a handler, more than %d", lost, kills*window)
		}
		if limit := kills * 2 * window; len(missing) > limit {
			t.Errorf("%d are missing, more than %d", len(missing), limit)
		}
		return
	}
	if len(missing) > 0 {
		t.Errorf("%d are missing, such as %v", len(missing), missing[:min(3, len(missing))])
	}
	if want := killMessages / 10; l.dead && (len(buried) < want || len(buried) > want && l.source.Counts == core.CountNone) {
		t.Errorf("%d messages have a dead letter, want %d", len(buried), want)
	}
	if a.Lost > 0 {
		t.Errorf("the broker lost %d", a.Lost)
	}
	if lines := s.log.lines("code=L-LOST"); len(lines) > 0 {
		t.Errorf("the host says that it lost: %v", lines[:min(3, len(lines))])
	}
}
