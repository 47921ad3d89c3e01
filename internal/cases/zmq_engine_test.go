// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/interop/libzmq"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// L-01: kill -9 of a host that listens, under load. Its port is free at once, and
// the next host takes it and is sent to.
func TestL01PortsAreFree(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	zmqPlugin(t) // beside the command
	program(t)   // the building of it is not timed
	file := serviceFile(t, fmt.Sprintf(`
endpoints:
  in: {transport: zmq, settings: {pattern: queue, bind: "%s"}}
  answers: {transport: zmq, settings: {pattern: fan-out, bind: "tcp://127.0.0.1:0"}}
subscriptions:
  - {from: in, name: jobs, forward: {to: answers, name: done}}
`, address))
	far := libzmq.Start(t)
	push := far.Open("PUSH", libzmq.Options{Connect: []string{address}, Set: map[string]int{"SNDHWM": 10}})
	dir := socketFolder(t)
	for round := range 4 {
		p := startProgram(t, file, nil, inFolder(dir))
		p.servesSoon()
		push.Send("jobs", "", "x")
		push.Sees("HANDSHAKE_SUCCEEDED")
		_ = push.TrySend(500, 100*time.Millisecond, "jobs", "", "load") // some are under way at the end
		if round == 3 {
			p.signal(syscall.SIGTERM)
			p.status()
			return
		}
		p.kill()
		eventually(t, "the port is free", func() bool {
			l, err := net.Listen("tcp", strings.TrimPrefix(address, "tcp://"))
			if err == nil {
				_ = l.Close()
			}
			return err == nil
		})
		if left := filesIn(dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// L-01 with sockets by name: their files are gone soon after kill -9 of the host,
// though nobody has closed them. After kill -9 of its plugin the next one takes
// the file that it has left.
func TestL01SocketFilesAreGone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socketFolder(t), "s.sock")
	c := childConfig{
		Endpoints:     []childEndpoint{{Name: "in", Plugin: "zmq", Path: zmqPlugin(t), Settings: bound(settings.PatternQueue, "ipc://"+path)}},
		Subscriptions: []childSubscription{{From: "in", Name: "jobs", Tells: true}},
	}
	push := libzmq.Start(t).Open("PUSH", libzmq.Options{Connect: []string{"ipc://" + path}})
	for range 3 {
		p := startChild(t, c, inFolder(socketFolder(t)))
		p.next("ready")
		push.Sees("HANDSHAKE_SUCCEEDED")
		push.Send("jobs", "", "x")
		p.next("run")
		if err := syscall.Kill(p.plugins()["in"], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		push.Sees("DISCONNECTED") // else it would send to who is gone
		push.Sees("HANDSHAKE_SUCCEEDED")
		eventually(t, "its plugin is started again", func() bool { return len(p.log.having("INFO", "endpoint is up")) == 2 })
		push.Send("jobs", "", "y")
		p.next("run")
		p.kill()
		push.Sees("DISCONNECTED")
		eventually(t, "the file is gone", func() bool {
			_, err := os.Stat(path)
			return errors.Is(err, fs.ErrNotExist)
		})
	}
}

// E-03: two services hand a failing message to and fro. One of them is killed when
// its copy has left, and the count goes on where it was, in the other one and in
// the one that is started again.
func TestE03CountOverZeroMQ(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	b := newService(t)
	again, back := b.zmq("again", bound(settings.PatternQueue, anyPort)), b.zmq("back", dialing(settings.PatternQueue, address))
	go2 := make(chan struct{}) // attempt 2 may end
	runs := b.notes(again.Subscription("again"), func(*host.Message[[]byte]) error {
		<-go2
		return host.Retry(nil)
	}, host.MaxAttempts(4), host.RetryTo(back.To("jobs")))
	b.serves()
	c := childConfig{
		Endpoints: []childEndpoint{
			{Name: "in", Plugin: "zmq", Path: zmqPlugin(t), Settings: bound(settings.PatternQueue, address)},
			{Name: "other", Plugin: "zmq", Path: zmqPlugin(t), Settings: dialing(settings.PatternQueue, b.at(again))},
		},
		Subscriptions: []childSubscription{{From: "in", Name: "jobs", Cap: 4, RetryTo: "again@other"}},
	}
	p := startChild(t, c, inFolder(socketFolder(t)))
	p.next("ready")
	push := libzmq.Start(t).Open("PUSH", libzmq.Options{Connect: []string{address}})
	push.Send("jobs", "", "retry")
	push.Sees("HANDSHAKE_SUCCEEDED")
	if e := p.next("run"); e.Attempt != 1 {
		t.Errorf("attempt %d", e.Attempt)
	}
	eventually(t, "attempt 2 runs", func() bool { return runs.runs("retry") == 1 })
	p.kill()
	close(go2)
	p = startChild(t, c, inFolder(socketFolder(t)))
	if e := p.next("run"); e.Attempt != 3 {
		t.Errorf("attempt %d after the kill", e.Attempt)
	}
	eventually(t, "attempt 4 was the last", func() bool { return b.counters("again").Dropped == 1 })
	if diff := cmp.Diff([]uint64{2, 4}, runs.attempts("retry")); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if n := len(b.log.of("L-CAP-RJ", "again")); n != 1 {
		t.Errorf("%d lines of L-CAP-RJ", n)
	}
	p.signal(syscall.SIGTERM)
	p.status()
	b.stops()
}

// E-13: what each outcome comes to on ZeroMQ, which answers none of them.
func TestE13SettlementAnswersOverZeroMQ(t *testing.T) {
	t.Parallel()
	const each = 1000
	for outcome, tt := range map[string]struct {
		err    error
		copies bool
		again  bool // it is said once a second at most, else once and in a summary
	}{
		"ack": {nil, false, false}, "drop": {host.Drop(nil), false, false}, "retry": {host.Retry(nil), false, true},
		"retry_after": {host.RetryAfter(50*time.Millisecond, nil), true, false},
	} {
		t.Run(outcome, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			in := s.zmq("in", bound(settings.PatternQueue, anyPort))
			runs := s.notes(in.Subscription("jobs"), func(m *host.Message[[]byte]) error {
				if m.Attempt() > 1 {
					return nil
				}
				return tt.err
			})
			s.serve()
			push, began := libzmq.Start(t).Open("PUSH", libzmq.Options{Connect: []string{s.at(in)}}), time.Now()
			if err := push.TrySend(each, patience, "jobs", "", "x"); err != nil {
				t.Fatal(err)
			}
			want := each
			if tt.copies {
				want *= 2
			}
			eventually(t, "all have run", func() bool { n, _ := runs.total(); return n == want })
			eventually(t, "nothing is in work", func() bool { return s.counters("jobs").InWork == 0 })
			c := s.counters("jobs")
			s.stops()
			if n, _ := runs.total(); n != want {
				t.Errorf("%d runs, want %d", n, want)
			}
			lines, most := len(s.log.of("L-UNS", "jobs")), 4
			if tt.again {
				most += int(time.Since(began) / time.Second)
			}
			if lines == 0 || lines > most {
				t.Errorf("%d lines of L-UNS", lines)
			}
			t.Logf("counters %+v, %d lines", c, lines)
		})
	}
}

// E-15: what comes over one connection is handled in order, within each key and
// over both. Number 10 of key a, which fails twice, comes again behind others, as
// Explain says, and key b is not disturbed.
func TestE15OrderOverZeroMQ(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string][]host.Rule{
		"one worker": nil, "by key": {host.Workers(4), host.ByKey()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			in := s.zmq("in", bound(settings.PatternQueue, anyPort))
			dead := s.zmq("dead", bound(settings.PatternQueue, anyPort))
			seen, runs, there := &sequence{}, newTally(), make(chan struct{})
			s.notesAs(in.Subscription("orders", host.Window(2*len(twoKeys), 0)), runs, func(m *host.Message[[]byte]) string {
				<-there
				seen.add(string(m.Value))
				return string(m.Value)
			}, func(m *host.Message[[]byte]) error {
				if string(m.Value) == "a10" && m.Attempt() < 3 {
					return host.Retry(nil)
				}
				return nil
			}, append([]host.Rule{host.MaxAttempts(5), host.DeadLetterTo(dead.To("graves"))}, rules...)...)
			s.serve()
			push := libzmq.Start(t).Open("PUSH", libzmq.Options{Connect: []string{s.at(in)}})
			for _, p := range twoKeys {
				push.Send("orders", "partition-key: "+p[:1], p)
			}
			eventually(t, "all are there", func() bool { return s.counters("orders").Received == uint64(len(twoKeys)) })
			close(there)
			eventually(t, "a10 is done", func() bool { return runs.runs("a10") == 3 })
			eventually(t, "all is done", func() bool { return s.counters("orders").InWork == 0 })
			s.stops()
			if diff := cmp.Diff([]uint64{1, 2, 3}, runs.attempts("a10")); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
			said := s.explainedOrder(t)
			if said != "the copy comes behind those under way" { // and before what the peer has sent and nobody has read
				t.Errorf("Explain says: %s", said)
			}
			keyed{byKey: len(rules) > 0}.check(t, said, seen.all)
		})
	}
}

// explainedOrder is what Explain says of the order after a retry on a bound
// queue.
func (s *service) explainedOrder(t *testing.T) string {
	t.Helper()
	e := newService(t)
	in := e.zmq("in", bound(settings.PatternQueue, anyPort))
	e.notes(in.Subscription("orders"), acks, host.MaxAttempts(5))
	tables, err := e.Explain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return afterRetry(t, tables)
}

// E-16: a bridge from queue to queue that passes headers on as they are. The far
// side always fails: it has three runs, whatever count the message brought, and
// none of its copies carries two counts.
func TestE16BridgeOverZeroMQ(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		headers string
		runs    []uint64 // attempts at the far side
	}{
		{"X-Tenant: acme", []uint64{1, 2, 3}},
		{"x-ruststream-retry-count: 1", []uint64{2, 3}},
		{"X-RustStream-Retry-Count: 1", []uint64{2, 3}},
		{"x-ruststream-retry-count: 1\nx-ruststream-retry-count: 2", []uint64{3}},
		{"x-ruststream-retry-count: 7", []uint64{8}},
		{"x-ruststream-retry-count: many", []uint64{1, 2, 3}},
	} {
		t.Run(tt.headers, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			near, far := s.zmq("near", bound(settings.PatternQueue, anyPort)), s.zmq("far", bound(settings.PatternQueue, anyPort))
			out := host.To[core.Message](s.Host, far.To("far"))
			sent := s.notes(near.Subscription("near"), func(m *host.Message[[]byte]) error {
				_, err := out.Publish(t.Context(), core.Message{Headers: m.Headers().Clone(), Payload: m.Value})
				return err
			}, host.MaxAttempts(3))
			var counts []int
			runs := s.notes(far.Subscription("far"), func(m *host.Message[[]byte]) error {
				n := 0
				for _, h := range m.Headers() {
					if strings.EqualFold(h.Name, countHeader) {
						n++
					}
				}
				counts = append(counts, n) // one worker
				return host.Retry(nil)
			}, host.MaxAttempts(3))
			s.serve()
			push := libzmq.Start(t).Open("PUSH", libzmq.Options{Connect: []string{s.at(near)}})
			push.Send("near", tt.headers, "x")
			eventually(t, "the far side is done", func() bool {
				return len(runs.attempts("x")) == len(tt.runs) && s.counters("far").InWork == 0
			})
			s.stops()
			if diff := cmp.Diff(tt.runs, runs.attempts("x")); diff != "" {
				t.Errorf("attempts at the far side (-want +got):\n%s", diff)
			}
			if len(counts) > 1 && slices.Max(counts[1:]) > 1 {
				t.Errorf("counts of the copies: %v", counts)
			}
			if n := sent.runs("x"); n != 1 {
				t.Errorf("%d runs at the near side", n)
			}
		})
	}
}
