// SPDX-License-Identifier: Apache-2.0

package message

import (
	"encoding/binary"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// Params is what a PUBLISH has beside its message.
type Params struct {
	QoS         byte
	Dup         bool
	Retain      bool
	ID          uint16 // left out at QoS 0
	Expiry      uint32 // seconds, where HasExpiry
	HasExpiry   bool
	ContentType []byte // beats the header content-type; nil = the header's
}

// The bytes of properties beside what they hold.
const (
	formatSize = 2
	expirySize = 5
	stringSize = 3
	userSize   = 5
)

// Size returns how many bytes Append appends for a message that Check takes, the
// whole packet. More than packet.MaxSize cannot be written.
func Size(m *core.Message, p *Params) int {
	h := p.head(m)
	return packet.PublishSize(&h, propertiesSize(m, p), len(m.Payload))
}

// Append appends the PUBLISH of a message that Check takes, of at most
// packet.MaxSize bytes.
func Append(dst []byte, m *core.Message, p *Params) []byte {
	return append(appendHead(dst, m, p), m.Payload...)
}

// appendHead appends what comes before the payload's bytes. Properties stand in the
// order of their headers.
func appendHead(dst []byte, m *core.Message, p *Params) []byte {
	h := p.head(m)
	dst = packet.AppendPublishHead(dst, &h, propertiesSize(m, p), len(m.Payload))
	if media, ok := p.contentType(m); ok {
		dst = append(dst, packet.PropPayloadFormat, packet.PayloadFormat(media))
	}
	if p.HasExpiry {
		dst = binary.BigEndian.AppendUint32(append(dst, packet.PropExpiry), p.Expiry)
	}
	if p.ContentType != nil {
		dst = packet.AppendString(append(dst, packet.PropContentType), p.ContentType)
	}
	for i := range m.Headers {
		h := &m.Headers[i]
		switch kindOf(h.Name) {
		case kindContentType:
			if p.ContentType == nil {
				dst = packet.AppendString(append(dst, packet.PropContentType), h.Value)
			}
		case kindReplyTo:
			dst = packet.AppendString(append(dst, packet.PropResponseTopic), h.Value)
		case kindCorrelationID:
			dst = packet.AppendString(append(dst, packet.PropCorrelationData), h.Value)
		case kindUser:
			dst = packet.AppendString(append(dst, packet.PropUser), h.Name)
			dst = packet.AppendString(dst, h.Value)
		}
	}
	return dst
}

// contentType is what the packet says, and whether it does.
func (p *Params) contentType(m *core.Message) ([]byte, bool) {
	if p.ContentType != nil {
		return p.ContentType, true
	}
	for i := range m.Headers {
		if h := &m.Headers[i]; kindOf(h.Name) == kindContentType {
			return h.Value, true
		}
	}
	return nil, false
}

func (p *Params) head(m *core.Message) packet.Head {
	return packet.Head{QoS: p.QoS, Dup: p.Dup, Retain: p.Retain, ID: p.ID, Topic: m.Name}
}

// propertiesSize is how many bytes the properties take.
func propertiesSize(m *core.Message, p *Params) int {
	n := 0
	if p.HasExpiry {
		n += expirySize
	}
	if _, ok := p.contentType(m); ok {
		n += formatSize
	}
	if p.ContentType != nil {
		n += stringSize + len(p.ContentType)
	}
	for i := range m.Headers {
		h := &m.Headers[i]
		switch kindOf(h.Name) {
		case kindContentType:
			if p.ContentType == nil {
				n += stringSize + len(h.Value)
			}
		case kindReplyTo, kindCorrelationID:
			n += stringSize + len(h.Value)
		case kindUser:
			n += userSize + len(h.Name) + len(h.Value)
		}
	}
	return n
}
