// SPDX-License-Identifier: Apache-2.0

// Package message turns messages into those of Pulsar and back (reference 3.5):
// headers are properties, but for the message's key, its ordering key and its event
// time, which are headers of their own.
package message

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// The headers that are no properties.
const (
	KeyHeader         = "partition-key"       // the message's key
	OrderingKeyHeader = "pulsar-ordering-key" // beats the key where Key_Shared picks a consumer
	EventTimeHeader   = "pulsar-event-time"   // milliseconds since 1970, decimal
)

// Options is what a publish says beside its message. What is set beats the headers.
type Options struct {
	Key         string    // "" = of the headers
	OrderingKey string    // "" = of the headers
	EventTime   time.Time // zero = of the headers
}

// emptyMark is a property of messages that have neither payload nor property: clients
// of other services that are made with pulsar-client-go take one for damaged, and
// acknowledge it unread, unless it has a property or is part of a batch.
const emptyMark = "x-longshore-empty"

// kind is what becomes of a header.
type kind byte

const (
	kindProperty kind = iota
	kindKey
	kindOrderingKey
	kindEventTime
)

// kindOf is the kind of a header, whatever the case of its name.
func kindOf(name string) kind {
	switch {
	case is(name, KeyHeader):
		return kindKey
	case is(name, OrderingKeyHeader):
		return kindOrderingKey
	case is(name, EventTimeHeader):
		return kindEventTime
	default:
		return kindProperty
	}
}

// is reports whether a name is ours but for the case of ASCII letters.
func is(name, ours string) bool { return len(name) == len(ours) && strings.EqualFold(name, ours) }

// Check says why the service cannot publish a message, nil = it can. Names and
// values of headers are UTF-8, for properties are text (S-PUL-32); a name stands
// there once, whatever its case, for clients make maps of properties (D25, S-PUL-39); an
// event time is a number. The fault names the header and the destination.
func Check(m *core.Message) *core.Fault {
	for i := range m.Headers {
		if f := checkHeader(m, i); f != nil {
			return f
		}
	}
	return nil
}

func checkHeader(m *core.Message, i int) *core.Fault {
	h := &m.Headers[i]
	refuse := func(reason, fix string) *core.Fault {
		f := fault.Refusal(core.FaultInvalid, "%s: header %.80q: %s", fault.PublishTo(m.Name), h.Name, reason)
		f.Diagnostics = []core.Diagnostic{{Fix: fix}}
		return f
	}
	const encode = "leave the header out or encode it as text, in base64 for instance"
	switch {
	case !utf8.ValidString(h.Name):
		return refuse("the name is not UTF-8", encode)
	case !utf8.Valid(h.Value):
		return refuse("the value is not UTF-8", encode)
	case m.Headers[:i].Has(h.Name):
		return refuse("it is there twice, and Pulsar has one value a name", "leave one of them out")
	}
	if kindOf(h.Name) == kindEventTime {
		if _, ok := parseEventTime(h.Value); !ok {
			return refuse(fmt.Sprintf("%.80q is no time", h.Value), "give milliseconds since 1970 as a decimal number above 0")
		}
	}
	return nil
}

// parseEventTime reads milliseconds since 1970. 0 is no time in Pulsar.
func parseEventTime(v []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	return n, err == nil && n > 0
}

// For makes the message that is published for m. What Check refuses goes along as
// well as it can: a name that comes again has its last value, and an event time that
// is no number is a property. Payload and values are m's own.
func For(m *core.Message, o Options) wire.Outgoing {
	out := of(m, 0)
	if len(out.Payload) == 0 && len(out.Properties) == 0 {
		out.Properties = []wire.OutgoingProperty{{Name: emptyMark}}
	}
	o.apply(&out)
	return out
}

// of makes the message of what m has, with room for more properties.
func of(m *core.Message, more int) wire.Outgoing {
	out := wire.Outgoing{Payload: m.Payload}
	if n := len(m.Headers) + more; n > 0 {
		out.Properties = make([]wire.OutgoingProperty, 0, n)
	}
	var places places
	for i := range m.Headers {
		h := &m.Headers[i]
		switch kindOf(h.Name) {
		case kindKey:
			out.Key = string(h.Value)
			continue
		case kindOrderingKey:
			out.OrderingKey = string(h.Value)
			continue
		case kindEventTime:
			if t, ok := parseEventTime(h.Value); ok {
				out.EventTime = t
				continue
			}
		}
		p := wire.OutgoingProperty{Name: h.Name, Value: h.Value}
		if at, again := place(&places, out.Properties, h.Name, nameOfProperty); again {
			out.Properties[at] = p
		} else {
			out.Properties = append(out.Properties, p)
		}
	}
	return out
}

func nameOfProperty(p *wire.OutgoingProperty) string { return p.Name }

// apply sets what the options say.
func (o Options) apply(out *wire.Outgoing) {
	if o.Key != "" {
		out.Key = o.Key
	}
	if o.OrderingKey != "" {
		out.OrderingKey = o.OrderingKey
	}
	if ms := o.EventTime.UnixMilli(); ms > 0 {
		out.EventTime = ms
	}
}
