// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/interop/libzmq"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// Z-09: a new service has taken the path of an old one, which then stops: it
// leaves the socket that is not its own.
func TestZ09RollingRestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(socketFolder(t), "s.sock")
	start := func() (*service, *tally) {
		s := newService(t)
		runs := s.notes(s.zmq("in", bound(settings.PatternQueue, "ipc://"+path)).Subscription("jobs"), acks)
		s.serve()
		return s, runs
	}
	old, former := start()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	next, runs := start()
	old.stops()
	p := newService(t)
	out := p.zmq("out", dialing(settings.PatternQueue, "ipc://"+path))
	jobs := p.to(out, "jobs")
	p.serve()
	want := numbered(10)
	p.sends(t.Context(), jobs, want...)
	eventually(t, "all have run", func() bool { n, _ := runs.total(); return n == len(want) })
	if diff := cmp.Diff(want, runs.keys()); diff != "" {
		t.Errorf("handled (-want +got):\n%s", diff)
	}
	if n, _ := former.total(); n > 0 {
		t.Errorf("%d were handled by the old one", n)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	p.stops()
	next.stops()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file stays after its owner: %v", err)
	}
}

// Z-10: of seven odd messages three cannot be read. Those are settled once each,
// with a warning; the rest, and a good one, are handled.
func TestZ10Malformed(t *testing.T) {
	t.Parallel()
	s := newService(t)
	in := s.zmq("in", bound(settings.PatternQueue, anyPort))
	runs := newTally()
	s.notesAs(in.Subscription("jobs"), runs, func(m *host.Message[[]byte]) string { return m.Name() + "|" + string(m.Value) }, acks)
	s.serve()
	push := libzmq.Start(t).Open("PUSH", libzmq.Options{Connect: []string{s.at(in)}})
	for _, m := range [][]string{
		{"alone"}, {"jobs", "k: v", "five", "more", "and more"}, {""},
		{"jobs", "no colon here", "x"}, {"jobs", "k: \xff\xfe", "x"}, {"\xff\xfe", "", "x"},
		{"jobs", "k: v", "good"},
	} {
		push.Send(m...)
	}
	eventually(t, "the good one is handled", func() bool { return runs.runs("jobs|good") == 1 })
	eventually(t, "all are settled", func() bool { c := s.counters("jobs"); return c.Received == 7 && c.InWork == 0 })
	if diff := cmp.Diff([]string{"alone|", "jobs|five", "jobs|good", "|"}, runs.keys()); diff != "" {
		t.Errorf("handled (-want +got):\n%s", diff)
	}
	if n, _ := runs.total(); n != 4 {
		t.Errorf("%d runs", n)
	}
	if n := len(s.log.of("L-DEC", "jobs")); n != 3 {
		t.Errorf("%d lines of L-DEC", n)
	}
	if c := s.counters("jobs"); c.Dropped != 3 || c.Lost != 0 {
		t.Errorf("counters %+v", c)
	}
	s.stops()
}

// Z-11: a peer with heartbeats is silent for longer than it waits for an answer to
// one. Neither side closes the connection, and no PING is taken for a message.
func TestZ11Heartbeats(t *testing.T) {
	t.Parallel()
	const (
		every   = time.Second
		patient = 9 * time.Second // a busy machine answers in that time
	)
	s := newService(t)
	in := s.zmq("in", bound(settings.PatternQueue, anyPort))
	runs := s.notes(in.Subscription("jobs"), acks)
	s.serve()
	push := libzmq.Start(t).Open("PUSH", libzmq.Options{
		Connect: []string{s.at(in)},
		Set:     map[string]int{"HEARTBEAT_IVL": int(every.Milliseconds()), "HEARTBEAT_TIMEOUT": int(patient.Milliseconds())},
	})
	push.Send("jobs", "", "m1")
	push.Sees("HANDSHAKE_SUCCEEDED")
	until(time.Now().Add(patient + 2*every))
	push.Send("jobs", "", "m2")
	eventually(t, "m2 has come", func() bool { return runs.runs("m2") == 1 })
	if events := push.Events(); len(events) > 0 {
		t.Errorf("the peer saw %v", events)
	}
	if n, _ := runs.total(); n != 2 || len(s.log.of("L-DEC", "")) > 0 {
		t.Errorf("%d runs", n)
	}
	s.stops()
}

// Z-12: publishes wait for a peer that never reads. A stop with a limit of 3 s
// ends soon after that, and they are told.
func TestZ12StopWhileASendIsBlocked(t *testing.T) {
	t.Parallel()
	const limit = 3 * time.Second
	s := newService(t, host.WithDrainLimit(limit))
	out := s.zmq("out", bound(settings.PatternQueue, anyPort))
	jobs := s.to(out, "jobs")
	s.serve()
	deaf := libzmq.Start(t)
	deaf.Open("PULL", libzmq.Options{Connect: []string{s.at(out)}, Deaf: true, Set: map[string]int{"RCVHWM": 1}}).Sees("HANDSHAKE_SUCCEEDED")
	if err := syscall.Kill(deaf.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	results := make(chan error)
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := make(chan struct{}, 1000)
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			began <- struct{}{}
			if _, err := jobs.Publish(ctx, mebibyte(i)); err != nil {
				results <- err
				return
			}
		}
	}()
	n, since := 0, time.Now()
	eventually(t, "a publish waits", func() bool {
		if len(began) != n {
			n, since = len(began), time.Now()
		}
		return n > 0 && time.Since(since) > time.Second
	})
	t.Logf("publish %d waits", n)
	asked := time.Now()
	s.stop()
	var err error
	select {
	case err = <-results:
	case <-time.After(patience):
		t.Fatal("the publish does not return")
	}
	<-done
	e, ok := errors.AsType[*host.PublishError](err)
	if !ok {
		t.Errorf("the publish returned %v", err)
	} else {
		t.Logf("the publish returned %v, sent perhaps: %v", err, e.MaybeSent)
	}
	stopped := s.ends()
	if took := s.end.Sub(asked); took > limit+late {
		t.Errorf("the stop took %v", took)
	}
	t.Logf("the stop took %v and came to %v", s.end.Sub(asked), stopped)
}

// Z-14: passwords, and encryption, are no settings that are silently ignored.
func TestZ14Credentials(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, field string
		set         map[string]any
	}{
		{"plain", "security", map[string]any{"security": "plain"}},
		{"curve", "security", map[string]any{"security": "curve"}},
		{"user and password", "username", map[string]any{"username": "u", "password": "p"}},
		{"in the address", "bind", map[string]any{"bind": "tcp://u:p@127.0.0.1:0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := map[string]any{"pattern": settings.PatternQueue, "bind": anyPort}
			for k, v := range tt.set {
				set[k] = v
			}
			s := newService(t)
			in := s.Endpoint("in", host.Plugin{Name: "zmq", Path: zmqPlugin(t)}, set)
			s.notes(in.Subscription("jobs"), acks)
			e := s.refused()
			if text := e.Error(); !strings.Contains(text, tt.field) || !strings.Contains(text, "in") {
				t.Errorf("%q does not name %s", text, tt.field)
			}
			t.Log(e)
			if n := len(s.log.having("", "listens")); n > 0 {
				t.Error("it has listened")
			}
		})
	}
}
