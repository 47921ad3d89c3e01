// SPDX-License-Identifier: Apache-2.0

package core

import (
	"slices"
	"strings"
)

// Done is a step that was carried out and what became of it.
type Done struct {
	Step   Step
	Result Result
}

// Party is who dies. Whoever dies comes back, but for a host's memory and a
// plugin that is never started again.
type Party uint8

// The parties.
const (
	PartyNobody       Party = iota // nobody dies
	PartyHost                      // the host's process, and with it every plugin
	PartySourcePlugin              // the plugin that the delivery came from
	PartySourceBroker              // what is behind it
	PartyTargetPlugin              // the plugin that the copy goes to
	PartyTargetBroker              // what is behind it
)

// Ending is a set of what can become of a message.
type Ending uint8

// The endings.
const (
	EndingDone    Ending = 1 << iota // the outcome is carried out
	EndingKept                       // it is still somewhere and will be dealt with
	EndingLost                       // it is gone although the outcome wanted more
	EndingDoubled                    // it is there once too often
)

// endingWords are the words of the endings, by bit.
func endingWords() []string { return []string{"done", "kept", "lost", "doubled"} }

// String returns the endings of the set, joined by " or ".
func (e Ending) String() string {
	var words []string
	for i, w := range endingWords() {
		if e&(1<<i) != 0 {
			words = append(words, w)
		}
	}
	return strings.Join(words, " or ")
}

// MarshalText returns what String returns.
func (e Ending) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads what String returns.
func (e *Ending) UnmarshalText(text []byte) error {
	*e = 0
	if len(text) == 0 {
		return nil
	}
	for w := range strings.SplitSeq(string(text), " or ") {
		i := slices.Index(endingWords(), w)
		if i < 0 {
			return &WordError{Kind: "ending", Text: w, Words: endingWords()}
		}
		*e |= 1 << i
	}
	return nil
}

// Fate returns what becomes of the message when dies dies after the first done
// steps of path, which is a walk of a plan for c. A death while a step is under
// way ends like the one before that step or like the one after it.
//
// A verdict counts as carried out when the plugin has accepted it, a publish is
// worth what its destination promises. Before the first step the end is what
// Unsettled says, since the handler may still be running: what a host can still
// do for a delivery that is gone is not counted on.
func Fate(path []Done, done int, dies Party, c *Case) Ending {
	r := reckon(path, done, c)
	d := deathsOf(dies, r.to)
	return r.ending(d)
}

// deaths are the processes that one death takes along.
type deaths struct {
	host, sourcePlugin, sourceBroker, targetPlugin, targetBroker bool
}

func deathsOf(p Party, to *Route) deaths {
	own := to != nil && to.Own
	return deaths{
		host:         p == PartyHost,
		sourcePlugin: p == PartyHost || p == PartySourcePlugin || own && p == PartyTargetPlugin,
		sourceBroker: p == PartySourceBroker || own && p == PartyTargetBroker,
		targetPlugin: p == PartyHost || p == PartyTargetPlugin || own && p == PartySourcePlugin,
		targetBroker: p == PartyTargetBroker || own && p == PartySourceBroker,
	}
}

// presence is a set of where a thing can be.
type presence uint8

const (
	absent  presence = 1 << iota // nowhere
	there                        // where it should be
	pending                      // in the journal, or in the host's hands
	twice                        // there, and once more from the journal
)

// originals says where the original can be when d has happened: there means
// that the source delivers it again.
func (r *reckoning) originals(d deaths) presence {
	s := &r.c.Source
	unsettled := there
	if s.Unsettled == UnsettledLost {
		unsettled = absent
	}
	if d.sourceBroker && !s.Durable {
		unsettled = absent
	}
	switch r.verdict {
	case verdictOwed:
		if d.sourcePlugin || d.sourceBroker {
			return unsettled
		}
		return pending
	case verdictLetGo:
		return unsettled
	case verdictRequeued:
		switch {
		case d.sourceBroker && !s.Durable:
			return absent
		case r.delayed && d.sourcePlugin && s.Unsettled == UnsettledLost:
			// Perhaps it is the plugin that waits.
			return there | absent
		default:
			return there
		}
	case verdictReturns:
		if d.sourceBroker && !s.Durable {
			return absent
		}
		return there
	default: // settled, gone
		return absent
	}
}

// copies says where the copy can be when d has happened.
func (r *reckoning) copies(d deaths) presence {
	if r.to == nil {
		return absent
	}
	row := r.stored || r.parked
	extra := twice
	if r.to.Caps.Dedups {
		extra = there
	}
	if !r.sent {
		p := r.unsent(d, row)
		if r.maybe && published(r.to, d)&there != 0 {
			// It may have arrived, and is sent once more where anybody still can.
			if p&pending != 0 {
				p |= extra
			} else {
				p |= there
			}
		}
		return p
	}
	p := published(r.to, d)
	if r.maybe {
		p |= absent
	}
	if r.again && p&there != 0 {
		p |= extra
	}
	if !row || !d.host && r.to.Caps.Retains != RetainProcess {
		// A host that lives removes the row next.
		return p
	}
	all := p & twice
	if p&absent != 0 {
		all |= pending
	}
	switch {
	case p&there == 0:
	case d.host:
		all |= extra
	default:
		all |= there
	}
	return all
}

// unsent says where a copy can be that is not published.
func (r *reckoning) unsent(d deaths, row bool) presence {
	switch {
	case row:
		return pending
	case d.host, r.lost, r.finished, r.failed && !r.c.Journal:
		return absent
	case r.verdict != verdictSettled && r.verdict != verdictLetGo && r.verdict != verdictGone:
		return absent // the original stands for it
	case d.targetPlugin && !r.to.Restarts && !r.c.Journal:
		return absent
	default:
		return pending // in the host's memory
	}
}

// published says where a confirmed copy can be when d has happened.
func published(to *Route, d deaths) presence {
	switch {
	case to.Caps.Retains == RetainProcess && d.targetPlugin:
		return absent
	case d.targetPlugin && to.Caps.Confirms < ConfirmHandedOver,
		d.targetBroker && to.Caps.Confirms < ConfirmStored && to.Caps.Retains != RetainProcess:
		return there | absent
	default:
		return there
	}
}

// ending combines what can have become of original and copy.
func (r *reckoning) ending(d deaths) Ending {
	originals, copies := r.originals(d), r.copies(d)
	var e Ending
	for _, o := range [...]presence{absent, there, pending} {
		for _, k := range [...]presence{absent, there, pending, twice} {
			switch {
			case originals&o == 0 || copies&k == 0:
			case o == pending:
				e |= r.goesOn(k, d)
			default:
				e |= r.end(o == there, k)
			}
		}
	}
	return e
}

// end says what it means that the original comes back or not, and that the copy
// is where k says.
func (r *reckoning) end(back bool, k presence) Ending {
	switch {
	case !r.more && back:
		return EndingDoubled
	case !r.more:
		return EndingDone
	case back && k != absent, k == twice:
		return EndingDoubled
	case back && r.verdict == verdictRequeued && !r.failed:
		return EndingDone
	case back, k == pending:
		return EndingKept
	case k == there:
		return EndingDone
	default:
		return EndingLost
	}
}

// goesOn says what becomes of a message whose original is still in the host's
// hands, with everybody that matters to it alive: the plan goes on.
func (r *reckoning) goesOn(k presence, d deaths) Ending {
	s := &r.c.Source
	switch {
	case !r.more:
		return EndingDone
	case r.sent:
		return r.end(false, k) // it is settled next
	case r.to == nil || k == pending || r.c.Journal:
		return EndingKept
	case !r.failed && (!d.targetPlugin || r.to.Restarts):
		return EndingKept
	case s.Ack == AckNone, s.Ack == AckCumulative && s.Unsettled != UnsettledOnTimeout:
		return EndingLost // no rung of the ladder is left
	default:
		return EndingKept
	}
}
