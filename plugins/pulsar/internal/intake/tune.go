// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"sync/atomic"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// nackTick is how often the library looks for nacks that are due. It takes a third of
// the first delay that its policy names; the nacks themselves are due at once. So a
// message is back after 4 ms, one in a hundred after 10 ms; an idle consumer wakes
// 200 times a second for that.
const nackTick = 5 * time.Millisecond

// nackBits makes the library put nacks together whose due times differ by less than
// 2^bits milliseconds. It skips every second set that is due, so there must not be
// many; and a due time is rounded down, so none waits for it.
const nackBits = 12

// tune sets what verdicts need.
func (in *Intake) tune(o *pulsar.ConsumerOptions) {
	bits := int64(nackBits)
	o.NackPrecisionBit = &bits
	o.NackBackoffPolicy = new(atOnce)
	o.AckWithResponse = true                // an ack that is lost is known
	o.EnableBatchIndexAcknowledgment = true // else acks of single messages of a batch are dropped
	if o.Type == pulsar.Failover {
		o.EventListener = turns{in}
	}
}

// atOnce is a policy of nacks without a delay.
type atOnce struct{ asked atomic.Bool }

// Next is asked first when the consumer is made, for the tick.
func (p *atOnce) Next(uint32) time.Duration {
	if p.asked.Swap(true) {
		return 0
	}
	return 3 * nackTick
}

// nacked is as much of a message as a nack needs, so that none is kept for it.
type nacked struct {
	pulsar.Message
	id pulsar.MessageID
}

func (n nacked) ID() pulsar.MessageID { return n.id }

func (n nacked) RedeliveryCount() uint32 { return 0 }

// turns hears of whose turn it is on Failover.
type turns struct{ in *Intake }

// BecameActive needs nothing: what is not acked comes from the lowest message on.
func (t turns) BecameActive(pulsar.Consumer, string, int32) {}

// BecameInactive makes void what the host has of a partition: another consumer gets it.
// Acks count all the same. What is on the way is delivered still. It does not block.
func (t turns) BecameInactive(_ pulsar.Consumer, topic string, _ int32) {
	in, now := t.in, time.Now()
	in.mu.Lock()
	for p, l := range in.lanes {
		if p.Scope == topic {
			l.away(now)
		}
	}
	in.mu.Unlock()
	wake(in.changed)
}
