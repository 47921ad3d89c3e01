// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// A service moves what it reads of a file, with a group and without one: both
// ways, by a delivery's position and by number.
func TestServiceSeeks(t *testing.T) {
	for name, o := range map[string]settings.Subscription{
		"without a group": {Start: settings.Beginning()},
		"with a group":    {Group: "billing", Start: settings.Beginning()},
	} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			refill(t, path, 5)
			s := newService(t, settings.Settings{Path: path})
			orders := s.read("orders", o)
			positions := make(chan []byte, 100)
			s.Handle(orders, func(m *host.Message[[]byte]) error {
				if string(m.Value) == "4" {
					positions <- m.Clone().Position()
				}
				return nil
			})
			s.publishes("orders")
			s.Launch()
			s.Handled(5)
			for _, step := range []struct {
				to   host.Position
				want []string
			}{
				{host.AtPosition(<-positions), []string{"4", "5"}},
				{host.AtPosition([]byte("sequence 3")), []string{"3", "4", "5"}},
				{host.Earliest(), []string{"1", "2", "3", "4", "5"}},
				{host.PublishedAfter(time.Unix(1, 0)), []string{"1", "2", "3", "4", "5"}},
			} {
				if err := orders.Seek(t.Context(), step.to); err != nil {
					t.Fatalf("%v\n%s", err, s.Log)
				}
				got := s.Handled(len(step.want))
				for i, run := range got {
					if lastWord(run) != step.want[i] {
						t.Fatalf("behind %v: %v, want %v", step.to, got, step.want)
					}
				}
			}
			if err := orders.Seek(t.Context(), host.Latest()); err != nil {
				t.Fatalf("%v\n%s", err, s.Log)
			}
			s.put("orders", "new")
			if got := s.Handled(1); lastWord(got[0]) != "new" {
				t.Errorf("behind the latest: %v", got)
			}
			s.Stop()
		})
	}
}

// lastWord is the payload of a run.
func lastWord(run string) string {
	var name, attempt, payload string
	_, _ = fmt.Sscan(run, &name, &attempt, &payload)
	return payload
}

// A seek beyond the end is refused; a position of another kind of source too, and
// the subscription reads on.
func TestServiceSeeksInVain(t *testing.T) {
	path := newPath(t)
	refill(t, path, 2)
	s := newService(t, settings.Settings{Path: path})
	orders := s.read("orders", settings.Subscription{Start: settings.Beginning()})
	s.publishes("orders")
	s.Handle(orders, servicetest.Always(nil))
	s.Launch()
	s.Handled(2)
	var f *core.Fault
	if err := orders.Seek(t.Context(), host.AtPosition([]byte("9:0:-1"))); !errors.As(err, &f) || f.Code != core.FaultInvalid {
		t.Errorf("a position of another source: %v", err)
	}
	s.put("orders", "3")
	if got := s.Handled(1); lastWord(got[0]) != "3" {
		t.Errorf("after a refusal: %v", got)
	}
	if err := orders.Seek(t.Context(), host.AtPosition([]byte("sequence 99"))); !errors.As(err, &f) {
		t.Errorf("beyond the end: %v", err)
	}
	var e *host.EndpointError
	if err := s.Wait(); !errors.As(err, &e) || e.Subscription != "orders" { // S-FIL-19
		t.Errorf("the host ended with %v", err)
	}
}
