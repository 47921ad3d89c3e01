// SPDX-License-Identifier: Apache-2.0

package settlement

import "time"

// pace is what LaneOptions.Pace has said. All of it is guarded by the lane's
// lock, under which it is not called.
type pace struct {
	permits int  // deliveries that it has allowed and that are not begun
	waits   bool // it is not worth to ask it until the alarm rings
	alarm   alarm
}

// asks reports whether it has asked Pace, which it does where the next delivery
// needs it. l.mu is held, but for the call.
func (l *Lane) asks(b *batch) bool {
	if l.o.Pace == nil || l.pace.permits > 0 || l.shut() || !l.ready() && !b.drains() {
		return false
	}
	l.mu.Unlock()
	now := time.Now()
	wait := l.o.Pace(now)
	l.mu.Lock()
	switch {
	case wait <= 0:
		l.pace.permits++
	case !l.closed:
		l.pace.waits = true
		l.pace.alarm.ring = l.paced
		l.o.Waiting.clock.set(&l.pace.alarm, now.Add(wait))
	}
	return true
}

// paced is the clock's: it is worth to ask Pace again.
func (l *Lane) paced() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pace.waits = false
	l.rouse()
}
