// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// way is one way in which messages go from subscription to subscription: what
// is declared by a rule, and who reads it.
type way struct {
	rule string
	noun string // what goes that way
	// to is the destination that a subscription declares; zero = none.
	to      func(s *subscribed) core.Destination
	purpose transportpb.Purpose
	exactly bool // only those that read exactly the destination count
}

// deadLetters are the ways of dead letters, forwards those of what Forward
// publishes.
func deadLetters() way {
	return way{
		rule: "DeadLetterTo", noun: "dead letters", purpose: transportpb.Purpose_PURPOSE_DEAD_LETTER,
		to: func(s *subscribed) core.Destination { return s.resolve(s.rules().deadLetter) },
	}
}

func forwards(exactly bool) way {
	return way{
		rule: "Forward", noun: "forwarded messages", purpose: transportpb.Purpose_PURPOSE_APPLICATION, exactly: exactly,
		to: func(s *subscribed) core.Destination { return s.resolve(s.rules().forward) },
	}
}

// checkDeadLetters refuses dead letters that come back to their subscription, by
// themselves or through the dead letters of others, and warns of those that
// another subscription reads by a pattern.
func (r *run) checkDeadLetters() []Finding {
	dead := deadLetters()
	found, looping := r.loops(dead)
	for _, s := range r.subs {
		if looping[s] {
			continue
		}
		readers, exact := r.readers(s, dead)
		for _, reader := range readers {
			if slices.Contains(exact, reader) {
				continue
			}
			f := s.at()
			f.Option, f.Warning = dead.rule, true
			f.Message = fmt.Sprintf("subscription %s matches the dead letter %s as well", reader.sub.name, s.dead.To)
			f.Fix = "name a dead letter outside its pattern, or be ready for it there"
			f.Places = places(s.placeOf(dead.rule))
			found = append(found, f)
		}
	}
	return found
}

// checkForwards refuses what Forward would send round for ever, and warns where
// only a pattern leads back: a handler may then tell the messages apart.
func (r *run) checkForwards() []Finding {
	found, looping := r.loops(forwards(true))
	more, _ := r.loops(forwards(false))
	for _, f := range more {
		if !slices.ContainsFunc(r.subs, func(s *subscribed) bool {
			return looping[s] && s.sub.name == f.Subscription && s.on.endpoint.name == f.Endpoint
		}) {
			f.Warning = true
			found = append(found, f)
		}
	}
	return found
}

// checkReplies warns of replies to copies of requests that would leave over another
// endpoint than the requests came by, where nobody waits for them.
func (r *run) checkReplies() []Finding {
	copies := way{
		rule: "RetryTo", purpose: transportpb.Purpose_PURPOSE_RETRY,
		to: func(s *subscribed) core.Destination { return s.resolve(s.rules().retryTo) },
	}
	var found []Finding
	for _, s := range r.subs {
		if s.sub.handled.as != "HandleReply" || copies.to(s).IsZero() {
			continue
		}
		readers, _ := r.readers(s, copies)
		for _, reader := range readers {
			if reader.sub.handled.as != "HandleReply" || reader.repliesOn() == s.repliesOn() {
				continue
			}
			f := reader.at()
			f.Option, f.Warning = "ReplyOn", true
			f.Message = fmt.Sprintf("copies of requests to %s of endpoint %s come here, and replies to them would leave over endpoint %s",
				s.sub.name, s.on.endpoint.name, reader.repliesOn())
			f.Fix = "give the rule ReplyOn with endpoint " + s.repliesOn()
			f.Places = places(reader.sub.place)
			found = append(found, f)
		}
	}
	return found
}

// repliesOn is the endpoint that the subscription's reply-to headers are about.
func (s *subscribed) repliesOn() string {
	if on := s.rules().replyOn; on != nil {
		return on.name
	}
	return s.on.endpoint.name
}

// loops returns a finding for each loop of a way, and who is part of one.
func (r *run) loops(w way) ([]Finding, map[*subscribed]bool) {
	var found []Finding
	looping := make(map[*subscribed]bool)
	for _, s := range r.subs {
		loop := r.loop(s, w)
		if loop != nil && !looping[s] {
			found = append(found, s.loops(w, loop))
		}
		for _, on := range loop {
			looping[on] = true
		}
	}
	return found, looping
}

// readers returns the subscriptions that would receive what s sends this way,
// and those of them that read exactly its name.
func (r *run) readers(s *subscribed, w way) (all, exact []*subscribed) {
	to := w.to(s)
	t := r.target(to, w.purpose)
	if t == nil {
		return nil, nil
	}
	on := r.byName[to.Endpoint]
	all, exact = on.ids(t.GetReturnsTo()), on.ids(t.GetExactly())
	if w.exactly {
		all = exact
	}
	return all, exact
}

// ids returns the subscriptions with these ids, in order.
func (a *attached) ids(ids []uint32) []*subscribed {
	var out []*subscribed
	for _, id := range ids {
		if int(id) < len(a.subs) {
			out = append(out, a.subs[id])
		}
	}
	return out
}

// loop returns the subscriptions through which what s sends comes back to it, s
// first; nil where it does not.
func (r *run) loop(s *subscribed, w way) []*subscribed {
	seen := make(map[*subscribed]bool)
	var follow func(at *subscribed, path []*subscribed) []*subscribed
	follow = func(at *subscribed, path []*subscribed) []*subscribed {
		readers, _ := r.readers(at, w)
		for _, next := range readers {
			if next == s {
				return path
			}
			if seen[next] {
				continue
			}
			seen[next] = true
			if found := follow(next, append(slices.Clone(path), next)); found != nil {
				return found
			}
		}
		return nil
	}
	return follow(s, []*subscribed{s})
}

// loops is the refusal of a loop.
func (s *subscribed) loops(w way, loop []*subscribed) Finding {
	f := s.at()
	f.Option = w.rule
	to := w.to(s)
	if len(loop) == 1 {
		f.Message = fmt.Sprintf("%s to %s come back to this subscription", w.noun, to)
		f.Fix = "name a destination that it does not read"
		if s.rules().defaulted[w.rule] {
			f.Fix += ", or leave the defaults out of this registration with NoDefaults"
		}
		f.Places = places(s.placeOf(w.rule))
		return f
	}
	names := make([]string, 0, len(loop))
	ps := make([]place, 0, len(loop))
	for _, on := range loop {
		names = append(names, on.sub.name)
		ps = append(ps, on.placeOf(w.rule))
	}
	f.Message = fmt.Sprintf("%s to %s come back through the %s of %s", w.noun, to, w.noun, strings.Join(names[1:], ", "))
	f.Fix = "let one of them end at a destination that none of them reads"
	if slices.ContainsFunc(loop, func(on *subscribed) bool { return on.rules().defaulted[w.rule] }) {
		f.Fix += ", or leave the defaults out of one of them with NoDefaults"
	}
	f.Places = places(ps...)
	return f
}
