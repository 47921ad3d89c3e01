// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"time"
)

// lossPause is the least time between two log lines about drops of an endpoint:
// one that is written to at full speed drops as fast.
const lossPause = time.Second

// losses counts what subscribers miss. It is guarded by the owner's lock; its
// lines are logged outside of it.
type losses struct {
	dropped uint64
	lost    uint64
	told    time.Time
	line    lossLine

	goneTold time.Time
	gone     int    // subscribers that are gone and have missed something, since goneTold
	missed   uint64 // what they have missed that no line has told of
}

// lossLine is a log line about what a subscriber misses; its zero value is none.
type lossLine struct {
	text string
	args []any
}

// log logs the line, if it is one.
func (l lossLine) log(c Config) {
	if l.text != "" {
		c.Log.With("address", c.Address()).Warn(l.text, l.args...)
	}
}

// Why subscribers miss messages, in log lines.
const (
	lossRoom   = "subscriber does not read as fast as messages come; they are dropped for it"
	lossMemory = "what waits for all subscribers together is at its limit; messages are dropped for the one that is the furthest behind"
)

// drop counts messages that a subscriber misses.
func (l *losses) drop(s *subscriber, n int, why string) {
	l.dropped += uint64(n)
	s.dropped += uint64(n)
	s.untold += uint64(n)
	now := time.Now()
	if now.Sub(l.told) < lossPause {
		return
	}
	l.told = now
	l.line = lossLine{
		text: why,
		args: []any{"peer", s.peer.Remote, "dropped", s.untold, "total", s.dropped},
	}
	s.untold = 0
}

// take returns the line that is due.
func (l *losses) take() lossLine {
	line := l.line
	l.line = lossLine{}
	return line
}

// leave counts what was in the queue of a peer that is gone. Many may leave at
// once, so a line stands for all since the one before.
func (l *losses) leave(s *subscriber, lost int, cause error) lossLine {
	l.lost += uint64(lost)
	if s.untold == 0 && lost == 0 {
		return lossLine{}
	}
	l.gone++
	l.missed += s.untold + uint64(lost)
	now := time.Now()
	if now.Sub(l.goneTold) < lossPause {
		return lossLine{}
	}
	line := lossLine{
		text: "subscriber is gone and has missed messages",
		args: []any{
			"peer", s.peer.Remote, "dropped", s.untold, "unwritten", lost, "total", s.dropped + uint64(lost),
			"cause", cause, "times", l.gone, "missed", l.missed,
		},
	}
	l.gone, l.missed, l.goneTold = 0, 0, now
	return line
}
