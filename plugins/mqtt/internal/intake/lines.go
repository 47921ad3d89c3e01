// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"log/slog"
	"time"

	"github.com/longshore-go/longshore/core"
)

// linePause is the least time between two log lines of one kind: messages may be
// lost as fast as they come.
const linePause = time.Second

// The kinds of log lines.
const (
	lineDropped = iota
	lineLeft
	lineStray
	lineExpired
	lineKinds
)

// lines counts what is told in log lines, each kind at most once a second. It is
// guarded by the intake's lock.
type lines struct {
	kinds   [lineKinds]line
	overrun bool // it is to be told, once a link
	some    bool // a line is due
}

type line struct {
	text  string
	code  core.LogCode
	since uint64 // the line before
	total uint64
	told  time.Time
	due   bool
	topic string
}

func (l *lines) init() {
	l.kinds = [lineKinds]line{
		lineDropped: {text: "messages come faster than they are handled; those that no server keeps are dropped (qos0_queue, qos0_queue_bytes)"},
		lineLeft: {
			code: core.LogHeld,
			text: "messages match no subscription of this endpoint and are dropped; an earlier process has left its filter in the session: " +
				"start once with clean_start, or unsubscribe it",
		},
		lineStray: {
			text: "messages come for a filter that an earlier process has left in the session, and are handed to the subscriptions that match: " +
				"they may come twice; start once with clean_start, or unsubscribe it",
		},
		lineExpired: {text: "messages expired while they waited here, and are not delivered"},
	}
}

// hit counts one message.
func (l *lines) hit(kind int, topic []byte, now time.Time) {
	k := &l.kinds[kind]
	k.since++
	k.total++
	if k.due || now.Sub(k.told) < linePause {
		return
	}
	k.told, k.due, k.topic = now, true, string(topic[:min(len(topic), shownTopic)])
	l.some = true
}

// shownTopic is how much of a topic stands in a line.
const shownTopic = 200

// dueLines are lines that are logged once the lock is let go.
type dueLines struct {
	kinds   [lineKinds]line
	overrun int // messages without an answer; 0 = not to be told
	some    bool
}

// due takes the lines that are due.
func (l *lines) due(unanswered int) (d dueLines) {
	if !l.some {
		return d
	}
	l.some, d.some = false, true
	if l.overrun {
		l.overrun, d.overrun = false, unanswered
	}
	for i := range l.kinds {
		if k := &l.kinds[i]; k.due {
			d.kinds[i] = *k
			k.due, k.since = false, 0
		}
	}
	return d
}

func (d *dueLines) log(in *Intake) {
	if !d.some {
		return
	}
	if d.overrun > 0 {
		in.logger(core.LogNone).Warn("the server sends more messages of QoS 1 and 2 than it may, which are taken all the same; "+
			"Mosquitto up to 2.0.11 is known for it where messages are queued", "unanswered", d.overrun, "receive_maximum", in.c.ReceiveMaximum)
	}
	for i := range d.kinds {
		if k := &d.kinds[i]; k.due {
			in.logger(k.code).Warn(k.text, "topic", k.topic, "count", k.since, "total", k.total)
		}
	}
}

func (in *Intake) logger(code core.LogCode) *slog.Logger {
	log := in.c.Log
	if code != core.LogNone {
		log = log.With("code", code.String())
	}
	return log
}

// clock is the time of one piece of work, looked at where it is needed.
type clock struct{ at time.Time }

func (c *clock) now() time.Time {
	if c.at.IsZero() {
		c.at = time.Now()
	}
	return c.at
}
