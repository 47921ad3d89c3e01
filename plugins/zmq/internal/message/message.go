// SPDX-License-Identifier: Apache-2.0

// Package message turns messages into the three frames of the reference (3.1:
// name, headers, payload) and back.
package message

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// MaxHeaders is how many headers one message may hold. A header takes two bytes
// and more in its frame and forty and more in memory; without a limit a large
// frame of headers alone would take all of it.
const MaxHeaders = 1 << 16

// MaxName is the most bytes of a name, in both directions: it travels beside the
// message, with less room than a payload has.
const MaxName = 64 << 10

const separator = ": "

// Check says why a message cannot be written, nil = it can (S-ZMQ-35). A header
// has to come back from its line as it was: value and name are UTF-8 without
// line breaks and blanks at their ends, the name has no colon. The fault names
// the header and the destination.
func Check(m *core.Message) *core.Fault {
	if !utf8.ValidString(m.Name) {
		return refusal(m, "the name is not UTF-8", "give the destination a name of text")
	}
	if len(m.Headers) > MaxHeaders {
		f := refusal(m, fmt.Sprintf("%d headers, the limit is %d", len(m.Headers), MaxHeaders), "leave headers out")
		f.Code = core.FaultTooLarge
		return f
	}
	for i := range m.Headers {
		if reason := unfit(&m.Headers[i]); reason != "" {
			return refusal(m, fmt.Sprintf("header %q: %s", m.Headers[i].Name, reason), "leave the header out or encode its value as text on one line")
		}
	}
	return nil
}

// unfit says why a header cannot stand on a line, "" = it can.
func unfit(h *core.Header) string {
	switch {
	case !utf8.ValidString(h.Name):
		return "the name is not UTF-8"
	case strings.ContainsAny(h.Name, ":\r\n"):
		return "the name has a colon or a line break"
	case strings.TrimSpace(h.Name) != h.Name:
		return "the name has blanks at an end"
	case !utf8.Valid(h.Value):
		return "the value is not UTF-8"
	case bytes.ContainsAny(h.Value, "\r\n"):
		return "the value has a line break"
	case len(bytes.TrimSpace(h.Value)) != len(h.Value):
		return "the value has blanks at an end"
	default:
		return ""
	}
}

func refusal(m *core.Message, reason, fix string) *core.Fault {
	f := fault.Refusal(core.FaultInvalid, "%s: %s", fault.PublishTo(m.Name), reason)
	f.Diagnostics = []core.Diagnostic{{Fix: fix}}
	return f
}

// headersSize is how many bytes the header frame's body takes.
func headersSize(h core.Headers) int {
	n := len(h) * (len(separator) + 1)
	for i := range h {
		n += len(h[i].Name) + len(h[i].Value)
	}
	return max(n-1, 0)
}

// Size returns how many bytes Append appends for a message that Check takes.
func Size(m *core.Message, name string) int {
	headers := headersSize(m.Headers)
	return zmtp.HeadSize(len(name)) + len(name) + zmtp.HeadSize(headers) + headers +
		zmtp.HeadSize(len(m.Payload)) + len(m.Payload)
}

// Append appends the frames of m under a name: its own, or "reply". The header
// frame is empty where there are no headers.
func Append(dst []byte, m *core.Message, name string) []byte {
	return append(AppendHead(dst, m, name), m.Payload...)
}

// AppendHead appends what comes before the payload's bytes.
func AppendHead(dst []byte, m *core.Message, name string) []byte {
	dst = append(zmtp.AppendHead(dst, len(name), true), name...)
	dst = zmtp.AppendHead(dst, headersSize(m.Headers), true)
	for i := range m.Headers {
		if i > 0 {
			dst = append(dst, '\n')
		}
		dst = append(dst, m.Headers[i].Name...)
		dst = append(dst, separator...)
		dst = append(dst, m.Headers[i].Value...)
	}
	return zmtp.AppendHead(dst, len(m.Payload), false)
}
