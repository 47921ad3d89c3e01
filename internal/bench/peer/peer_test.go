// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// build compiles the peer, which needs gcc and libzmq3-dev.
func build(t *testing.T) string {
	t.Helper()
	program, err := BuildLibZMQ(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// start starts a peer that ends with the test.
func start(t *testing.T, program string, args ...string) *Process {
	t.Helper()
	p, err := Start(context.WithoutCancel(t.Context()), program, args...) // Close ends it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// until asks a peer until its state is what is waited for.
func until(t *testing.T, p *Process, done func(State) bool) State {
	t.Helper()
	every := time.NewTicker(time.Millisecond)
	defer every.Stop()
	for range every.C {
		s, err := p.Ask()
		if err != nil {
			t.Fatal(err)
		}
		if done(s) {
			return s
		}
	}
	return State{}
}

func TestLibZMQ(t *testing.T) {
	program := build(t)
	for _, pair := range []struct{ bound, dials, sockets string }{
		{"pull", "push", "1"}, {"pub", "sub", "3"}, {"router", "dealer", "1"},
	} {
		t.Run(pair.bound, func(t *testing.T) {
			a := start(t, program, pair.bound, "bind", "tcp://127.0.0.1:0", "512", "3", "1")
			if !strings.HasPrefix(a.Address, "tcp://127.0.0.1:") || strings.HasSuffix(a.Address, ":0") {
				t.Fatalf("it says it is bound to %s", a.Address)
			}
			b := start(t, program, pair.dials, "connect", a.Address, "512", "3", pair.sockets)
			some := func(s State) bool { return s.Messages >= 100 && s.CPU > 0 }
			until(t, a, some)
			s := until(t, b, some)
			if asks := pair.dials == "dealer"; (s.P50 > 0) != asks || s.P99 < s.P50 {
				t.Errorf("round trips of %v and %v", s.P50, s.P99)
			}
		})
	}
}

// TestStalled: what reads nothing stops what waits for it.
func TestStalled(t *testing.T) {
	program := build(t)
	at := "ipc://" + filepath.Join(t.TempDir(), "s")
	p := start(t, program, "pub", "bind", at, "64", "0", "1")
	s := start(t, program, "stalled", "connect", at, "64", "0", "1")
	until(t, p, func(s State) bool { return s.Messages > 10_000 })
	if got, err := s.Ask(); err != nil || got.Messages != 0 {
		t.Errorf("it has read %d messages, %v", got.Messages, err)
	}
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	program := build(t)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"push"}, "usage: peer ROLE"},
		{[]string{"pull", "bind", "ipc:///no/such/folder/s", "1", "0", "1"}, "No such file or directory"},
	} {
		if _, err := Start(t.Context(), program, test.args...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got %v, want %q", test.args, err, test.want)
		}
	}
}

func TestBuildLibZMQNamesPackages(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := BuildLibZMQ(t.Context(), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "apt-get install gcc libzmq3-dev") {
		t.Errorf("got %v", err)
	}
}

func TestTrips(t *testing.T) {
	var trips Trips
	if p50, p99 := trips.Take(); p50 != 0 || p99 != 0 {
		t.Errorf("got %v and %v of none", p50, p99)
	}
	for i := range 200 {
		trips.Add(time.Duration(200 - i))
	}
	if p50, p99 := trips.Take(); p50 != 101 || p99 != 199 {
		t.Errorf("got %v and %v", p50, p99)
	}
	if p50, _ := trips.Take(); p50 != 0 {
		t.Errorf("got %v of what was taken", p50)
	}
}
