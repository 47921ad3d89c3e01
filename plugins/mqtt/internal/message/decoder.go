// SPDX-License-Identifier: Apache-2.0

package message

import (
	"fmt"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/headers"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// A Decoder reads messages. Values and payloads stay where the packet lies; lists
// of headers come out of the memory of Use. The zero value is ready. One goroutine
// uses it at a time.
type Decoder struct {
	lists headers.Lists
	names propertyNames
}

// Memory is what a Decoder takes lists of headers from.
type Memory = headers.Memory

// Use makes the decoder take lists from m from now on, from its beginning:
// nothing that was taken from it may be in use any more. Without memory, nil, each
// list has its own.
func (d *Decoder) Use(m *Memory) { d.lists.Use(m) }

// ours is how many headers there are at most beside the user properties, and one
// that the list has room for.
const ours = int(kinds) + 2

var yes = []byte("true")

// Decode reads a PUBLISH that packet.ParsePublish has taken. Headers stand in the
// order of their properties, user properties with their case and repeats (D25);
// behind them Retained and Redelivered where they are true. A user property that
// has the name of one of these, or of content-type, reply-to or correlation-id,
// gives way to that; where a packet has no such property it stands in its place, of
// several the last. The list has room for one more. Payload and values lie in the
// packet.
//
// The fault says what cannot be read: a string that is not UTF-8 or has a null
// character, more than MaxHeaders user properties.
// The message has what can be had then: topic, payload, and the headers that can
// be read, none where they are too many.
func (d *Decoder) Decode(p *packet.Publish, m *core.Message) *core.Fault {
	*m = core.Message{Name: d.names.topic(p.Topic), Payload: p.Payload}
	if len(p.Properties) == 0 && !p.Retain && !p.Dup {
		m.Headers = d.lists.Take(d.lists.Room(1))
		return nil
	}
	if n := p.Users(); n > MaxHeaders {
		m.Headers = d.lists.Take(d.lists.Room(1))
		f := undecodable(m, fmt.Sprintf("%d user properties, the limit is %d", n, MaxHeaders))
		f.Code = core.FaultTooLarge
		return f
	}
	headers, reason := d.properties(p, d.lists.Room(p.Users()+ours))
	if p.Retain {
		headers = append(headers, core.Header{Name: Retained, Value: yes[:len(yes):len(yes)]})
	}
	if p.Dup {
		headers = append(headers, core.Header{Name: Redelivered, Value: yes[:len(yes):len(yes)]})
	}
	m.Headers = d.lists.Take(headers)
	if reason != "" {
		return undecodable(m, reason)
	}
	return nil
}

// properties appends the headers that are properties, and says what cannot be
// read of them.
func (d *Decoder) properties(p *packet.Publish, headers core.Headers) (_ core.Headers, reason string) {
	var at [kinds]int // where the header of a kind stands, from 1
	user := 0
	for rest := p.Properties; len(rest) > 0; {
		var h core.Header
		var k kind
		var why string
		if name, value, next, ok := packet.CutUser(rest); ok {
			h, k, why = d.user(p, user, name, value)
			rest = next
			user++
		} else {
			h, k, why, rest = property(rest)
		}
		switch {
		case why != "":
			if reason == "" {
				reason = why
			}
		case k == kindOwn:
		case k != kindUser && at[k] > 0:
			headers[at[k]-1] = h
		default:
			headers = append(headers, h)
			at[k] = len(headers)
		}
	}
	return headers, reason
}

// property is the header of the first property of a block, which is no user
// property, or why it cannot be read; and the rest of the block. One that is no
// header is of kindOwn.
func property(block []byte) (h core.Header, k kind, reason string, rest []byte) {
	f, rest, _ := packet.CutProperty(block)
	switch f.ID {
	case packet.PropContentType:
		h, k, reason = single(contentType, f.Value, kindContentType)
	case packet.PropResponseTopic:
		h, k, reason = single(replyTo, f.Value, kindReplyTo)
	case packet.PropCorrelationData:
		h, k, reason = single(correlationID, f.Value, kindCorrelationID)
	default:
		k = kindOwn
	}
	return h, k, reason, rest
}

// single is the header of a property of its own, or why it cannot be read.
func single(name string, value []byte, k kind) (_ core.Header, _ kind, reason string) {
	if k != kindCorrelationID && !readable(value) {
		reason = fmt.Sprintf("the property %s is not UTF-8, or has a null character: %.80q", name, value)
	}
	return core.Header{Name: name, Value: value}, k, reason
}

// user is the header of user property i, or why it cannot be read. One that gives
// way to a property is of kindOwn.
func (d *Decoder) user(p *packet.Publish, i int, text, value []byte) (_ core.Header, _ kind, reason string) {
	name, ok := d.names.header(i, text)
	if !ok {
		return core.Header{}, kindUser, fmt.Sprintf("the name of a user property is not UTF-8, or has a null character: %.80q", text)
	}
	k := kindOf(name)
	if k != kindUser && (k == kindOwn || p.Has(properties[k])) {
		return core.Header{}, kindOwn, ""
	}
	if !readable(value) {
		reason = fmt.Sprintf("the user property %.80q is not UTF-8, or has a null character: %.80q", name, value)
	}
	return core.Header{Name: name, Value: value}, k, reason
}

// properties are the properties of the kinds that have one.
var properties = [kinds]byte{
	kindContentType: packet.PropContentType, kindReplyTo: packet.PropResponseTopic, kindCorrelationID: packet.PropCorrelationData,
}

func undecodable(m *core.Message, reason string) *core.Fault {
	return &core.Fault{Code: core.FaultInvalid, Message: fmt.Sprintf("read a message of the topic %.200q: %s", m.Name, reason)}
}
