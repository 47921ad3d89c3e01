// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bytes"
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/interop/libzmq"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// mebibyte is a payload of 1 MiB that begins with its number.
func mebibyte(i int) []byte {
	return append(fmt.Appendf(nil, "%06d", i), bytes.Repeat([]byte("x"), 1<<20-6)...)
}

// numberOf reads a payload of mebibyte.
func numberOf(m *host.Message[[]byte]) string { return string(m.Value[:6]) }

// misses sums up what log lines say that subscribers of an endpoint have missed.
func misses(b *book, endpoint string) int {
	n := 0
	for _, l := range b.having("WARN", "endpoint:"+endpoint, "dropped:", "peer:") {
		one, _ := strconv.Atoi(l.text("dropped"))
		n += one
		one, _ = strconv.Atoi(l.text("unwritten"))
		n += one
	}
	return n
}

// Z-05: of two subscribers one is slow. The other one has all of a burst soon. As more comes, what the slow one misses is dropped for it alone, and told
// to the message.
func TestZ05OneSlowReader(t *testing.T) { // alone, since it takes all there is of the machine
	const burst, total = 60, 180
	p := newService(t)
	set := bound(settings.PatternFanOut, anyPort)
	out := p.zmq("out", set)
	events := p.to(out, "events")
	p.serve()
	attach := func(handle func(m *host.Message[[]byte]) error) (*service, *tally) {
		s, runs := newService(t), newTally()
		sub := s.zmq("in", dialing(settings.PatternFanOut, p.at(out))).Subscription("events")
		s.notesAs(sub, runs, numberOf, handle, s.elsewhere())
		s.serve()
		return s, runs
	}
	fast, all := attach(acks)
	release := make(chan struct{})
	slow, some := attach(func(m *host.Message[[]byte]) error {
		select {
		case <-release:
		case <-time.After(10 * time.Second):
		}
		return nil
	})
	more := 0 // messages beside the total
	marks := func(what string, ok func() bool) {
		t.Helper()
		eventually(t, what, func() bool {
			p.sends(t.Context(), events, string(mebibyte(900_000+more)))
			more++
			until(time.Now().Add(100 * time.Millisecond))
			return ok()
		})
	}
	last := func(r *tally) bool { return r.runs(strconv.Itoa(900_000+more-1)) == 1 }
	marks("both have subscribed", func() bool {
		b, _ := some.total()
		return last(all) && b > 0
	})
	before, _ := all.total()
	warm := more
	began := time.Now()
	put := func(from, to int) {
		for i := from; i < to; i++ {
			if _, err := events.Publish(t.Context(), mebibyte(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	has := func(n int) {
		eventually(t, fmt.Sprintf("the fast one has %d", n), func() bool { got, _ := all.total(); return got >= before+n })
	}
	put(0, burst)
	has(burst)
	if took := time.Since(began); took > 5*time.Second+late {
		t.Errorf("the fast one has the burst after %v", took)
	}
	for at := burst; at < total; at += 20 { // as fast as it reads
		put(at, at+20)
		has(at + 20)
	}
	eventually(t, "the drops are told", func() bool { return misses(p.log, "out") > 0 })
	close(release)
	marks("the slow one has what it is to have", func() bool { return last(some) })
	eventually(t, "so has the fast one", func() bool { return last(all) })
	slow.stops()
	p.stops()
	fast.stops()
	got, distinct := some.total()
	if dropped := misses(p.log, "out"); got != distinct || got+dropped != total+more {
		t.Errorf("the slow one has %d (%d of them different) and %d are told as dropped, of %d", got, distinct, dropped, total+more)
	}
	if n, _ := all.total(); n != before+total+more-warm {
		t.Errorf("the fast one has %d of %d", n-before, total+more-warm)
	}
}

// Z-06: a subscriber is stopped and never reads. 512 MiB later the plugin has not
// taken 256 MiB, the drops are told, and another endpoint goes on.
func TestZ06Memory(t *testing.T) { // alone, since it takes all there is of the machine
	const messages, most = 512, 256 << 10 // KiB
	s := newService(t)
	out := s.zmq("out", bound(settings.PatternFanOut, anyPort))
	jobs := s.zmq("jobs", bound(settings.PatternQueue, anyPort))
	events, work := s.to(out, "events"), s.to(jobs, "jobs")
	s.serve()
	stalled := libzmq.Start(t)
	sub := stalled.Open("SUB", libzmq.Options{Connect: []string{s.at(out)}, Subscribe: []string{"events"}})
	pull := libzmq.Start(t).Open("PULL", libzmq.Options{Connect: []string{s.at(jobs)}})
	eventually(t, "it has subscribed", func() bool {
		r, err := events.Publish(t.Context(), []byte("x"))
		return err == nil && !r.Unrouted
	})
	sub.Receive(1)
	if err := syscall.Kill(stalled.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	peak := 0
	for i := range messages {
		if _, err := events.Publish(t.Context(), mebibyte(i)); err != nil {
			t.Fatal(err)
		}
		if i%16 == 0 {
			peak = max(peak, resident(t, s.pid("out")))
			if _, err := work.Publish(t.Context(), []byte(strconv.Itoa(i))); err != nil {
				t.Errorf("the other endpoint: %v", err)
			}
		}
	}
	if peak > most {
		t.Errorf("the plugin had %d KiB resident", peak)
	}
	var want [][]string
	for i := 0; i < messages; i += 16 {
		want = append(want, []string{"jobs", "", strconv.Itoa(i)})
	}
	if diff := cmp.Diff(want, frames(pull.Receive(len(want)))); diff != "" {
		t.Errorf("over the other endpoint (-want +got):\n%s", diff)
	}
	stalled.Kill()
	kept := 64 + 8 // the queue, and what the kernel has
	eventually(t, "the drops are told", func() bool { return misses(s.log, "out") >= messages-kept })
	s.stops()
	if n := misses(s.log, "out"); n > messages {
		t.Errorf("%d of %d are told as dropped", n, messages)
	}
	t.Logf("at most %d KiB resident, %d of %d missed", peak, misses(s.log, "out"), messages)
}
