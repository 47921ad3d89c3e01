// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// The allowed growth between two marks of L-12.
const (
	moreGoroutines  = 5
	moreDescriptors = 3
	moreHeap        = 1 << 20
)

// held is what a process holds.
type held struct {
	goroutines, descriptors int
	heap                    uint64
}

func holding(t *testing.T) held {
	t.Helper()
	runtime.GC()
	runtime.GC() // what finalizers and pools let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return held{runtime.NumGoroutine(), len(fds), m.HeapAlloc}
}

// upAgain waits until the plugin was started again n times and is up: a host
// that has not seen the last kill yet is ready as well.
func upAgain(t *testing.T, s *service, n uint64) {
	t.Helper()
	eventually(t, "the host is up again", func() bool {
		e := s.Health().Endpoints[0]
		return e.Restarts >= n && e.State == host.EndpointUp && s.Ready()
	})
}

// TestRestartsLeakNothing is L-12 for the whole host: after 150 restarts it
// holds what it held after 50.
func TestRestartsLeakNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("takes its time")
	}
	b := newBench(t)
	s := b.service(host.WithRestartBackoff(time.Millisecond, time.Millisecond), host.WithBreaker(1000, time.Hour))
	in := b.attach(s.Host, "mem", b.Settings.With("orders", settings.KindA()))
	host.Handle(in.Subscription("orders"), acks, host.MaxAttempts(3), host.DeadLetterTo(in.To("graves")))
	s.serve(t)
	var at50 held
	for n := 1; n <= 150; n++ {
		b.Publish("orders", memory.Text("one"))
		b.must(t, b.WaitSettled(t.Context(), "orders", n))
		c, err := b.Client(t.Context(), "mem")
		b.must(t, err)
		b.must(t, c.Kill())
		if n == 50 {
			upAgain(t, s, uint64(n))
			at50 = holding(t)
		}
	}
	upAgain(t, s, 150)
	var at150 held
	t.Cleanup(func() {
		if t.Failed() {
			stacks := make([]byte, 1<<20)
			t.Logf("after 50 restarts: %+v; after 150: %+v\n%s", at50, at150, stacks[:runtime.Stack(stacks, true)])
		}
	})
	// Goroutines of the last restart may take a moment to end.
	eventually(t, "goroutines and descriptors are as before", func() bool {
		at150 = holding(t)
		return at150.goroutines <= at50.goroutines+moreGoroutines && at150.descriptors <= at50.descriptors+moreDescriptors
	})
	t.Logf("after 50 restarts: %+v; after 150: %+v", at50, at150)
	// The log that the test itself keeps grows as well.
	if kept := uint64(len(s.log.text())); at150.heap > at50.heap+moreHeap+2*kept {
		t.Errorf("the heap grew from %d to %d", at50.heap, at150.heap)
	}
	s.stop()
	if err := s.result(t); err != nil {
		t.Error(err)
	}
	b.nothingLeft(t)
}
