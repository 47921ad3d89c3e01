// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strconv"
	"time"
)

// What an exit status can mean beside success.
const (
	ExitRetry      = "retry"
	ExitDrop       = "drop"
	ExitDeadLetter = "dead_letter"
	ExitGiveUp     = "give_up"
	ExitSnooze     = "snooze"
	ExitFailFast   = "fail_fast"
)

// eachDefaults calls f with the defaults that hold for s and their path, the
// nearest first.
func (f *File) eachDefaults(s *Subscription, each func(path string, d *Defaults)) {
	if s.NoDefaults {
		return
	}
	if e := f.Endpoints[s.From]; e != nil && e.Defaults != nil {
		each("endpoints."+s.From+".defaults", e.Defaults)
	}
	if f.Defaults != nil {
		each("defaults", f.Defaults)
	}
}

// TimeoutOf returns how long the command of s may run.
func (f *File) TimeoutOf(s *Subscription) time.Duration {
	t := s.Exec.Timeout
	f.eachDefaults(s, func(_ string, d *Defaults) {
		if t == 0 && d.Exec != nil {
			t = d.Exec.Timeout
		}
	})
	if t == 0 {
		return DefaultExecTimeout
	}
	return time.Duration(t)
}

// OnExitOf returns what the exit statuses of the command of s mean that the
// form speaks of.
func (f *File) OnExitOf(s *Subscription) map[int]string {
	out := map[int]string{}
	add := func(exits map[string]string) {
		for status, means := range exits {
			n, _ := strconv.Atoi(status) // the form takes numbers alone
			if _, nearer := out[n]; !nearer {
				out[n] = means
			}
		}
	}
	add(s.Exec.OnExit)
	f.eachDefaults(s, func(_ string, d *Defaults) {
		if d.Exec != nil {
			add(d.Exec.OnExit)
		}
	})
	return out
}

// SnoozeOf returns how messages of s are put off, nil where nothing says it.
func (f *File) SnoozeOf(s *Subscription) *Snooze {
	snooze := s.Snooze
	f.eachDefaults(s, func(_ string, d *Defaults) {
		if snooze == nil {
			snooze = d.Snooze
		}
	})
	return snooze
}

// WindowOf returns the bounds of what is unsettled of s; a zero number is not
// given.
func (f *File) WindowOf(s *Subscription) Window {
	window := s.Window
	f.eachDefaults(s, func(_ string, d *Defaults) {
		if window == nil {
			window = d.Window
		}
	})
	if window == nil {
		return Window{}
	}
	return *window
}

// KindOrDefault returns the kind of b.
func (b *Backoff) KindOrDefault() string {
	switch {
	case b.Kind != "":
		return b.Kind
	case b.Delays != nil:
		return BackoffDelays
	}
	return BackoffExponential
}
