// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/memtest"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// patience is how long a test waits for what comes at once on an idle machine: a
// busy one may stop a process for seconds, and many of them in turn.
const patience = 2 * time.Minute

// late is how much later than on an idle machine, for which the times of the cases
// are, something may happen that has a time: a stop, a start, a notice.
const late = 20 * time.Second

// bench is a broker whose plugins are processes.
type bench struct {
	*memtest.Bench
	t   *testing.T
	ctx context.Context //nolint:containedctx // of the test
}

func newBench(t *testing.T) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	t.Cleanup(cancel)
	return &bench{Bench: memtest.Start(t), t: t, ctx: ctx}
}

// attach attaches the memory plugin.
func (b *bench) attach(s *service, name string, set settings.Settings) *host.Endpoint {
	return s.Endpoint(name, host.Plugin{Name: "memory", Path: b.Path}, set)
}

// client returns the connected plugin of an endpoint.
func (b *bench) client(endpoint string) *memory.Client {
	b.t.Helper()
	c, err := b.Client(b.ctx, endpoint)
	b.must(err)
	return c
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// wait waits until the broker shows something.
func (b *bench) wait(what string, done func(v memory.View) bool) {
	b.t.Helper()
	b.must(b.Wait(b.ctx, what, done))
}

// kinds are the capability sets of reference 2.1 that the cases are tried on,
// each standing for a family of transports.
var kinds = []struct {
	name string
	caps core.Capabilities
}{
	{"A", settings.KindA()}, // settles, does not count
	{"C", settings.KindC()}, // counts
	{"M", settings.KindM()}, // MQTT QoS 1 in a kept session
	{"U", settings.KindU()}, // ZeroMQ, file, stdio, MQTT QoS 0
	{"K", settings.KindK()}, // a log with offsets
}

// copies reports whether a retry below the cap is a copy.
func copies(c core.Capabilities) bool { return c.Counts == core.CountNone }

// backTo is the rule that a source without an address needs for copies.
func backTo(e *host.Endpoint, name string, c core.Capabilities) []host.Rule {
	if c.Address == "" && copies(c) {
		return []host.Rule{host.RetryTo(e.To(name))}
	}
	return nil
}

// tally counts by key.
type tally struct {
	mu sync.Mutex
	n  map[string]int
	at map[string][]time.Time
	no map[string][]uint64 // the attempt numbers seen
}

func newTally() *tally {
	return &tally{n: map[string]int{}, at: map[string][]time.Time{}, no: map[string][]uint64{}}
}

// ran notes one handler run.
func (r *tally) ran(key string, attempt uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n[key]++
	r.at[key] = append(r.at[key], time.Now())
	r.no[key] = append(r.no[key], attempt)
}

// runs returns how often the handler ran for a key.
func (r *tally) runs(key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n[key]
}

// attempts returns the attempt numbers that the handler saw for a key.
func (r *tally) attempts(key string) []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.no[key])
}

// times returns when the handler ran for a key.
func (r *tally) times(key string) []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.at[key])
}

// eventually polls until ok says so, less and less often.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	began, pause := time.Now(), pollFirst
	for !ok() {
		if time.Since(began) > patience {
			t.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(pause)
		pause = min(pollMost, pause+pause/8)
	}
}

// The pauses of eventually: what comes at once is seen at once, and what takes a
// while is not looked at all the time.
const (
	pollFirst = 2 * time.Millisecond
	pollMost  = 20 * time.Millisecond
)

// until waits for a time.
func until(at time.Time) { <-time.After(time.Until(at)) }

// alive reports whether a process runs; one that nobody has waited for does not.
func alive(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, rest, _ := strings.Cut(string(stat), ") ")
		return !strings.HasPrefix(rest, "Z")
	}
	return syscall.Kill(pid, 0) == nil
}

// payloads returns the payloads of messages, sorted.
func payloads(ms []memory.Message) []string {
	var out []string
	for _, m := range ms {
		out = append(out, string(m.Payload))
	}
	slices.Sort(out)
	return out
}
