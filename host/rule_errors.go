// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
)

// ErrorMatch says which errors a rule [OnError] is about. Make one with [Is],
// [As] or [When]; the zero value matches nothing and is refused.
type ErrorMatch struct {
	words   string // for people
	match   func(error) bool
	targets []error      // of Is
	as      reflect.Type // of As
	wrong   *complaint
}

// Is matches what errors.Is finds to be one of errs.
func Is(errs ...error) ErrorMatch {
	m := ErrorMatch{targets: slices.Clone(errs)}
	words := make([]string, 0, len(errs))
	for i, e := range errs {
		if e == nil {
			m.wrong = &complaint{fmt.Sprintf("number %d of Is is nil", i+1), "name the errors, such as sql.ErrNoRows"}
			return m
		}
		words = append(words, sound(e).Error())
	}
	if len(errs) == 0 {
		m.wrong = &complaint{"Is names no error", "name one, such as sql.ErrNoRows"}
	}
	m.words = "Is(" + strings.Join(words, ", ") + ")"
	m.match = func(err error) bool {
		return slices.ContainsFunc(m.targets, func(e error) bool { return errors.Is(err, e) })
	}
	return m
}

// As matches what errors.As finds to be an E.
func As[E error]() ErrorMatch {
	t := reflect.TypeFor[E]()
	m := ErrorMatch{as: t, words: "As(" + t.String() + ")"}
	m.match = func(err error) bool {
		var e E
		return errors.As(err, &e)
	}
	if t == reflect.TypeFor[error]() {
		m.wrong = &complaint{"As[error] matches every error", "name a type of your own, or use When to match all"}
	}
	return m
}

// When matches the errors for which f returns true. f runs on the subscription's
// workers, at the same time where it has several; a panic of f is one of the
// handler.
func When(f func(error) bool) ErrorMatch {
	m := ErrorMatch{words: "When(" + string(caller()) + ")", match: f}
	if f == nil {
		m.wrong = &complaint{"When has no function", "give one"}
	}
	return m
}

// errorClass is one OnError.
type errorClass struct {
	ErrorMatch
	reaction Reaction
	place    place
}

// OnError says what an error of the handler counts as. It may be given several
// times; the first whose match fits decides, those of the registration before
// those of [Endpoint.Defaults] and these before those of [WithDefaults]. An error
// that none fits is a retry. What the handler says itself by [Retry],
// [RetryAfter], [Snooze], [Drop], [DeadLetter] or [Leave] stands above it, and a
// panic is told by [OnPanic]. The error is logged (L-ERR) in any case. The same
// error of Is, or type of As, given twice is refused with both places.
//
// With [AsAck] the message is skipped: what waits for the handler to succeed, as
// a reply or [Forward], is not published.
func OnError(m ErrorMatch, r Reaction) Rule {
	at := caller()
	return Rule{"OnError", at, func(s *ruleSet) *complaint {
		switch {
		case m.wrong != nil:
			return m.wrong
		case m.match == nil:
			return &complaint{"matches nothing", "give Is, As or When"}
		}
		s.errors = append(s.errors, errorClass{m, r, at})
		return unknownReaction(r)
	}}
}

// sameErrors complains of classes that were given together and name the same.
func sameErrors(classes []errorClass) []Finding {
	var found []Finding
	for i := range classes {
		for j := range classes[:i] {
			if same := classes[j].same(&classes[i]); same != "" {
				found = append(found, Finding{
					Option: "OnError", Message: same + " is given twice", Fix: "keep one of them",
					Places: places(classes[j].place, classes[i].place),
				})
			}
		}
	}
	return found
}

// same returns what both classes name, "" where nothing.
func (c *errorClass) same(other *errorClass) string {
	if c.as != nil && c.as == other.as {
		return c.words
	}
	for _, e := range c.targets {
		if !reflect.TypeOf(e).Comparable() {
			continue
		}
		if slices.ContainsFunc(other.targets, func(o error) bool { return reflect.TypeOf(o).Comparable() && o == e }) { //nolint:errorlint // the same value, whatever wraps it
			return "Is(" + sound(e).Error() + ")"
		}
	}
	return ""
}

// classified returns what an error counts as by the rules, false where none is
// about it.
func (s *ruleSet) classified(err error) (said settlement.Said, ok bool, panicked *PanicError) {
	defer func() {
		if v := recover(); v != nil {
			panicked = thrown(v)
		}
	}()
	for i := range s.errors {
		if c := &s.errors[i]; c.match(err) {
			said = c.reaction.said(core.CauseError, err)
			return said, true, nil
		}
	}
	return said, false, nil
}

// errorClasses are the rules for errors as Explain tells them.
func (s *ruleSet) errorClasses() []core.ErrorClass {
	out := make([]core.ErrorClass, 0, len(s.errors))
	for i := range s.errors {
		out = append(out, core.ErrorClass{Match: s.errors[i].words, Reaction: s.errors[i].reaction.declared()})
	}
	return out
}
