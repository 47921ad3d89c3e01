// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// clockGrain is how much earlier than its time something may seem to come,
// since two clocks are read.
const clockGrain = time.Millisecond

// headerMark begins the names of the headers that a case feeds.
const headerMark = "conform-"

// reading starts a generation and subscribes: what is fed from then on is read,
// whether the transport keeps it or not.
func (t *Trial) reading() (*Process, *Sub) {
	p := t.Connected()
	return p, p.Subscribe()
}

// own reports whether a message was made by this case.
func (t *Trial) own(key string) bool {
	return strings.HasPrefix(key, keyMark+t.Word+":")
}

// feedTake feeds n messages and returns the first delivery of each, in the
// order fed.
func (s *Sub) feedTake(n int) []*Delivery { return s.first(s.t.Feed(s.p, n)) }

// first returns the first delivery of each message, in the order of keys. What
// comes beside them is let go at once, since it may fill the window. The case
// ends where a message does not come.
func (s *Sub) first(keys []string) []*Delivery {
	at := map[string]int{}
	for i, k := range keys {
		at[k] = i
	}
	ds := make([]*Delivery, len(keys))
	for len(at) > 0 {
		if !s.more(s.t.Subject.Wait) {
			var lost []string
			for _, k := range keys {
				if _, ok := at[k]; ok {
					lost = append(lost, k)
				}
			}
			s.t.Fatalf("%d of %d messages did not come within %v: %s%s", len(lost), len(keys), s.t.Subject.Wait, some(lost), s.state())
		}
		d := s.Next()
		i, ok := at[d.Key]
		if !ok {
			s.extra([]*Delivery{d})
			continue
		}
		ds[i] = d
		delete(at, d.Key)
	}
	return ds
}

// extra lets go of deliveries that no case asked for.
func (s *Sub) extra(ds []*Delivery) {
	for _, d := range ds {
		if s.t.own(d.Key) && !cumulative(d.Caps) && !hasHold(d.Caps) && !rewinds(d.Caps) { // of those some were let go of
			s.t.Notef("message %s came again without a reason that the case gave", d.Key)
		}
	}
	s.letGo(ds...)
}

// letGo lets go of deliveries without harm to others: a cumulative ack would
// take what is before it along.
func (s *Sub) letGo(ds ...*Delivery) {
	for _, d := range ds {
		if cumulative(d.Caps) {
			s.Settle(frame.VerdictRun{First: d.ID, Kind: core.VerdictRelease})
		} else {
			s.Finish(d)
		}
	}
}

// of returns the deliveries whose profile is as f asks. The case is not run
// where there are none.
func (t *Trial) of(ds []*Delivery, what string, f func(c core.Capabilities) bool) []*Delivery {
	var some []*Delivery
	for _, d := range ds {
		if f(d.Caps) {
			some = append(some, d)
		}
	}
	if len(some) == 0 {
		t.Skipf("none of %d messages came with a profile that has %s", len(ds), what)
	}
	return some
}

// not turns a condition round.
func not(f func(c core.Capabilities) bool) func(c core.Capabilities) bool {
	return func(c core.Capabilities) bool { return !f(c) }
}

// voided reports whether a delivery is void.
func (s *Sub) voided(d *Delivery) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return d.void
}

// overtaken reports whether a delivery may be stale since its hold has ended. A
// verdict that was under way then is answered STALE and needs no void; and the
// hold began before the delivery arrived here.
func (s *Sub) overtaken(d *Delivery) bool {
	return s.voided(d) || hasHold(d.Caps) && time.Since(d.At) > d.Caps.MaxHold/2
}

// expect decides one delivery and reports whether the answer is as wanted. The
// delivery may have become void in between, by the end of its hold or by a requeue
// that rewinds: then it is stale, and only an ack may count still.
func (s *Sub) expect(d *Delivery, run frame.VerdictRun, want frame.SettleStatus) bool {
	run.First, run.Count = d.ID, 1
	r := s.Result(run)
	if r.Status == want {
		return true
	}
	if r.Status == frame.SettleStale && s.overtaken(d) || r.Status == frame.SettleDone && run.Kind == core.VerdictAck && s.voided(d) {
		s.t.Notef("a delivery was void before its %s", verdictWord(&run))
		return false
	}
	s.t.Errorf("%s of delivery %d was answered %s in place of %s%s", verdictWord(&run), d.ID, statusWord(r.Status), statusWord(want), because(r.Fault))
	return false
}

// done decides deliveries, one at a time, and returns those whose verdict was
// accepted.
func (s *Sub) done(kind core.VerdictKind, ds ...*Delivery) []*Delivery {
	var accepted []*Delivery
	for _, d := range ds {
		if s.expect(d, frame.VerdictRun{Kind: kind}, frame.SettleDone) {
			accepted = append(accepted, d)
		}
	}
	return accepted
}

// because is a fault behind a message, "" for none.
func because(f *core.Fault) string {
	if f == nil {
		return ""
	}
	return ": " + f.Error()
}

// verdictWord is the protocol's word for a verdict.
func verdictWord(r *frame.VerdictRun) string {
	name, known := transportpb.VerdictKind_name[int32(r.Kind)]
	switch {
	case !known:
		return fmt.Sprintf("a verdict of kind %d", r.Kind)
	case r.Delay > 0:
		return fmt.Sprintf("%s after %v", strings.TrimPrefix(name, "VERDICT_KIND_"), r.Delay)
	case r.Hold > 0:
		return fmt.Sprintf("%s by %v", strings.TrimPrefix(name, "VERDICT_KIND_"), r.Hold)
	default:
		return strings.TrimPrefix(name, "VERDICT_KIND_")
	}
}

// absent waits for one more message and then for a while. None of the messages
// named may come, since why.
func (s *Sub) absent(keys []string, why string) {
	sentinel := s.t.Feed(s.p, 1)
	first, more := s.TakeKeys(sentinel)
	more = append(more, s.Within(s.t.Subject.Quiet)...)
	s.mustNot(more, keys, why)
	s.letGo(first[sentinel[0]])
	s.letGo(more...)
}

// mustNot says which of the deliveries are of messages that may not come.
func (s *Sub) mustNot(ds []*Delivery, keys []string, why string) {
	var came []string
	for _, d := range ds {
		if slices.Contains(keys, d.Key) && !slices.Contains(came, d.Key) {
			came = append(came, d.Key)
		}
	}
	if len(came) > 0 {
		s.t.Errorf("%d of %d messages came again: %s; %s", len(came), len(keys), some(came), why)
	}
}
