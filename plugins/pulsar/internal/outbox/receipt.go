// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// positionRoom is how much memory the positions of receipts are cut from, in bytes:
// who keeps one keeps as much.
const positionRoom = 4 << 10

// position is where the broker has put a message, nil = a broker with deduplication
// had it already. o.mu is held.
func (p *part) position(e *entry, r *wire.SendReceipt) []byte {
	if r.Ledger < 0 || r.Entry < 0 {
		return nil
	}
	id := topic.ID{Ledger: r.Ledger, Entry: r.Entry, Partition: p.index, Batch: topic.NoBatch}
	if e.count > 1 {
		id.Batch = e.index
	}
	o, base := p.lane.o, p.lane.base
	if room := len(base) + topic.MaxPosition; cap(o.positions)-len(o.positions) < room {
		o.positions = make([]byte, 0, max(positionRoom, room))
	}
	from := len(o.positions)
	o.positions = topic.AppendPosition(o.positions, base, id)
	return o.positions[from:len(o.positions):len(o.positions)]
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

// without is the receipt of a message that no broker takes, for a reason.
func (e *entry) without(why *core.Fault) pluginapi.Receipt {
	f := because(e.name, why)
	if e.tries == 0 {
		return pluginapi.Refused(f)
	}
	maybe(f)
	return pluginapi.Unknown(f)
}

// overdue is the receipt of an entry that has waited as long as it may; o.mu is
// held.
func (e *entry) overdue() pluginapi.Receipt {
	l, p := e.lane, e.part
	name, after := fault.PublishTo(e.name), shown(l.o.c.Timeout)
	if e.tries > 0 {
		f := fault.Passing(core.FaultTimeout, "see what holds up the broker, or allow more with publish_timeout",
			"%s: the broker has not answered for %s", name, after)
		maybe(f)
		return pluginapi.Unknown(f)
	}
	var f *core.Fault
	switch why := e.why(); {
	case why != nil:
		f = fault.Of(name, why)
		f.Transient = true
		f.Message += "; tried for " + after
	case l.stage == waiting || p == nil && l.stage == open:
		f = fault.Passing(core.FaultExhausted, "raise max_producers",
			"%s: %d other topics were busy for %s, which is the most that are open at a time", name, l.o.c.Producers, after)
	case p == nil || p.session == nil:
		f = fault.Passing(core.FaultTimeout, "see whether the broker can be reached", "%s: the topic could not be opened for %s", name, after)
	default:
		f = fault.Passing(core.FaultTimeout, "see what holds up the broker, or publish fewer at a time",
			"%s: messages of the topic before it were not answered for %s", name, after)
	}
	f.Message += "; the message was not sent"
	return pluginapi.Refused(f)
}

// why says what keeps a message from being sent, nil = nothing that is known.
func (e *entry) why() *core.Fault {
	switch p := e.part; {
	case p == nil:
		return e.lane.why
	case p.session == nil:
		return p.why
	}
	return nil
}

func shown(d time.Duration) string { return fmt.Sprint(d.Round(time.Millisecond)) }
