// SPDX-License-Identifier: Apache-2.0

package client

import (
	"sync"
	"testing"
)

// States are told one after the other, the present one at once, each change to whoever
// asked last, and nothing behind the end.
func TestState(t *testing.T) {
	s := newState()
	var told []change
	s.watch(func(up bool, reason string) { told = append(told, change{up, reason}) })
	now, reason, changed := s.now()
	if now || reason == "" || len(told) != 1 || told[0] != (change{reason: reason}) {
		t.Fatalf("it begins with %t, %q, told %v", now, reason, told)
	}
	s.set(true, "")
	s.set(true, "")
	select {
	case <-changed:
	default:
		t.Error("the change shows in no channel")
	}
	_, _, changed = s.now()
	s.set(false, "a")
	s.set(false, "b") // another reason, the same state
	<-changed
	_, _, changed = s.now()
	s.freeze()
	s.set(true, "")
	select {
	case <-changed:
		t.Error("it changes behind the end")
	default:
	}
	want := []change{{false, reason}, {true, ""}, {false, "a"}, {false, "b"}}
	if len(told) != len(want) {
		t.Fatalf("told %v; want %v", told, want)
	}
	for i := range want {
		if told[i] != want[i] {
			t.Errorf("told %v; want %v", told, want)
		}
	}
}

// Told from many goroutines the last state is the true one, and no two are told at a
// time.
func TestStateConcurrently(t *testing.T) {
	s := newState()
	var last change
	telling := false
	s.watch(func(up bool, reason string) {
		if telling {
			t.Error("two are told at a time")
		}
		telling = true
		last = change{up, reason}
		telling = false
	})
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for i := range 1000 {
				s.set(i%2 == 0, "x")
			}
		})
	}
	running.Wait()
	if up, reason, _ := s.now(); last != (change{up, reason}) {
		t.Errorf("the last that was told is %v; it is %t, %q", last, up, reason)
	}
}
