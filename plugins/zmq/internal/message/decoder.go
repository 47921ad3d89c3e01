// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/headers"
)

// A Decoder reads messages. Values and payloads stay where the frames lie;
// lists of headers come out of the memory of Use. The zero value is ready. One
// goroutine uses it at a time.
type Decoder struct {
	lists headers.Lists
	names lineNames
}

// Memory is what a Decoder takes lists of headers from.
type Memory = headers.Memory

// Use makes the decoder take lists from m from now on, from its beginning:
// nothing that was taken from it may be in use any more. Without memory, nil,
// each list has its own.
func (d *Decoder) Use(m *Memory) { d.lists.Use(m) }

// Decode reads the frames of a message, of which there is at least one: name,
// headers, payload; one of two frames has no headers, one of one neither, and
// frames after the third are ignored. Headers keep their case, order and
// repeats (D25); the list has room for one more. Payload and values lie in the
// frames.
//
// The fault says what cannot be read (S-ZMQ-13): a header line without a colon,
// a name or header frame that is not UTF-8, a name of more than MaxName bytes,
// too many headers. The message has what can be had then: the name as UTF-8, or
// its beginning, no headers, the payload.
func (d *Decoder) Decode(frames [][]byte, m *core.Message) *core.Fault {
	return d.decode(nil, frames, m)
}

// DecodeWith decodes as Decode does, with a header in front that stands for all
// of its name which the peer sent. It is there with a fault as well.
func (d *Decoder) DecodeWith(first core.Header, frames [][]byte, m *core.Message) *core.Fault {
	return d.decode(&first, frames, m)
}

func (d *Decoder) decode(first *core.Header, frames [][]byte, m *core.Message) *core.Fault {
	*m = core.Message{Payload: []byte{}}
	var block []byte
	switch len(frames) {
	case 0:
		return undecodable(m, "no frame")
	case 1:
	case 2:
		m.Payload = frames[1]
	default:
		block, m.Payload = frames[1], frames[2]
	}
	if reason, code := unfitName(frames[0]); reason != "" {
		m.Name = strings.ToValidUTF8(string(frames[0][:min(len(frames[0]), cutName)]), string(utf8.RuneError))
		m.Headers = d.only(first)
		f := undecodable(m, reason)
		f.Code = code
		return f
	}
	m.Name = d.names.Intern(frames[0])
	if len(block) == 0 {
		m.Headers = d.only(first)
		return nil
	}
	return d.lines(first, block, m)
}

// cutName is how much of a name is kept that is none.
const cutName = 256

// unfitName says why a frame is no name, "" = it is one.
func unfitName(name []byte) (reason string, code core.FaultCode) {
	switch {
	case len(name) > MaxName:
		return fmt.Sprintf("the name frame has %d bytes, the limit is %d", len(name), MaxName), core.FaultTooLarge
	case !utf8.Valid(name):
		return "the name frame is not UTF-8", core.FaultInvalid
	}
	return "", 0
}

// lines reads the header frame.
func (d *Decoder) lines(first *core.Header, block []byte, m *core.Message) *core.Fault {
	if !utf8.Valid(block) {
		m.Headers = d.only(first)
		return undecodable(m, "the header frame is not UTF-8")
	}
	count, reason := countHeaders(block)
	if reason != "" {
		m.Headers = d.only(first)
		f := undecodable(m, reason)
		f.Code = core.FaultTooLarge
		return f
	}
	room := count + 1
	if first != nil {
		room++
	}
	headers := d.lists.Room(room)
	if first != nil {
		headers = append(headers, *first)
	}
	for number := 1; len(block) > 0; number++ {
		line, rest := cutLine(block)
		block = rest
		name, value, ok := d.names.header(number-1, line)
		if !ok {
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			m.Headers = d.only(first)
			return undecodable(m, fmt.Sprintf("line %d of the header frame, %.60q, has no colon", number, line))
		}
		if first == nil || !strings.EqualFold(name, first.Name) {
			headers = append(headers, core.Header{Name: name, Value: value})
		}
	}
	m.Headers = d.lists.Take(headers)
	return nil
}

// maxLines bounds the lines of a header frame, those that are blank included: in
// 64 MiB there could be so many that to skip them alone takes seconds.
const maxLines = 2 * MaxHeaders

// countHeaders returns how many headers a frame has at most, or why it has too
// many.
func countHeaders(block []byte) (count int, reason string) {
	count = bytes.Count(block, []byte{'\n'}) + 1
	if count <= inOrder {
		return count, ""
	}
	lines := count
	count = min(lines, bytes.Count(block, []byte{':'}))
	switch {
	case count > MaxHeaders:
		return 0, fmt.Sprintf("%d headers, the limit is %d", count, MaxHeaders)
	case lines > maxLines:
		return 0, fmt.Sprintf("a header frame of %d lines, the limit is %d", lines, maxLines)
	}
	return count, ""
}

// only is a list of first alone, or an empty one.
func (d *Decoder) only(first *core.Header) core.Headers {
	if first == nil {
		return d.lists.Take(d.lists.Room(1))
	}
	return d.lists.Take(append(d.lists.Room(2), *first))
}

func undecodable(m *core.Message, reason string) *core.Fault {
	return &core.Fault{Code: core.FaultInvalid, Message: fmt.Sprintf("read a message named %.200q: %s", m.Name, reason)}
}

// cutLine takes a line off b.
func cutLine(b []byte) (line, rest []byte) {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return b[:i], b[i+1:]
	}
	return b, nil
}
