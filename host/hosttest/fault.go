// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory"
)

// Always as the number of a fault means until [Broker.Heal].
const Always = -1

// Lose makes the next n deliveries of a subscription not arrive. The broker
// holds them for delivered, so they go as what is unsettled goes: a lease ends
// and they come again, a queue gives them again when the connection ended, a
// stream has lost them. A request that [Broker.Respond] would answer is lost like
// a delivery.
func (b *Broker) Lose(subscription string, n int) {
	b.queues.Lose(subscription, times("Lose", n))
}

// Double makes each of the next n deliveries of a subscription come twice, the
// second one right behind the first.
func (b *Broker) Double(subscription string, n int) {
	b.queues.Double(subscription, times("Double", n))
}

// Delay makes the next n deliveries of a subscription come later by d; what is
// behind them goes ahead.
func (b *Broker) Delay(subscription string, d time.Duration, n int) {
	b.queues.Delay(subscription, d, times("Delay", n))
}

// Reorder holds back a subscription until n messages of it have come together
// and delivers them in reverse.
func (b *Broker) Reorder(subscription string, n int) {
	b.queues.Reorder(subscription, times("Reorder", n))
}

// FailVerdicts makes the next n verdicts on a subscription's deliveries fail: the
// broker does not carry them out and holds the deliveries for unsettled. n may
// be [Always].
func (b *Broker) FailVerdicts(subscription string, n int) {
	b.queues.FailSettles(subscription, memory.SettleFault{
		Status: memory.SettleFailed, Times: timesOrAlways("FailVerdicts", n),
		Fault: &core.Fault{Code: core.FaultUnavailable, Transient: true, Message: "verdict failed on the test's command"},
	})
}

// PublishFailure says how publishes fail.
type PublishFailure uint8

// The ways in which publishes fail.
const (
	// Unavailable: refused for a reason that may pass; copies are tried again.
	Unavailable PublishFailure = iota
	// Refused: refused for good.
	Refused
	// Unanswered: lost on the way, and the publisher cannot know.
	Unanswered
	// StoredUnanswered: stored, and the publisher cannot know.
	StoredUnanswered
)

// String returns the name of the failure.
func (f PublishFailure) String() string {
	switch f {
	case Unavailable:
		return "unavailable"
	case Refused:
		return "refused"
	case Unanswered:
		return "unanswered"
	case StoredUnanswered:
		return "stored, unanswered"
	default:
		return fmt.Sprintf("publish failure %d", uint8(f))
	}
}

// FailPublishes makes the next n publishes and requests to a name fail. n may be
// [Always]. A request that is [Unanswered] does not arrive, one that is
// [StoredUnanswered] does and its answer is lost; both last as long as the
// request waits.
func (b *Broker) FailPublishes(name string, how PublishFailure, n int) {
	f := memory.PublishFault{Status: memory.PublishRefused, Times: timesOrAlways("FailPublishes", n)}
	switch how {
	case Unavailable:
		f.Fault = &core.Fault{Code: core.FaultUnavailable, Transient: true, Message: "publish failed on the test's command"}
	case Refused:
		f.Fault = &core.Fault{Code: core.FaultDenied, Message: "publish refused on the test's command"}
	case Unanswered, StoredUnanswered:
		f.Status, f.Applied = memory.PublishUnknown, how == StoredUnanswered
		f.Fault = &core.Fault{Code: core.FaultTimeout, Transient: true, Message: "publish not answered on the test's command"}
	default:
		panic(fmt.Sprintf("hosttest: FailPublishes: %d is no way to fail; use Unavailable, Refused, Unanswered or StoredUnanswered", how))
	}
	b.queues.FailPublishes(name, f)
}

// Heal takes away all faults of a subscription or destination.
func (b *Broker) Heal(name string) { b.queues.Heal(name) }

// Hold stops deliveries of a subscription until Resume; what is delivered already
// is not touched.
func (b *Broker) Hold(subscription string) { b.queues.Pause(subscription) }

// Resume lets deliveries go on after Hold.
func (b *Broker) Resume(subscription string) { b.queues.Resume(subscription) }

// TakeBack takes what is delivered and unsettled away from the host, as a broker
// does when it gives a partition to another consumer: it is delivered again, and
// verdicts on the first delivery come too late. It returns how many.
func (b *Broker) TakeBack(subscription string) int { return b.queues.Void(subscription, true, nil) }

// Down ends all connections and refuses new ones until Up, as a broker does that
// is not reachable. The plugins stay alive. Requests under way fail.
func (b *Broker) Down() { b.queues.Down() }

// Up takes connections again after Down.
func (b *Broker) Up() { b.queues.Up() }

// CatchUp makes subscriptions say that they have read all there is whenever
// nothing of theirs is to be delivered or settled any more; all of the broker
// when none is named. They stay open. A host whose sources have all caught up
// stops by itself, unless it has StayUp.
func (b *Broker) CatchUp(subscriptions ...string) {
	if len(subscriptions) == 0 {
		b.queues.CatchUpAll()
	}
	for _, s := range subscriptions {
		b.queues.CatchUp(s)
	}
}

// End ends subscriptions, as a file that has been read to its end, as soon as
// nothing of theirs is to be delivered or settled any more. What comes later is
// not read.
func (b *Broker) End(subscriptions ...string) {
	for _, s := range subscriptions {
		b.queues.End(s, nil)
	}
}

// Break ends a subscription at once with an error: one that is transient is
// opened again by the host, any other is the end of its endpoint.
func (b *Broker) Break(subscription string, cause *core.Fault) {
	if cause == nil {
		panic("hosttest: Break without a cause; use End")
	}
	b.queues.End(subscription, cause)
}

// times refuses numbers that are none.
func times(what string, n int) int {
	if n < 1 {
		panic(fmt.Sprintf("hosttest: %s: %d is no number of times; use 1 or more", what, n))
	}
	return n
}

// timesOrAlways is times with Always as the memory broker's 0.
func timesOrAlways(what string, n int) int {
	if n == Always {
		return 0
	}
	return times(what, n)
}
