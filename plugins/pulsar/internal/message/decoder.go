// SPDX-License-Identifier: Apache-2.0

package message

import (
	"slices"
	"strconv"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/headers"
	"github.com/longshore-go/longshore/plugins/internal/poison"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// A Delivered is what a delivery has of its message.
type Delivered struct {
	Message     core.Message // Name is Source.As
	ID          topic.ID
	Position    []byte // of the message: Position and Identity of the delivery
	Carry       []byte
	PublishedAt time.Time
}

// Memory is what a Decoder takes lists of headers, their values, positions and
// carries from. The zero value has none yet; it grows to what was needed, within
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

// A Decoder reads messages of the client. Payloads stay where they are. The zero
// value is ready; one goroutine uses it at a time.
type Decoder struct {
	lists  headers.Lists
	memory *Memory
	free   []byte // the rest of memory.bytes
	names  []string
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
// the event time come first where the message has these; then its properties by
// name, for the client gives them without their order. A property that has the name
// of one of the three is left out where that contradicts it. The list has room for
// one more.
func (d *Decoder) Decode(s *Source, msg pulsar.Message) Delivered {
	own := own{key: msg.Key(), orderingKey: msg.OrderingKey(), eventTime: eventTime(msg.EventTime())}
	out := Delivered{ID: s.ID(msg.ID()), PublishedAt: msg.PublishTime()}
	properties := msg.Properties()
	c := carry{as: s.As, id: out.ID, own: own}
	block := d.take(own.size() + valuesSize(properties) + topic.MaxPosition + len(s.base) + c.size())

	list := d.lists.Room(len(properties) + owns + 1)
	list, block = own.headers(list, block)
	d.names = d.names[:0]
	for name := range properties {
		d.names = append(d.names, name)
	}
	slices.Sort(d.names)
	for _, name := range d.names {
		if own.hides(name) || name == emptyMark {
			continue
		}
		var value []byte
		value, block = cut(block, properties[name])
		list = append(list, core.Header{Name: name, Value: value})
	}
	out.Message = core.Message{Name: s.As, Headers: d.lists.Take(list), Payload: msg.Payload()}
	out.Position = slices.Clip(topic.AppendPosition(block[:0], s.base, out.ID))
	out.Carry = slices.Clip(c.append(block[len(out.Position):][:0]))
	return out
}

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

// cut copies a text to the front of a block, and returns it and the rest.
func cut(block []byte, text string) (value, rest []byte) {
	n := copy(block, text)
	return block[:n:n], block[n:]
}

func valuesSize(properties map[string]string) int {
	n := 0
	for _, v := range properties {
		n += len(v)
	}
	return n
}

// own is what a message has beside payload and properties.
type own struct {
	key         string
	orderingKey string
	eventTime   int64 // milliseconds since 1970, 0 = none
}

// owns is how many headers it makes at most.
const owns = 3

// maxDecimal is the longest an int64 is in decimal.
const maxDecimal = 20

func (o own) size() int { return len(o.key) + len(o.orderingKey) + maxDecimal }

// headers appends the headers; their values lie in the block.
func (o own) headers(list core.Headers, block []byte) (core.Headers, []byte) {
	var value []byte
	if o.key != "" {
		value, block = cut(block, o.key)
		list = append(list, core.Header{Name: KeyHeader, Value: value})
	}
	if o.orderingKey != "" {
		value, block = cut(block, o.orderingKey)
		list = append(list, core.Header{Name: OrderingKeyHeader, Value: value})
	}
	if o.eventTime > 0 {
		value = strconv.AppendInt(block[:0], o.eventTime, 10)
		list = append(list, core.Header{Name: EventTimeHeader, Value: slices.Clip(value)})
		block = block[len(value):]
	}
	return list, block
}

// hides reports whether a property gives way to a header of the message's own.
func (o own) hides(name string) bool {
	switch kindOf(name) {
	case kindKey:
		return o.key != ""
	case kindOrderingKey:
		return o.orderingKey != ""
	case kindEventTime:
		return o.eventTime > 0
	default:
		return false
	}
}
