// SPDX-License-Identifier: Apache-2.0

package message

import (
	"slices"
	"strconv"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/headers"
	"github.com/longshore-go/longshore/plugins/internal/names"
	"github.com/longshore-go/longshore/plugins/internal/poison"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// A Delivered is what a delivery has of its message.
type Delivered struct {
	Message     core.Message // Name is Source.As
	ID          topic.ID
	Position    []byte // of the message: Position and Identity of the delivery
	Carry       []byte
	PublishedAt time.Time
}

// Memory is what a Decoder takes lists of headers, positions and carries from. The zero value has none yet; it grows to what was needed, within
// bounds.
type Memory struct {
	lists headers.Memory
	bytes []byte
}

// Spent says that nothing that was taken from the memory is in use any more.
func (m *Memory) Spent() {
	m.lists.Spent()
	poison.Bytes(m.bytes[:cap(m.bytes)])
}

// The bytes that one piece of memory has at first and at most. What is longer stands
// alone.
const (
	firstBytes = 4 << 10
	mostBytes  = 256 << 10
)

// A Decoder reads messages. Payloads and values stay where they are: in the memory of
// their frames, which nobody uses again. The zero value is ready; one goroutine uses
// it at a time.
type Decoder struct {
	lists  headers.Lists
	memory *Memory
	free   []byte // the rest of memory.bytes
	names  names.Table
}

// Use makes the decoder take from m from now on, from its beginning: nothing that
// was taken from it may be in use any more. Without memory, nil, each message has
// its own.
func (d *Decoder) Use(m *Memory) {
	d.memory, d.free = m, nil
	if m == nil {
		d.lists.Use(nil)
		return
	}
	d.lists.Use(&m.lists)
	d.free = m.bytes[:cap(m.bytes)]
}

// Decode reads a message of a source. The headers of the key, the ordering key and
// the event time come first where the message has these; then its properties, as their
// producer has ordered them. Of a name that comes again the last value counts. A
// property that has the name of one of the three is left out where that contradicts it.
// The list has room for one more.
func (d *Decoder) Decode(s *Source, msg *wire.Message) Delivered {
	own := own{key: msg.Key, orderingKey: msg.OrderingKey, eventTime: max(msg.EventTime, 0)}
	out := Delivered{ID: s.ID(msg.ID), PublishedAt: time.UnixMilli(msg.PublishTime)}
	block := d.take(maxDecimal + topic.MaxPosition + len(s.base) + carrySize(&own, s.As))

	list := d.lists.Room(len(msg.Properties) + owns + 1)
	list, block = own.headers(list, block)
	var places places
	for i := range msg.Properties {
		p := &msg.Properties[i]
		name := d.names.Intern(p.Name)
		if own.hides(name) || name == emptyMark {
			continue
		}
		if at, again := place(&places, list, name, nameOfHeader); again {
			list[at].Value = slices.Clip(p.Value)
		} else {
			list = append(list, core.Header{Name: name, Value: slices.Clip(p.Value)})
		}
	}
	out.Message = core.Message{Name: s.As, Headers: d.lists.Take(list), Payload: slices.Clip(msg.Payload)}
	out.Position = slices.Clip(topic.AppendPosition(block[:0], s.base, out.ID))
	out.Carry = slices.Clip(appendCarry(block[len(out.Position):][:0], &own, s.As, out.ID))
	return out
}

func nameOfHeader(h *core.Header) string { return h.Name }

// take returns n bytes.
func (d *Decoder) take(n int) []byte {
	switch {
	case d.memory == nil || n > mostBytes/4:
		return make([]byte, n)
	case n > len(d.free):
		size := min(max(2*cap(d.memory.bytes), firstBytes, n), mostBytes)
		d.memory.bytes = make([]byte, size)
		d.free = d.memory.bytes
	}
	block := d.free[:n:n]
	d.free = d.free[n:]
	return block
}

// own is what a message has beside payload and properties.
type own struct {
	key         []byte
	orderingKey []byte
	eventTime   int64 // milliseconds since 1970, 0 = none
}

// owns is how many headers it makes at most.
const owns = 3

// maxDecimal is the longest an int64 is in decimal.
const maxDecimal = 20

// headers appends the headers; the value of the time lies in the block.
func (o *own) headers(list core.Headers, block []byte) (core.Headers, []byte) {
	if len(o.key) > 0 {
		list = append(list, core.Header{Name: KeyHeader, Value: slices.Clip(o.key)})
	}
	if len(o.orderingKey) > 0 {
		list = append(list, core.Header{Name: OrderingKeyHeader, Value: slices.Clip(o.orderingKey)})
	}
	if o.eventTime > 0 {
		value := strconv.AppendInt(block[:0], o.eventTime, 10)
		list = append(list, core.Header{Name: EventTimeHeader, Value: slices.Clip(value)})
		block = block[len(value):]
	}
	return list, block
}

// hides reports whether a property gives way to a header of the message's own.
func (o *own) hides(name string) bool {
	switch kindOf(name) {
	case kindKey:
		return len(o.key) > 0
	case kindOrderingKey:
		return len(o.orderingKey) > 0
	case kindEventTime:
		return o.eventTime > 0
	default:
		return false
	}
}
