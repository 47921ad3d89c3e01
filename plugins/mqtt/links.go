// SPDX-License-Identifier: Apache-2.0

package mqtt

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/longshore-go/longshore/pluginapi"
)

// links passes on whether all connections are up, under no lock and one state
// after the other.
type links struct {
	mu      sync.Mutex
	each    map[string]pluginapi.LinkState // by connection
	last    pluginapi.LinkState            // that was passed on
	known   bool                           // there is one
	to      func(pluginapi.LinkState)
	telling bool
}

// add makes a connection one of those that count, which is not up yet, and returns
// what takes its states.
func (l *links) add(name string) func(up bool, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.each == nil {
		l.each = make(map[string]pluginapi.LinkState)
	}
	l.each[name] = pluginapi.LinkState{Reason: "not connected yet"}
	return func(up bool, reason string) {
		l.mu.Lock()
		if _, there := l.each[name]; there {
			l.each[name] = pluginapi.LinkState{Up: up, Reason: line(reason)}
		}
		l.mu.Unlock()
		l.tell()
	}
}

// remove takes a connection out.
func (l *links) remove(name string) {
	l.mu.Lock()
	delete(l.each, name)
	l.mu.Unlock()
	l.tell()
}

// report has states told from now on, the present one at once.
func (l *links) report(to func(pluginapi.LinkState)) {
	l.mu.Lock()
	l.to, l.known = to, false
	l.mu.Unlock()
	l.tell()
}

// state is the state of all connections together; l.mu is held.
func (l *links) state() pluginapi.LinkState {
	names := make([]string, 0, len(l.each))
	for name := range l.each {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if s := l.each[name]; !s.Up {
			if name != "" {
				s.Reason = "connection " + shown(name) + ": " + s.Reason
			}
			return s
		}
	}
	return pluginapi.LinkState{Up: true}
}

// tell reports until the latest state is known. One goroutine does so at a time.
func (l *links) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.telling || l.to == nil {
		return
	}
	l.telling = true
	for now := l.state(); !l.known || now != l.last; now = l.state() {
		l.last, l.known = now, true
		to := l.to
		l.mu.Unlock()
		to(now)
		l.mu.Lock()
	}
	l.telling = false
}

// line is a reason on one line.
func line(reason string) string {
	return cmp.Or(strings.Join(strings.Fields(reason), " "), "the connection is lost")
}
