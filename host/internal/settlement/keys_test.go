// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// byHeader is a key function.
func byHeader(m *core.Message) (string, error) { return m.Headers.Value("key"), nil }

// turns sees to it that one key is never handled twice at once, and keeps the
// order in which deliveries were begun.
type turns struct {
	mu      sync.Mutex
	at      map[string]int
	running int
	most    int
	order   map[string][]string
	wrong   []string
}

func newTurns() *turns {
	return &turns{at: make(map[string]int), order: make(map[string][]string)}
}

// begin notes that d is handled; what it returns ends that.
func (t *turns) begin(ds ...*Delivery) (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys := make(map[string]bool)
	for _, d := range ds {
		key := d.Message.Headers.Value("key")
		keys[key] = true
		t.order[key] = append(t.order[key], string(d.Message.Payload))
	}
	for key := range keys {
		if t.at[key]++; t.at[key] > 1 && key != "" {
			t.wrong = append(t.wrong, fmt.Sprintf("key %q is handled %d times at once", key, t.at[key]))
		}
	}
	t.running++
	t.most = max(t.most, t.running)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		for key := range keys {
			t.at[key]--
		}
		t.running--
	}
}

func TestWorkersHandleAtOnce(t *testing.T) { // E-09
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var began []string
		at := newTurns()
		b := newBench(t, kindA, func(d *Delivery) Said {
			mu.Lock()
			began = append(began, string(d.Message.Payload))
			mu.Unlock()
			defer at.begin(d)()
			time.Sleep(time.Second)
			return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
		}, func(s *setup) { s.o.Workers = 4 })
		synctest.Wait()
		b.lane.mu.Lock()
		if b.lane.workers != 0 {
			t.Errorf("%d workers run before anything was delivered", b.lane.workers)
		}
		b.lane.mu.Unlock()
		start := time.Now()
		b.p.deliver(message("0"))
		synctest.Wait()
		for i := 1; i < 40; i++ {
			b.p.deliver(message(fmt.Sprint(i)))
		}
		for b.lane.Counters().Acked < 40 {
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if took := time.Since(start); took > 11*time.Second {
			t.Errorf("40 handlers of 1 s took %v with 4 workers", took)
		}
		if at.most != 4 {
			t.Errorf("%d at a time, want 4", at.most)
		}
		for i := range began { // in order, but for who is first of four
			if n := slices.Index(began, fmt.Sprint(i)); n/4 != i/4 && i > 3 {
				t.Errorf("%d was begun as number %d", i, n)
			}
		}
	})
}

func TestByKeyKeepsOrder(t *testing.T) { // E-15
	synctest.Test(t, func(t *testing.T) {
		at := newTurns()
		b := newBench(t, kindA, func(d *Delivery) Said {
			defer at.begin(d)()
			if d.Message.Headers.Value("key") == "slow" {
				time.Sleep(time.Minute)
			}
			time.Sleep(time.Millisecond)
			return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
		}, func(s *setup) { s.o.Workers, s.o.Key = 4, byHeader })
		synctest.Wait()
		want := make(map[string][]string)
		for i := range 200 {
			key := []string{"slow", "a", "b", "c", "d"}[i%5]
			b.p.deliver(message(fmt.Sprint(i), "key", key))
			want[key] = append(want[key], fmt.Sprint(i))
		}
		time.Sleep(time.Second)
		if c := b.lane.Counters(); c.Acked != 160 {
			t.Errorf("a slow key holds up others: %+v", c)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if diff := cmp.Diff(want, at.order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		if len(at.wrong) > 0 || at.most != 4 {
			t.Errorf("%v; %d at a time", at.wrong, at.most)
		}
		b.lane.mu.Lock()
		defer b.lane.mu.Unlock()
		if n := len(b.lane.keys.byName); n != 0 {
			t.Errorf("%d keys are kept when nothing is in work", n)
		}
	})
}

// Whatever comes in between, two deliveries of one key are never handled at
// once, and first deliveries of a key are begun in their order.
func TestKeysInAStorm(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		workers := rapid.IntRange(1, 8).Draw(rt, "workers")
		batch := rapid.SampledFrom([]int{0, 1, 4}).Draw(rt, "batch")
		kind := rapid.SampledFrom([]string{"A", "C", "U"}).Draw(rt, "kind")
		header := rapid.Bool().Draw(rt, "header")
		seed := rapid.Uint64().Draw(rt, "seed")
		var problem string
		synctest.Test(t, func(t *testing.T) { problem = keyStorm(t, kind, workers, batch, header, seed) })
		if problem != "" {
			rt.Fatalf("%s", problem)
		}
	})
}

func keyStorm(t *testing.T, kind string, workers, batch int, header bool, seed uint64) string {
	d := newDice(seed)
	at := newTurns()
	b := newBench(t, kinds[kind], nil, func(s *setup) {
		s.o.Workers, s.o.Key, s.blind = workers, byHeader, true
		if header {
			s.o.Key, s.o.KeyHeader = nil, "Key"
		}
		s.o.Handle = func(_ context.Context, x *Delivery) Said {
			end := at.begin(x)
			time.Sleep(time.Duration(d.n(20)) * time.Millisecond)
			end()
			if d.n(20) == 0 {
				runtime.Goexit()
			}
			return Said{Outcome: outcomeOf([]byte{'0' + byte(d.n(8))})}
		}
		if batch > 0 {
			s.o.Batch = &Batch{
				Max: batch, Wait: 5 * time.Millisecond,
				Open: func(context.Context, *Delivery) (Said, bool) { return Said{}, true },
				Handle: func(_ context.Context, xs []*Delivery, said []Said) int {
					end := at.begin(xs...)
					time.Sleep(time.Duration(d.n(20)) * time.Millisecond)
					end()
					for i := range xs {
						said[i].Outcome = outcomeOf([]byte{'0' + byte(d.n(8))})
					}
					if d.n(20) == 0 {
						runtime.Goexit()
					}
					return len(xs)
				},
			}
		}
	})
	synctest.Wait()
	n, total := 0, 0
	for range 60 {
		var items []frame.Delivery
		for range d.n(6) {
			if b.p.unsettled()+len(items) >= int(creditOf(b.p).Messages) {
				break
			}
			key := []string{"", "a", "b", "c"}[d.n(4)]
			n++
			total++
			items = append(items, message(fmt.Sprintf("%04d", total), "key", key))
		}
		if len(items) > 0 {
			b.p.deliver(items...)
		}
		switch d.n(12) {
		case 0:
			b.p.void(&transportpb.Void{First: uint64(d.n(n+1) + 1), Count: 3, Returns: d.n(2) == 0})
		case 1:
			b.lane.Pause()
			time.Sleep(time.Duration(d.n(100)) * time.Millisecond)
			b.lane.Resume()
		case 2:
			synctest.Wait()
			b.crash()
			b.attach(newPlugin())
			synctest.Wait()
			n = 0
		default:
			time.Sleep(time.Duration(d.n(30)) * time.Millisecond)
		}
	}
	time.Sleep(3 * time.Hour)
	at.mu.Lock()
	defer at.mu.Unlock()
	for _, key := range []string{"a", "b", "c"} {
		if !slices.IsSorted(at.order[key]) {
			return fmt.Sprintf("key %q begun in the order %v", key, at.order[key])
		}
	}
	if len(at.wrong) > 0 {
		return fmt.Sprint(at.wrong)
	}
	if c := b.lane.Counters(); c.InWork > uint64(b.p.unsettled()) {
		return fmt.Sprintf("%+v", c)
	}
	b.lane.mu.Lock()
	defer b.lane.mu.Unlock()
	if k := b.lane.keys; len(k.byName) > 0 || k.waiting > 0 || k.freed != nil {
		return fmt.Sprintf("keys %v are kept", slices.Collect(maps.Keys(k.byName)))
	}
	return ""
}

// What Key cannot name is handed to the handler with the reason, and a key
// function that ends its goroutine stops nothing.
func TestKeyFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := errors.New("no")
		var mu sync.Mutex
		told := make(map[string]error)
		b := newBench(t, kindA, func(d *Delivery) Said {
			mu.Lock()
			defer mu.Unlock()
			told[string(d.Message.Payload)] = d.Unkeyed
			return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
		}, func(s *setup) {
			s.o.Workers = 3
			s.o.Key = func(m *core.Message) (string, error) {
				switch string(m.Payload) {
				case "exit":
					runtime.Goexit()
				case "fail":
					return "", no
				}
				return m.Name, nil // lies in the frame
			}
		})
		synctest.Wait()
		b.p.deliver(message("exit"), message("1"), message("fail"))
		b.p.deliver(message("2"), message("exit"), message("exit"))
		b.p.deliver(message("3"))
		synctest.Wait()
		want := map[string]error{"exit": errKeyExited, "1": nil, "fail": no, "2": nil, "3": nil}
		if diff := cmp.Diff(want, told, cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) })); diff != "" {
			t.Error(diff)
		}
		if c := b.lane.Counters(); c.Acked != 7 {
			t.Errorf("counters %+v", c)
		}
		if left, _, _ := b.stop(t.Context()); !left.Empty() {
			t.Errorf("left %+v", left)
		}
	})
}

// A handler that ends its goroutine keeps neither its worker nor its key.
func TestHandlersEndTheirGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newTurns()
		b := newBench(t, kindA, func(d *Delivery) Said {
			defer at.begin(d)()
			time.Sleep(time.Second)
			return exits(d)
		}, func(s *setup) {
			s.o.Workers, s.o.Key, s.o.Policy.MaxAttempts = 3, byHeader, 1
		})
		synctest.Wait()
		for range 10 {
			for _, key := range []string{"a", "b", "c"} {
				b.p.deliver(message("exit", "key", key), message("ok", "key", key))
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if c := b.lane.Counters(); c.Acked != 30 || c.Dropped != 30 {
			t.Errorf("counters %+v", c)
		}
		if len(at.wrong) > 0 || at.most != 3 {
			t.Errorf("%v; %d at a time", at.wrong, at.most)
		}
	})
}

// A stop lists every handler that does not return, and hands back at once what
// waits for a worker or a key.
func TestStopWithWorkers(t *testing.T) { // E-07
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, func(*Delivery) Said {
			time.Sleep(time.Hour)
			return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
		}, func(s *setup) { s.o.Workers, s.o.Key = 3, byHeader })
		synctest.Wait()
		for i := range 12 {
			b.p.deliver(message(fmt.Sprint(i), "key", []string{"a", "b", "c", ""}[i%4]))
		}
		synctest.Wait()
		b.lane.StopIntake()
		synctest.Wait()
		if c := b.lane.Counters(); c.Released != 9 || c.InWork != 3 {
			t.Errorf("counters %+v, want what waits to be released at once", c)
		}
		left := b.lane.Drain(limited(t, time.Minute))
		if left.Handlers != 3 || len(left.Running) != 3 {
			t.Errorf("left %+v", left)
		}
		time.Sleep(2 * time.Hour)
	})
}

// What nobody would deliver again is handled by all workers, also after a stop.
func TestStopWithWorkersOfALossySource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := newTurns()
		b := newBench(t, kindU, func(d *Delivery) Said {
			defer at.begin(d)()
			time.Sleep(time.Second)
			return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
		}, func(s *setup) { s.o.Workers, s.o.Key, s.o.Paused = 3, byHeader, true })
		synctest.Wait()
		b.lane.Resume()
		synctest.Wait()
		b.lane.Pause()
		for i := range 12 {
			b.p.deliver(message(fmt.Sprint(i), "key", []string{"a", "b", "c"}[i%3]))
		}
		synctest.Wait()
		start := time.Now()
		left, _, _ := b.stop(limited(t, time.Minute))
		synctest.Wait()
		if took := time.Since(start); took != 4*time.Second || !left.Empty() {
			t.Errorf("took %v, left %+v", took, left)
		}
		if c := b.lane.Counters(); c.Dropped+c.Acked != 12 || at.most != 3 {
			t.Errorf("counters %+v, %d at a time", c, at.most)
		}
	})
}

// A key that was there costs no memory when it comes back, and no more names are
// remembered than their bound.
func TestKnownKeysDoNotAllocate(t *testing.T) {
	many := make([][]byte, namesMost)
	for i := range many {
		many[i] = fmt.Appendf(nil, "key %d", i)
	}
	var ks keys
	turn := func() {
		for _, name := range many {
			f := &flight{}
			f.key = ks.read(name)
			ks.begun(f)
		}
	}
	turn()
	if got := testing.AllocsPerRun(10, turn); got > 0 {
		t.Errorf("%v allocations for %d known keys, want none", got, len(many))
	}
	for i := range 10 * namesMost {
		f := &flight{key: ks.read(fmt.Appendf(nil, "other %d", i))}
		ks.begun(f)
	}
	long := bytes.Repeat([]byte("x"), namesBytes+1)
	f := &flight{key: ks.read(long)}
	if f.key.name != string(long) {
		t.Errorf("key %q", f.key.name)
	}
	ks.begun(f)
	if _, ok := ks.names[string(long)]; ok || len(ks.names) > namesMost || len(ks.byName) > 0 {
		t.Errorf("%d names are remembered, a long one %v, %d keys", len(ks.names), ok, len(ks.byName))
	}
}
