// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"slices"
	"strconv"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
)

// The bounds of the copies on their way back.
const (
	maxLooped      = 4096
	maxLoopedBytes = 32 << 20
)

// looped is a message on its way back to one subscription.
type looped struct {
	message core.Message
	purpose pluginapi.Purpose
	bytes   int
	receipt *receipt
}

// receipt is the receipt of a looped message. A host whose input has ended
// stops when nothing is under way, so it must not learn that a copy is out
// before it has the copy's delivery. Of the copies on their way to one
// subscription only the newest receipt is withheld: that keeps the host
// waiting, and the receipts before it return the credit that the deliveries
// need.
type receipt struct {
	answer func(pluginapi.Receipt)
	pins   int // subscriptions that withhold it
}

// answers are receipts to be given once the intake is unlocked.
type answers []*receipt

// give gives them.
func (as *answers) give() {
	for _, r := range *as {
		r.answer(pluginapi.Confirmed())
	}
	*as = nil
}

// loops counts the copies on their way back.
type loops struct{ messages, bytes int }

func (l *loops) enter(c *looped) { l.messages++; l.bytes += c.bytes }
func (l *loops) leave(c *looped) { l.messages--; l.bytes -= c.bytes }

// loop brings a message back to the subscriptions that read its key. It reports
// false where there are none, or a fault; answer is called only else.
func (i *intake) loop(m core.Message, p pluginapi.Purpose, answer func(pluginapi.Receipt)) (bool, *core.Fault) {
	var done answers
	defer done.give()
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.cut != nil:
		return false, i.cut
	case !i.received(m.Name):
		return false, nil
	case i.loops.messages >= maxLooped, i.loops.bytes >= maxLoopedBytes:
		return false, &core.Fault{
			Code: core.FaultExhausted, Transient: true,
			Message: "publish: " + strconv.Itoa(i.loops.messages) + " copies are on their way back to " + m.Name,
		}
	}
	r := &receipt{answer: answer}
	number := i.numbers.next(m.Name)
	for _, s := range i.subs {
		if s.key != m.Name || s.stopped {
			continue
		}
		c := m.Clone() // the caller's is valid until its receipt only
		c.Headers = envelope.SetSequence(c.Headers, strconv.AppendUint(nil, number, 10))
		l := &looped{message: c, purpose: p, bytes: c.Size(), receipt: r}
		i.loops.enter(l)
		s.looped = append(s.looped, l)
		s.withhold(r, &done)
		s.signal()
	}
	return true, nil
}

// withhold keeps a receipt back in the place of the one before.
func (s *subscription) withhold(r *receipt, done *answers) {
	if s.newest != nil {
		s.newest.unpin(done)
	}
	s.newest = r
	r.pins++
}

func (r *receipt) unpin(done *answers) {
	if r.pins--; r.pins == 0 {
		*done = append(*done, r)
	}
}

// letGo gives the receipt that is withheld: without credit the copy's delivery
// would wait for it, since what was delivered before may wait for the receipt. A
// host that has used up its window was not told that the subscription has caught
// up, or has paused it.
func (s *subscription) letGo(done *answers) {
	if s.newest != nil {
		s.newest.unpin(done)
		s.newest = nil
	}
}

// landed takes note that a copy's delivery is in the stream.
func (s *subscription) landed(l *looped, done *answers) {
	if s.newest == l.receipt {
		s.newest = nil
		l.receipt.unpin(done)
	}
}

// orphan is a copy that nobody will receive.
type orphan struct {
	message core.Message
	purpose pluginapi.Purpose
	answer  func(pluginapi.Receipt)
}

// desert takes back what nobody will receive and prints it, unless another
// subscription receives it still. It unlocks the intake.
func (s *subscription) desert() {
	i := s.intake
	var done answers
	s.stopped = true
	for _, l := range s.handed {
		s.landed(l, &done)
	}
	s.handed = nil
	var left []orphan
	for _, l := range s.looped {
		i.loops.leave(l)
		o := orphan{message: l.message, purpose: l.purpose, answer: func(pluginapi.Receipt) {}}
		if s.newest == l.receipt {
			s.newest = nil
			if l.receipt.pins--; l.receipt.pins == 0 {
				o.answer = l.receipt.answer
			}
		}
		if !i.received(l.message.Name) {
			left = append(left, o)
		} else {
			o.answer(pluginapi.Confirmed())
		}
	}
	s.looped = nil
	i.mu.Unlock()
	done.give()
	s.conn.printOrphans(left)
}

// received reports whether a subscription that has not stopped reads the key.
func (i *intake) received(key string) bool {
	return slices.ContainsFunc(i.subs, func(s *subscription) bool { return s.key == key && !s.stopped })
}

// printOrphans prints copies that cannot come back.
func (c *conn) printOrphans(left []orphan) {
	lost := 0
	for _, o := range left {
		if f := c.writer.put(o.message, o.purpose, o.answer); f != nil {
			lost++
			o.answer(pluginapi.Refused(f))
		}
	}
	if lost > 0 {
		c.log.Error("copies on their way back are lost: their subscription has ended and they cannot be printed",
			"key", left[0].message.Name, "lost", lost)
	}
	if n := len(left) - lost; n > 0 {
		c.log.Info("copies on their way back were printed: their subscription has ended",
			"key", left[0].message.Name, "copies", n)
	}
}
