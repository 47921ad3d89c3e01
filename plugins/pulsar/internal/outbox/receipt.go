// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// receipt is the receipt of what the library has answered; o.mu is held.
func (p *producer) receipt(e *entry, id pulsar.MessageID, err error) pluginapi.Receipt {
	if err == nil {
		r := pluginapi.Confirmed()
		r.Position = p.position(id)
		return r
	}
	f := client.Explain(fault.PublishTo(e.name), err)
	switch {
	case !untouched(err):
		maybe(f)
		return pluginapi.Unknown(f)
	case !typed(err):
		f.Code, f.Transient = core.FaultTooLarge, false // no other error is without a type
	}
	return pluginapi.Refused(f)
}

// untouched reports whether the library had not begun to send what it gave an error
// for: it had found no room, or could not put the message together. All its other
// errors are given for what a broker may have, too.
func untouched(err error) bool {
	for _, e := range []error{
		pulsar.ErrMessageTooLarge, pulsar.ErrMetaTooLarge, pulsar.ErrInvalidMessage, pulsar.ErrSchema,
		pulsar.ErrSendQueueIsFull, pulsar.ErrMemoryBufferIsFull, pulsar.ErrContextExpired, pulsar.ErrFailAddToBatch,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return !typed(err)
}

// typed reports whether an error is of the library's type.
func typed(err error) bool {
	_, ok := errors.AsType[*pulsar.Error](err)
	return ok
}

// position is where the broker has put a message, nil = a broker with
// deduplication had it already.
func (p *producer) position(id pulsar.MessageID) []byte {
	if id == nil || id.LedgerID() < 0 || id.EntryID() < 0 {
		return nil
	}
	own := topic.ID{
		Ledger: id.LedgerID(), Entry: id.EntryID(),
		Partition: int32(p.lane.topic.Partition), Batch: topic.NoBatch,
	}
	if p.partitioned {
		own.Partition = id.PartitionIdx()
	}
	if id.BatchSize() > 1 {
		own.Batch = id.BatchIdx()
	}
	return topic.AppendPosition(make([]byte, 0, len(p.lane.base)+16), p.lane.base, own)
}

// because is the fault of a publish for a reason that hits more than it.
func because(name string, why *core.Fault) *core.Fault {
	f := *why
	f.Message = fault.PublishTo(name) + ": " + why.Message
	return &f
}

// maybe says that nobody knows what became of a message.
func maybe(f *core.Fault) {
	f.Message += "; the broker had not confirmed the message, which may have been stored"
}

// abandoned is the fault of a message whose producer was closed.
func abandoned(e *entry) *core.Fault {
	f := fault.Passing(core.FaultUnavailable, "see what is wrong with the broker or the topic",
		"%s: the topic's producer was closed", fault.PublishTo(e.name))
	maybe(f)
	return f
}

// overdue is the receipt of an entry that has waited as long as it may; o.mu is
// held.
func (e *entry) overdue() pluginapi.Receipt {
	l := e.lane
	o := l.o
	name, after := fault.PublishTo(e.name), shown(o.c.Timeout)
	if e.by != nil {
		f := fault.Passing(core.FaultTimeout, "see what holds up the broker, or allow more with publish_timeout",
			"%s: the broker has not answered for %s", name, after)
		maybe(f)
		return pluginapi.Unknown(f)
	}
	var f *core.Fault
	switch p := l.producer; {
	case p == nil && l.why != nil:
		f = fault.Of(name, l.why)
		f.Transient = true
		f.Message += "; tried for " + after
	case p == nil && l.waits:
		f = fault.Passing(core.FaultExhausted, "raise max_producers",
			"%s: %d other topics were busy for %s, which is the most that are open at a time", name, o.c.Producers, after)
	case p == nil:
		f = fault.Passing(core.FaultTimeout, "see whether the broker can be reached", "%s: the topic could not be opened for %s", name, after)
	case p.down > 0:
		f = fault.Passing(core.FaultUnavailable, "see whether the broker can be reached", "%s: there was no connection to the topic's broker for %s", name, after)
	default:
		f = fault.Passing(core.FaultTimeout, "see what holds up the broker, or publish fewer at a time",
			"%s: %d messages of the topic were not answered for %s", name, p.lent, after)
	}
	f.Message += "; the message was not sent"
	return pluginapi.Refused(f)
}

func shown(d time.Duration) string { return fmt.Sprint(d.Round(time.Millisecond)) }
