// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
)

// exchangeable is a plugin file that can be replaced while it runs: a script
// that notes the time of each start.
type exchangeable struct {
	t                 *testing.T
	path, starts, dir string
}

func newExchangeable(t *testing.T) *exchangeable {
	dir := t.TempDir()
	return &exchangeable{t, filepath.Join(dir, "longshore-transport-memory"), filepath.Join(dir, "starts"), dir}
}

// becomes replaces the file by one that does this after noting the start.
func (e *exchangeable) becomes(script string) {
	e.t.Helper()
	fresh := filepath.Join(e.dir, "fresh")
	writeScript(e.t, fresh, fmt.Sprintf("echo x >> %s\n%s", e.starts, script))
	if err := os.Rename(fresh, e.path); err != nil {
		e.t.Fatal(err)
	}
}

// L-03: a plugin that always dies is started with growing pauses and not for
// ever: the host ends with an error that names the endpoint, how often it
// crashed, and its last words.
func TestL03CrashLoopEndsTheHost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := newExchangeable(t)
	e.becomes("exec " + b.Path)
	s := newService(t)
	in := s.Endpoint("mem", host.Plugin{Name: "memory", Path: e.path}, b.Settings)
	host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error { return nil })
	s.serve()
	c := b.client("mem")
	e.becomes("echo cannot reach the licence server >&2; sleep 0.1; exit 3")
	began := time.Now()
	b.must(c.Kill())
	var lost *host.EndpointError
	if err := s.ends(); !errors.As(err, &lost) {
		t.Fatalf("got %v, want an *EndpointError", err)
	}
	// Five crashes within two minutes: the kill and four starts, behind pauses of
	// 250 ms, 500 ms, 1 s and 2 s with their jitter.
	if n := lineCount(e.starts) - 1; n != 4 {
		t.Errorf("%d starts after the kill, want 4", n)
	}
	if took := time.Since(began); took < 1500*time.Millisecond {
		t.Errorf("it took %v", took)
	}
	for _, want := range []string{"endpoint mem", "cannot reach the licence server", "status 3"} {
		if !strings.Contains(lost.Error(), want) {
			t.Errorf("%v does not say %q", lost, want)
		}
	}
}

// L-03: replaced by a good one in time, it recovers by itself.
func TestL03CrashLoopRecovers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := newExchangeable(t)
	e.becomes("exec " + b.Path)
	s := newService(t)
	in := s.Endpoint("mem", host.Plugin{Name: "memory", Path: e.path}, b.Settings)
	host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error { return nil })
	s.serve()
	c := b.client("mem")
	e.becomes("echo cannot reach the licence server >&2; sleep 0.1; exit 3")
	b.must(c.Kill())
	eventually(t, "two bad starts", func() bool { return lineCount(e.starts) >= 3 })
	if s.Ready() {
		t.Error("ready without a plugin")
	}
	e.becomes("exec " + b.Path)
	b.Publish("orders", memory.Text("one"))
	b.must(b.WaitSettled(b.ctx, "orders", 1))
	eventually(t, "the host is ready again", s.Ready)
	s.stops()
}
