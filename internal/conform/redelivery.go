// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
)

// again waits until the messages of old have come again, and returns the new
// delivery of each, with nil where none came in time, which is wrong. So are
// deliveries of the messages barred, since why; others are let go.
func (s *Sub) again(old []*Delivery, barred []string, why string) []*Delivery {
	limit := s.t.comeBackLimit(old)
	came, more := s.collect(old, limit)
	if lost := without(old, came); len(lost) > 0 {
		s.t.Errorf("%d of %d messages that were not settled did not come again within %v: %s%s", len(lost), len(old), limit, some(lost), s.state())
	}
	s.mustNot(more, barred, why)
	s.once(old, more)
	s.extra(slices.DeleteFunc(more, func(d *Delivery) bool { return slices.Contains(barred, d.Key) }))
	return came
}

// comeBackLimit is how long deliveries may take to come again.
func (t *Trial) comeBackLimit(old []*Delivery) time.Duration {
	limit := t.Subject.Wait
	for _, d := range old {
		if d.Caps.Unsettled == core.UnsettledOnTimeout {
			limit = max(limit, d.Caps.MaxHold+t.Subject.Wait)
		}
	}
	return limit
}

// without are the keys of those of old that did not come.
func without(old, came []*Delivery) (lost []string) {
	for i, d := range old {
		if came[i] == nil {
			lost = append(lost, d.Key)
		}
	}
	return lost
}

// collect waits, at most so long, until the messages of old have come again. It
// returns the new delivery of each, nil for none, and what else came.
func (s *Sub) collect(old []*Delivery, limit time.Duration) (came, more []*Delivery) {
	came = make([]*Delivery, len(old))
	missing := map[string]int{}
	for i, d := range old {
		missing[d.Key] = i
	}
	for until := time.Now().Add(limit); len(missing) > 0 && s.more(time.Until(until)); {
		d := s.Next()
		if i, ok := missing[d.Key]; ok {
			came[i] = d
			delete(missing, d.Key)
			continue
		}
		more = append(more, d)
	}
	return came, more
}

// more waits for a delivery, at most so long.
func (s *Sub) more(limit time.Duration) bool {
	s.await(limit, func() bool { return len(s.queue) > 0 || s.over })
	return s.pending() > 0
}

// same compares a message that came again with its former delivery, but for
// headers that the transport may have added.
func (s *Sub) same(old, d *Delivery) {
	if !bytes.Equal(old.Message.Payload, d.Message.Payload) {
		s.t.Errorf("delivery %d of message %s has another payload than delivery %d: %d and %d bytes", d.ID, d.Key, old.ID, len(d.Message.Payload), len(old.Message.Payload))
	}
	if was, is := ownHeaders(old.Message), ownHeaders(d.Message); was != is {
		s.t.Errorf("delivery %d of message %s has headers %s, and delivery %d had %s", d.ID, d.Key, is, old.ID, was)
	}
	if !bytes.Equal(old.Identity, d.Identity) {
		s.t.Errorf("delivery %d of message %s has identity %q, and delivery %d had %q: it is the same on every redelivery", d.ID, d.Key, d.Identity, old.ID, old.Identity)
	}
}

// ownHeaders are the headers that a case fed, as text.
func ownHeaders(m core.Message) string {
	var b strings.Builder
	b.WriteByte('[')
	for _, h := range m.Headers {
		if strings.HasPrefix(strings.ToLower(h.Name), headerMark) {
			fmt.Fprintf(&b, "%q=%q ", h.Name, h.Value)
		}
	}
	return strings.TrimSuffix(b.String(), " ") + "]"
}

// headed are n messages for the subscription with headers, where it can be fed
// with some.
func (t *Trial) headed(n int) []core.Message {
	ms := t.Messages(t.feedName(), n, 0)
	if p := t.About.Publishing; p == nil || p.Headers == core.HeadersNone || p.MaxHeaders == 1 {
		return ms
	}
	for i := range ms {
		ms[i].Headers = core.Headers{
			{Name: headerMark + "first", Value: fmt.Appendf(nil, "%d", i)},
			{Name: headerMark + "second", Value: []byte("two words")},
		}
	}
	return ms
}

// endedBy is what ended a delivery that comes again.
type endedBy uint8

const (
	byItself  endedBy = iota // a verdict, a void, or a stream that was cancelled
	inOrder                  // the end of a stream that was half-closed
	byTheKill                // of its process
	byRequeue                // a requeue
)

// counted checks the source's count of a message that came again, where it
// counts: one more for each delivery. Those that end in order need not count.
// Its source may have delivered it to a process that was killed before it passed
// it on, or again and again as holds ended. A count that lies in memory is sure behind
// a requeue alone.
func (s *Sub) counted(old, d *Delivery, by endedBy) {
	if !counts(d.Caps) {
		return
	}
	want, most := old.Attempt+1, old.Attempt+1
	if by == inOrder {
		want--
	}
	if hasHold(d.Caps) {
		most += uint32(d.At.Sub(old.At) / d.Caps.MaxHold)
	}
	switch {
	case d.Attempt >= want && d.Attempt <= most:
	case d.Caps.Recounts && by != byRequeue && d.Attempt > 0 && d.Attempt < want:
		s.t.Notef("what comes again without a requeue may be counted from 1 again")
	case by == byTheKill && d.Attempt > most:
		s.t.Notef("behind a kill the attempt rose from %d to %d", old.Attempt, d.Attempt)
	default:
		s.t.Errorf("message %s came again with attempt %d behind attempt %d: its source counts, so it is %d%s", d.Key, d.Attempt, old.Attempt, most,
			map[bool]string{true: " or the same as before"}[by == inOrder])
	}
}

// renewed checks messages that came again: all that is the same, and the count.
func (s *Sub) renewed(old, again []*Delivery, by endedBy) {
	for i, d := range again {
		if d != nil {
			s.same(old[i], d)
			s.counted(old[i], d, by)
		}
	}
}

// keysOf are the keys of deliveries.
func keysOf(ds []*Delivery) []string {
	keys := make([]string, 0, len(ds))
	for _, d := range ds {
		if d != nil {
			keys = append(keys, d.Key)
		}
	}
	return keys
}

// finishAll lets go of all deliveries that have no verdict yet, those not taken
// by the case included.
func (s *Sub) finishAll() {
	s.mu.Lock()
	var open []*Delivery
	for _, d := range s.all {
		if !d.decided && !d.void {
			open = append(open, d)
		}
	}
	s.queue = nil
	s.mu.Unlock()
	s.Finish(open...)
}

// leave lets go of everything and ends subscription and process in order.
func (s *Sub) leave() {
	s.finishAll()
	s.End()
	s.p.Close()
}

// sortByID sorts deliveries as they came.
func sortByID(ds []*Delivery) {
	slices.SortFunc(ds, func(a, b *Delivery) int { return cmp.Compare(a.ID, b.ID) })
}

// pause lets a while pass before something is tried again.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
