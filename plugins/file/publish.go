// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"strconv"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/internal/writer"
	"github.com/longshore-go/longshore/plugins/internal/envelope"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// publish appends messages in order.
func (o *output) publish(ctx context.Context, msgs []pluginapi.Outgoing, done func(i int, r pluginapi.Receipt)) {
	if err := o.take(ctx); err != nil {
		refuseAll(len(msgs), faultOf("publish", err), done)
		return
	}
	defer o.give()
	if err := o.open(ctx); err != nil {
		refuseAll(len(msgs), faultOf("publish", err), done)
		return
	}
	o.entries = o.entries[:0]
	var at []int // of the entries among the messages, where some were refused
	for i := range msgs {
		if f := refuses(&msgs[i]); f != nil {
			if at == nil {
				at = make([]int, 0, len(msgs))
				for k := range i {
					at = append(at, k)
				}
			}
			done(i, pluginapi.Refused(f))
			continue
		}
		if at != nil {
			at = append(at, i)
		}
		o.entries = append(o.entries, entryOf(&msgs[i]))
	}
	o.writer.Append(o.entries, func(k int, sequence uint64, err error) {
		if at != nil {
			k = at[k]
		}
		done(k, receiptOf(sequence, err))
	})
	clear(o.entries)
}

func refuseAll(n int, f *core.Fault, done func(int, pluginapi.Receipt)) {
	for i := range n {
		done(i, pluginapi.Refused(f))
	}
}

// refuses says why a message cannot be written.
func refuses(m *pluginapi.Outgoing) *core.Fault {
	name := m.Message.Name
	if message, fix := badKey(name); message != "" {
		return keyFault("publish", message, fix)
	}
	switch n := m.Message.Size(); {
	case m.DeliverAfter > 0:
		return fault.Refusal(core.FaultUnsupported, "publish under %s: a stream file delivers nothing later", name)
	case len(m.Message.Headers) > MaxPublishHeaders:
		return fault.Refusal(core.FaultTooLarge, "publish under %s: %d headers, the limit is %d", name, len(m.Message.Headers), MaxPublishHeaders)
	case n > MaxPublish:
		return fault.Refusal(core.FaultTooLarge, "publish under %s: payload and headers of %d bytes, the limit is %d", name, n, MaxPublish)
	}
	return nil
}

// entryOf is a message as it is written. What an application publishes leaves
// the number behind that this transport put onto the delivery: the reader
// numbers it anew, and a message without headers of its own stays a plain
// record. Copies and dead letters keep it, as in the reference.
func entryOf(m *pluginapi.Outgoing) writer.Entry {
	e := writer.Entry{Key: m.Message.Name, Headers: m.Message.Headers, Payload: m.Message.Payload}
	if m.Purpose == pluginapi.PurposeApplication {
		e.Headers = envelope.WithoutSequence(e.Headers)
	}
	return e
}

// receiptOf says what became of a message.
func receiptOf(sequence uint64, err error) pluginapi.Receipt {
	if err != nil {
		f := faultOf("publish", err)
		if e, ok := errors.AsType[*writer.SyncError](err); ok && e.Unknown {
			return pluginapi.Unknown(f)
		}
		if e, ok := errors.AsType[*writer.BrokenError](err); ok && e.Unknown {
			return pluginapi.Unknown(f)
		}
		if e, ok := errors.AsType[*writer.WriteError](err); ok {
			f.Transient = e.Transient
		}
		return pluginapi.Refused(f)
	}
	r := pluginapi.Confirmed()
	const word = "sequence " // of a start
	r.Position = strconv.AppendUint(append(make([]byte, 0, len(word)+envelope.MaxDigits), word...), sequence, 10)
	return r
}
