// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"strings"
)

// String returns the capabilities in words, those that say "no" left out.
func (c Capabilities) String() string {
	if c.Ack == AckNone {
		words := []string{"takes no verdict"}
		return strings.Join(append(words, c.rest()...), ", ")
	}
	words := []string{"acks " + c.Ack.String()}
	switch c.Requeue {
	case RequeueNone:
		words = append(words, "takes nothing back")
	case RequeueDelayed:
		w := "requeues delayed"
		if c.MaxDelay > 0 {
			w += " by less than " + shortDuration(c.MaxDelay)
		}
		words = append(words, w)
	default:
		words = append(words, "requeues "+c.Requeue.String())
	}
	switch {
	case c.Rewinds && c.Unsettled == UnsettledOnTimeout:
		words = append(words, "a requeue, and the end of a hold, takes its scope back to it")
	case c.Rewinds:
		words = append(words, "a requeue takes its scope back to it")
	}
	if c.Reject != RejectNone {
		words = append(words, "a reject "+strings.ReplaceAll(c.Reject.String(), "-", " "))
	}
	if c.Counts == CountNative {
		w := "counts deliveries"
		if c.Recounts {
			w += " in its memory"
		}
		words = append(words, w)
	}
	if c.MaxHold > 0 {
		w := "holds for less than " + shortDuration(c.MaxHold)
		if c.Extend {
			w += ", extendable"
		}
		words = append(words, w)
	}
	return strings.Join(append(words, c.rest()...), ", ")
}

// delivery is what a crash does to messages in work, in words.
func (c Capabilities) delivery() string {
	switch {
	case c.Unsettled == UnsettledLost:
		return "what is in work at a crash is lost"
	case !c.Durable:
		return "at least once, unless the source itself restarts"
	default:
		return "at least once"
	}
}

// rest are the words that sources with and without acks share.
func (c Capabilities) rest() []string {
	var words []string
	if c.Unsettled == UnsettledLost {
		words = append(words, "unsettled deliveries are lost")
	} else {
		w := "unsettled deliveries return " + strings.ReplaceAll(c.Unsettled.String(), "-", " ")
		if !c.Durable {
			w += " unless the source itself restarts"
		}
		words = append(words, w)
	}
	if c.Order != OrderNone {
		words = append(words, "in order "+strings.ReplaceAll(c.Order.String(), "-", " "))
	}
	if c.Address != "" {
		words = append(words, "own address "+c.Address)
	}
	return words
}

// policyText is what is declared, in words.
func policyText(p *Policy, retry, dead *Route, d *Declared) string {
	var words []string
	if p.MaxAttempts > 0 {
		words = append(words, fmt.Sprintf("at most %d attempts", p.MaxAttempts))
	}
	if p.Elapsed {
		w := "within " + shortDuration(d.MaxElapsed) + " of the first failure"
		if p.MaxAttempts == 0 {
			w = "attempts " + w
		}
		words = append(words, w)
	}
	if p.Backoff {
		words = append(words, "backoff up to "+shortDuration(d.LongestBackoff))
	}
	if p.RetryTo || d.RetryTo {
		words = append(words, "copies to "+routeName(retry, "a computed name"))
	}
	if p.DeadLetter {
		words = append(words, "dead letters to "+routeName(dead, "nowhere"))
	}
	if d.Workers > 1 {
		w := fmt.Sprintf("%d workers", d.Workers)
		if d.ByKey {
			w += " by key"
		}
		words = append(words, w)
	}
	if d.Batch > 1 {
		words = append(words, fmt.Sprintf("batches of up to %d", d.Batch))
	}
	if len(words) == 0 {
		words = append(words, "nothing")
	}
	if d.Journal {
		words = append(words, "a journal is in use")
	}
	return strings.Join(words, ", ")
}

// routeName names a destination, or gives other where it has no name.
func routeName(r *Route, other string) string {
	if r.To.IsZero() {
		return other
	}
	return r.To.String()
}

// routeText names a destination and says what a receipt is worth there.
func routeText(r *Route, other string) string {
	s := routeName(r, other)
	if r.State != RouteOpen {
		return s
	}
	switch r.Caps.Confirms {
	case ConfirmNothing:
		s += "; a receipt promises nothing"
	case ConfirmQueued:
		s += "; a receipt means queued in the plugin"
	case ConfirmHandedOver:
		s += "; a receipt means handed over"
	default:
		s += "; a receipt means stored"
	}
	switch r.Caps.Retains {
	case RetainNothing:
		s += "; nobody keeps it until it is read"
	case RetainProcess:
		s += "; only this process reads it, and it ends with it"
	default:
	}
	if r.Caps.Headers == HeadersNone {
		s += "; it carries no headers"
	}
	return s
}

// counts says who counts the attempts.
func (x *explainer) counts() string {
	switch {
	case x.s.Recounts:
		return "the source, in its memory; the first delivery is 1, and so may be one behind a restart or a lost connection"
	case x.s.Counts == CountNative:
		return "the source; the first delivery is 1"
	case x.retry.State != RouteNone:
		return "the copies, in the header " + CountHeader
	default:
		return "nobody; the attempt is unknown"
	}
}

// words are the notes in words.
func (n Note) words() []string {
	var out []string
	if n&NoteWindow != 0 {
		out = append(out, "loss window: it is settled before its copy leaves, and the copy waits in memory")
	}
	if n&NoteDelay != 0 {
		out = append(out, "the delay asked for is out of reach")
	}
	if n&NoteOverCap != 0 {
		out = append(out, "the handler does not run")
	}
	return out
}

// order says what the steps do to the order of deliveries.
func (x *explainer) order(path Path) string {
	var copied, own, back, waits, released bool
	for i := range path {
		switch s := &path[i].Step; s.Do {
		case ActPublish, ActPublishLater:
			copied = true
			own = s.To == TargetRetry && x.retry.Caps.Retains == RetainProcess
		case ActHold:
			waits = true
		case ActRequeue:
			back, waits = true, waits || s.Delay > 0
		case ActRelease:
			released = true
		default:
		}
	}
	ordered := x.s.Order != OrderNone
	switch {
	case copied && own: // it never leaves the process, and need not wait behind what others send
		return "the copy comes behind those under way"
	case copied:
		return "the copy joins the tail of its destination"
	case back && !ordered, released && x.s.Unsettled != UnsettledLost && x.s.Ack == AckSingle && !ordered:
		return "comes back; there is no order"
	case back && x.s.Rewinds && waits:
		return "later ones pass it, until its scope goes back to it"
	case back && x.s.Rewinds:
		return "its scope goes back to it: those behind it come again"
	case back && waits:
		return "later ones pass it"
	case back:
		return "comes back behind those under way"
	case released && x.s.Ack == AckCumulative:
		return "nothing behind it in its scope is settled"
	case released && x.s.Rewinds && x.s.Unsettled == UnsettledOnTimeout:
		return "later ones pass it, until its scope goes back to it"
	case released && x.s.Unsettled != UnsettledLost:
		return "later ones pass it"
	case ordered && x.d.Workers > 1 && x.d.ByKey:
		return "kept within a key"
	case ordered && x.d.Workers > 1:
		return "begun in order, ended in any"
	case ordered:
		return "kept"
	default:
		return "there is none"
	}
}
