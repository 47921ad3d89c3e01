// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/interop/libzmq"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// Z-01: a queue shares its messages out, each to one of three services that
// dial it.
func TestZ01QueueSharesOut(t *testing.T) {
	t.Parallel()
	const readers, least = 3, 600
	want := numbered(3000)
	p := newService(t)
	out := p.zmq("out", bound(settings.PatternQueue, anyPort))
	jobs := p.to(out, "jobs")
	p.serve()
	var runs []*tally
	for range readers {
		s := newService(t)
		runs = append(runs, s.notes(s.zmq("in", dialing(settings.PatternQueue, p.at(out))).Subscription("jobs"), acks, s.elsewhere()))
		s.serve()
	}
	warm := 0
	eventually(t, "all readers are attached", func() bool {
		p.sends(t.Context(), jobs, fmt.Sprintf("warm%d", warm))
		warm++
		for _, r := range runs {
			if n, _ := r.total(); n == 0 {
				return false
			}
		}
		return true
	})
	p.sends(t.Context(), jobs, want...)
	eventually(t, "all of them have run", func() bool {
		n := 0
		for _, r := range runs {
			one, _ := r.total()
			n += one
		}
		return n >= len(want)+warm
	})
	for _, m := range want {
		n := 0
		for _, r := range runs {
			n += r.runs(m)
		}
		if n != 1 {
			t.Errorf("%s ran %d times", m, n)
		}
	}
	for i, r := range runs {
		if n, _ := r.total(); n < least {
			t.Errorf("reader %d has %d", i, n)
		}
	}
}

// Z-02: a publish that finds nobody is an error after 5 s that names where it
// was to go. When a reader comes, the same publisher reaches it.
func TestZ02QueueWithoutPeer(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	s := newService(t)
	out := s.zmq("out", dialing(settings.PatternQueue, address))
	jobs := s.to(out, "jobs")
	s.serves()
	began := time.Now()
	_, err := jobs.Publish(t.Context(), []byte("x"))
	took := time.Since(began)
	e, ok := errors.AsType[*host.PublishError](err)
	if !ok || e.MaybeSent || !strings.Contains(err.Error(), "jobs") || !strings.Contains(err.Error(), address) {
		t.Errorf("got %v", err)
	}
	if took < 4500*time.Millisecond || took > 5*time.Second+late {
		t.Errorf("it took %v", took)
	}
	pull := libzmq.Start(t).Open("PULL", libzmq.Options{Bind: []string{address}})
	s.sends(t.Context(), jobs, "y")
	if diff := cmp.Diff([][]string{{"jobs", "", "y"}}, frames(pull.Receive(1))); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	s.stops()
}
