// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
)

const (
	// summaryEvery is how often a line that is written once is summed up.
	summaryEvery = time.Minute
	// limitEvery is how often a limited line is written at most, after its first
	// ones.
	limitEvery = time.Second
	// reportsAtOnce is how many L-STREAM lines a second are written one by one: they
	// name what was not read, so that a few can all be looked up.
	reportsAtOnce = 64
)

// warn writes a line with a code.
func (l *Lane) warn(code core.LogCode, text string, attrs ...any) {
	l.write(slog.LevelWarn, code, text, attrs...)
}

func (l *Lane) write(level slog.Level, code core.LogCode, text string, attrs ...any) {
	l.log.With("code", code.String()).Log(context.Background(), level, text, attrs...)
}

// line writes the line in hand.
func (s *settlement) line() {
	l := s.l
	switch {
	case s.step.Code == core.LogUnsettled && s.step.Level == core.LevelWarnOnce:
		l.once[s.c.Outcome.Kind].hit()
		return
	case s.step.Code == core.LogUnsettled:
		l.uns.hit("outcome cannot be carried out by this source",
			"attempt", s.d.Number, "outcome", s.outcome(), "error", faultText(s.fault))
		return
	case s.step.Code == core.LogPanic && s.hush:
		return
	case s.step.Code == core.LogLost:
		s.did |= didLose
	default:
	}
	text, attrs := s.words()
	level := slog.LevelWarn
	switch s.step.Level {
	case core.LevelInfo:
		level = slog.LevelInfo
	case core.LevelError:
		level = slog.LevelError
	default:
	}
	l.write(level, s.step.Code, text, attrs...)
}

// words are the text and the attributes of the line in hand.
func (s *settlement) words() (string, []any) {
	attempt := s.which()
	switch s.step.Code {
	case core.LogError:
		return "handler returned an error", append(attempt, "outcome", s.outcome(), "error", s.said.Err)
	case core.LogPanic:
		return "handler panicked", append(attempt, "panic", s.thrown(), "stack", s.said.Stack)
	case core.LogDecode:
		return "message cannot be decoded", append(attempt, "outcome", s.outcome(), "error", s.said.Err)
	case core.LogFailFast:
		return "failing fast, the service stops", append(attempt, "error", s.said.Err)
	case core.LogReply:
		return "reply could not be published", append(attempt, s.reply()...)
	case core.LogCapDead:
		return s.usedUp() + ", going to the dead letter", append(attempt, "dead_letter", s.c.Dead.To.String())
	case core.LogCapReject:
		return s.usedUp() + ", no dead letter is declared", attempt
	case core.LogDelay:
		return "delay cannot be honoured", append(attempt, "delay", s.c.Outcome.After, "then", s.then())
	case core.LogNack:
		return "requeue failed", append(attempt, "error", faultText(s.fault))
	case core.LogCopy:
		return "copy could not be published", append(attempt,
			"destination", s.destination(), "error", faultText(s.fault), "then", s.then())
	case core.LogLost:
		return "copy could not be published, the message is lost", append(attempt,
			"destination", s.destination(), "error", faultText(s.fault))
	case core.LogDouble:
		return "copy is out and the original was not acked, possible double", append(attempt,
			"destination", s.destination(), "error", faultText(s.fault))
	case core.LogRefused:
		return "no destination can take the message, dropped", append(attempt,
			"destination", s.destination(), "reason", s.refusal())
	default:
		return s.step.Code.String(), attempt
	}
}

// which says which delivery a line is about: by its name too where that is not the
// subscription's own, as with a filter, and as long as the message is in hand.
func (s *settlement) which() []any {
	of := make([]any, 0, 12) // with what most lines add
	if name := s.d.Message.Name; name != "" && name != s.l.o.Subscription {
		of = append(of, "name", strings.Clone(cut(name, shownText)))
	}
	return append(of, "generation", s.generation, "delivery", s.id, "attempt", s.d.Number)
}

// forgone says that a delivery whose copy was tried for the life of the process does
// not come back either.
func (s *settlement) forgone() {
	s.did |= didLose
	s.l.write(slog.LevelError, core.LogLost, "copy could not be published, the message is lost",
		append(s.which(), "destination", s.destination(), "error", faultText(s.fault))...)
}

// outcome is the outcome as lines tell it.
func (s *settlement) outcome() string {
	if s.said.Spent && s.c.Outcome.Kind == core.OutcomeRetry {
		return "never-retry"
	}
	return s.c.Outcome.Kind.String()
}

// reply says which reply was not published, and why.
func (s *settlement) reply() []any {
	attrs := []any{"error", s.said.Err}
	if e := new(PublishError); errors.As(s.said.Err, &e) {
		attrs = []any{"reply", e.To.String(), "reply_type", e.Type, "error", s.said.Err}
	}
	return attrs
}

// usedUp says why there is no further attempt.
func (s *settlement) usedUp() string {
	switch {
	case s.said.Spent:
		return "never retried"
	case s.c.Spent:
		return "time for attempts used up"
	default:
		return "attempts used up"
	}
}

// thrown is what a handler has thrown.
func (s *settlement) thrown() any {
	if s.said.Thrown != "" {
		return s.said.Thrown
	}
	return s.said.Err
}

// wrongLength says that a batch's handler gave another number of outcomes than it
// has deliveries.
func (l *Lane) wrongLength(expected, returned int) {
	l.write(slog.LevelError, core.LogLength,
		"batch handler returned a list of another length, what is missing is a retry, what is too much counts for nothing",
		"expected", expected, "returned", returned)
}

// double says that a kept delivery was not acked after its copy went out.
func (s *settlement) double() {
	s.l.warn(core.LogDouble, "copy is out and the original was not acked, possible double",
		"attempt", s.d.Number, "destination", s.target().To.String(), "error", faultText(s.fault))
}

// unheard says that nobody reads the destination of a copy, whose message is lost
// there.
func (s *settlement) unheard() {
	s.did |= didUnrouted
	what := "copy"
	if s.step.To == core.TargetDead {
		what = "dead letter"
	}
	s.l.unheard.hit(what+" was published and nobody reads its destination, it is lost there",
		"attempt", s.d.Number, "destination", s.target().To.String())
}

// destination is where the plan's copy goes.
func (s *settlement) destination() string {
	for i := range s.plan.N {
		switch s.plan.Steps[i].To {
		case core.TargetRetry:
			return s.c.Retry.To.String()
		case core.TargetDead:
			return s.c.Dead.To.String()
		default:
		}
	}
	if s.c.Outcome.Kind == core.OutcomeDeadLetter {
		return s.c.Dead.To.String()
	}
	return s.c.Retry.To.String()
}

// refusal is why there is no destination.
func (s *settlement) refusal() string {
	if s.reason != nil {
		return oneLine(s.reason.Error(), shownFault)
	}
	return "none is declared"
}

// then says what follows the line in hand.
func (s *settlement) then() string {
	c := s.cur
	step, ok := c.Next(core.ResultDone)
	if !ok {
		return "nothing"
	}
	return step.Do.String()
}

// onceLine is a line that is written for the first of its kind, then counted
// and summed up.
type onceLine struct {
	l    *Lane
	kind core.OutcomeKind

	mu    sync.Mutex
	total uint64
	since uint64 // the last line
	armed bool
	alarm alarm
}

func (o *onceLine) init(l *Lane, kind core.OutcomeKind) {
	o.l, o.kind = l, kind
	o.alarm.ring = func() { o.flush(true) }
}

// hit counts one.
func (o *onceLine) hit() {
	o.mu.Lock()
	o.total++
	first := o.total == 1
	if !first {
		o.since++
		if !o.armed {
			o.armed = true
			o.l.o.Waiting.clock.set(&o.alarm, time.Now().Add(summaryEvery))
		}
	}
	o.mu.Unlock()
	if first {
		o.l.warn(core.LogUnsettled, "outcome cannot be carried out by this source, said once and then counted",
			"outcome", o.kind.String())
	}
}

// flush writes the summary of what was counted since the last line.
func (o *onceLine) flush(rung bool) {
	o.mu.Lock()
	if !rung && o.armed {
		o.l.o.Waiting.clock.unset(&o.alarm)
	}
	total, since := o.total, o.since
	o.since, o.armed = 0, false
	o.mu.Unlock()
	if since > 0 {
		o.l.warn(core.LogUnsettled, "outcome cannot be carried out by this source, summary",
			"outcome", o.kind.String(), "since", since, "total", total)
	}
}

// limitedLine is a line about what is always said: so many a second, then one a
// second with the number since the last one.
type limitedLine struct {
	l     *Lane
	code  core.LogCode
	burst int

	mu    sync.Mutex
	from  time.Time // the second
	said  int       // in it
	since uint64
	armed bool
	alarm alarm
	level slog.Level // of the line to come: no error is hidden behind warnings
	text  string
	attrs []any
}

func (o *limitedLine) init(l *Lane, code core.LogCode, burst int) {
	o.l, o.code, o.burst = l, code, burst
	o.alarm.ring = func() { o.flush(true) }
}

// hit writes the line, or has it written at the end of the second.
func (o *limitedLine) hit(text string, attrs ...any) { o.hitAt(slog.LevelWarn, text, attrs...) }

// hitAt is hit at a level.
func (o *limitedLine) hitAt(level slog.Level, text string, attrs ...any) {
	now := time.Now()
	o.mu.Lock()
	wait := o.from.Add(limitEvery).Sub(now)
	if wait <= 0 {
		o.from, o.said = now, 0
	}
	if !o.armed && o.said < o.burst {
		o.said++
		o.mu.Unlock()
		o.l.write(level, o.code, text, attrs...)
		return
	}
	o.since++
	if o.since == 1 || level >= o.level {
		o.level, o.text, o.attrs = level, text, attrs
	}
	if !o.armed {
		o.armed = true
		o.l.o.Waiting.clock.set(&o.alarm, now.Add(wait))
	}
	o.mu.Unlock()
}

// flush writes the line that stands for what was counted since the last one.
func (o *limitedLine) flush(rung bool) {
	o.mu.Lock()
	if !rung && o.armed {
		o.l.o.Waiting.clock.unset(&o.alarm)
	}
	level, text, attrs, since := o.level, o.text, o.attrs, o.since
	o.since, o.armed, o.attrs = 0, false, nil
	if since > 0 {
		o.from, o.said = time.Now(), o.burst
	}
	o.mu.Unlock()
	if since > 0 {
		o.l.write(level, o.code, text, append(attrs, "since", since)...)
	}
}

// flushLines writes what is counted and not said yet.
func (l *Lane) flushLines() {
	for i := range l.once {
		l.once[i].flush(false)
	}
	l.uns.flush(false)
	l.unsure.flush(false)
	l.unheard.flush(false)
	l.reports.flush(false)
}

// abandoned says how many copies of a subscription were cut off, and counts
// them.
func abandoned(log *slog.Logger, count int) {
	log.Warn(fmt.Sprintf("%d copies cut off by the stop", count), "code", core.LogAbandoned.String(), "count", count)
}
