// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"slices"
	"time"
)

// Declared is what a registration and its host declare beside the policy.
type Declared struct {
	Cap            bool          // MaxAttempts is given, even as 0
	RetryTo        bool          // RetryTo or RetryToFunc is given
	DeadLetter     bool          // DeadLetterTo is given
	LongestBackoff time.Duration // longest delay of a declared Backoff
	MaxElapsed     time.Duration // budget of time since the first failure; 0 = none
	Floor          time.Duration // largest wait before a plain requeue; 0 = Floor(0)
	Forward        Route         // where every message goes before its ack; state none = it is not forwarded
	Reply          Route         // where replies go before the ack; state none = there are none
	Publishes      []Route       // where publishes go that are held back until the handler has returned
	Panic          Reaction      // what a panic counts as; zero = a retry
	Undecodable    Reaction      // what an undecodable message counts as; zero = a drop
	Errors         []ErrorClass  // errors of the handler that count as something else than a retry
	Snooze         Snooze
	Journal        bool
	Workers        int // 0 = 1
	ByKey          bool
	Batch          int // most deliveries that are handled at once; 0 = 1
}

// Reaction is what a failure counts as that says no outcome of its own. The
// zero value stands for the default.
type Reaction struct {
	Outcome Outcome // its cause is not read
	Spent   bool    // it is a retry for which no attempt is left, see Case.Spent
}

// ErrorClass is a class of errors and what they count as.
type ErrorClass struct {
	Match string // in words
	Reaction
}

// Snooze bounds how often and how long a handler may put one delivery off. The
// zero value says nothing of it.
type Snooze struct {
	Times int
	Total time.Duration
}

// Finding is a refusal or a warning at start. The caller adds which
// subscription it is about.
type Finding struct {
	Warning bool   `json:"warning"` // does not refuse
	Option  string `json:"option"`  // the rule that is wrong, such as "RetryTo"
	Message string `json:"message"`
	Fix     string `json:"fix"`
}

// String returns the finding as one line.
func (f Finding) String() string {
	s := f.Message
	if f.Option != "" {
		s = f.Option + ": " + s
	}
	if f.Fix != "" {
		s += "; " + f.Fix
	}
	return s
}

// Check returns what is wrong with a registration on a source with the given
// profiles: refusals first, then warnings, each once. A destination that
// nothing can carry comes in as a route in state refused; a RetryToFunc as an
// open one, or as none with Declared.RetryTo set. Whether a dead letter comes
// back to its own subscription is not seen here.
func Check(p Policy, profiles []Capabilities, retry, dead Route, d Declared) []Finding {
	k := checker{p: p, retry: retry, dead: dead, d: d}
	k.rules()
	k.destinations()
	for i := range profiles {
		s := &profiles[i]
		if err := s.Valid(); err != nil {
			k.refuse("", "the source's capabilities contradict themselves: "+err.Error(), "report it to the transport's author")
			continue
		}
		k.copies(s)
		k.backoff(s)
		k.elapsed(s)
		k.retries(s)
	}
	slices.SortStableFunc(k.found, func(a, b Finding) int {
		switch {
		case a.Warning == b.Warning:
			return 0
		case b.Warning:
			return -1
		default:
			return 1
		}
	})
	return k.found
}

// checker collects findings.
type checker struct {
	p           Policy
	retry, dead Route
	d           Declared
	found       []Finding
}

func (k *checker) add(f Finding) {
	if !slices.Contains(k.found, f) {
		k.found = append(k.found, f)
	}
}

func (k *checker) refuse(option, message, fix string) {
	k.add(Finding{Option: option, Message: message, Fix: fix})
}

func (k *checker) warn(option, message, fix string) {
	k.add(Finding{Warning: true, Option: option, Message: message, Fix: fix})
}

// rules checks the numbers of the rules themselves.
func (k *checker) rules() {
	if k.d.Cap && k.p.MaxAttempts == 0 {
		k.refuse("MaxAttempts", "it is 0, and deliveries are counted from 1", "use 1 or more, or leave it out for no cap")
	}
	if k.d.LongestBackoff < 0 {
		k.refuse("Backoff", fmt.Sprintf("its longest delay is %s", k.d.LongestBackoff), "use delays of 0 or more")
	}
	if k.d.MaxElapsed < 0 {
		k.refuse("MaxElapsed", fmt.Sprintf("it is %s", k.d.MaxElapsed), "use a time above 0, or leave it out for no limit")
	}
	if k.d.Floor < 0 {
		k.refuse("Floor", fmt.Sprintf("it is %s", k.d.Floor), "use 0 to turn it off, or a wait above it")
	}
	if k.d.Workers < 0 {
		k.refuse("Workers", fmt.Sprintf("it is %d", k.d.Workers), "use 1 or more")
	}
}

// destinations checks what the destinations can carry.
func (k *checker) destinations() {
	if k.retry.State == RouteRefused {
		k.refuse("RetryTo", fmt.Sprintf("nothing can carry %s", k.retry.To), "name a destination that can be published to, on any endpoint")
	}
	if !k.p.DeadLetter && !k.d.DeadLetter {
		return
	}
	switch k.dead.State {
	case RouteOpen:
		if k.dead.Caps.Headers == HeadersNone {
			k.warn("DeadLetterTo", fmt.Sprintf("%s carries no headers, so dead letters lose theirs, the cause and the attempts included", k.dead.To),
				"name a destination that carries headers")
		}
	case RouteRefused:
		k.refuse("DeadLetterTo", fmt.Sprintf("nothing can carry %s", k.dead.To), "name a destination that can be published to, on any endpoint")
	default:
		k.refuse("DeadLetterTo", "it names no destination", "name one, on any endpoint")
	}
}

// copies checks where copies go on a source with the capabilities s.
func (k *checker) copies(s *Capabilities) {
	possible := k.retry.State != RouteNone || k.d.RetryTo
	switch {
	case s.Counts == CountNative:
		if k.d.RetryTo || k.p.RetryTo {
			k.refuse("RetryTo", "the source counts deliveries, so no copy is made below the cap: its count would start again",
				"leave RetryTo out; MaxAttempts and DeadLetterTo work on the source's own count")
		}
	case !possible && (s.Requeue != RequeueDelayed || k.p.capped()):
		k.refuse("RetryTo", "there is no destination for copies: what is to be handled again is published as a copy, and nothing can be published to this source itself",
			"name one that is read, with RetryTo or RetryToFunc")
	case k.retry.State == RouteOpen && k.retry.Caps.Headers == HeadersNone && !k.retry.To.IsZero():
		k.refuse("RetryTo", fmt.Sprintf("%s carries no headers, and a copy's count travels in one", k.retry.To),
			"name a destination that carries headers")
	}
}

// backoff checks that the longest delay of a Backoff can be carried.
func (k *checker) backoff(s *Capabilities) {
	longest := k.d.LongestBackoff
	if longest <= 0 || !k.p.capped() && k.p.DeadLetter {
		return // without a cap every retry is a dead letter at once
	}
	counts := s.Counts == CountNative
	copies := !counts && (k.retry.State != RouteNone || k.d.RetryTo)
	delay := s.Requeue == RequeueDelayed && within(longest, s.MaxDelay)
	hold := s.Requeue != RequeueNone && (s.Extend || within(longest, s.MaxHold))
	if copies || delay || hold {
		return
	}
	if !counts && s.Requeue == RequeueNone {
		return // a destination for copies is all that can help, which copies has said
	}
	limit := "it takes nothing back"
	switch {
	case s.Requeue == RequeueDelayed && s.MaxDelay > 0:
		limit = fmt.Sprintf("the longest delay it takes is below MaxDelay %s", shortDuration(s.MaxDelay))
	case s.Requeue != RequeueNone:
		limit = fmt.Sprintf("a delivery can be held for less than MaxHold %s", shortDuration(s.MaxHold))
	}
	k.refuse("Backoff", fmt.Sprintf("its longest delay %s is out of the source's reach: %s", shortDuration(longest), limit),
		"shorten Backoff's longest delay, or raise the source's limit")
}

// elapsed warns of a budget of time that is spent on attempts one right after the
// other. Where the source takes deliveries back, the floor keeps them apart.
func (k *checker) elapsed(s *Capabilities) {
	if k.p.Elapsed && k.p.MaxAttempts == 0 && !k.p.Backoff && s.Counts == CountNone {
		k.warn("MaxElapsed", fmt.Sprintf("a message that always fails is handled again at once for %s, as fast as its copies come back",
			shortDuration(k.d.MaxElapsed)), "declare Backoff, or MaxAttempts as well")
	}
}

// retries warns of retries that cannot be carried out.
func (k *checker) retries(s *Capabilities) {
	timeout := s.Unsettled == UnsettledOnTimeout && s.Ack == AckSingle
	if s.Requeue != RequeueNone || timeout {
		return
	}
	switch {
	case k.p.Empty():
		k.warn("MaxAttempts", "a retry, and with it a handler's error, cannot be carried out: the source takes nothing back",
			"declare MaxAttempts, DeadLetterTo or Backoff")
	case s.Counts == CountNative && k.p.MaxAttempts != 1 && (k.p.capped() || !k.p.DeadLetter):
		k.warn("MaxAttempts", "a retry below the cap cannot be carried out: the source counts, so no copy is made, and takes nothing back",
			"set MaxAttempts to 1 with a DeadLetterTo, or leave the cap out and keep DeadLetterTo")
	}
}
