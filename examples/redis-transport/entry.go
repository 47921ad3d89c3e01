// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
)

// A message is an entry of a stream: one field for the payload, then one for each
// header, in order. Entries may repeat a field, and take any bytes.
const (
	payloadField = "p"
	headerPrefix = "h:"
)

// firstTime is before the first stream there was. Ids below it were given by
// hand and are no times.
const firstTime = 1483228800000 // 2017, in ms

// fieldsOf returns m as the fields of XADD.
func fieldsOf(m core.Message) []any {
	fields := make([]any, 0, 2+2*len(m.Headers))
	fields = append(fields, payloadField, m.Payload)
	for _, h := range m.Headers {
		fields = append(fields, headerPrefix+h.Name, h.Value)
	}
	return fields
}

// messageOf reads an entry. What others have written, and is no message, comes
// with a fault and with its fields as headers where they can be.
func messageOf(stream string, fields []string) (core.Message, *core.Fault) {
	m := core.Message{Name: stream}
	var fault *core.Fault
	for i := 0; i+1 < len(fields); i += 2 {
		field, value := fields[i], []byte(fields[i+1])
		name, isHeader := strings.CutPrefix(field, headerPrefix)
		switch {
		case field == payloadField && m.Payload == nil:
			m.Payload = value
		case !utf8.ValidString(name):
			fault = undecodable("field " + strconv.Quote(field) + " is not UTF-8")
		case isHeader:
			m.Headers = append(m.Headers, core.Header{Name: name, Value: value})
		default:
			fault = undecodable("field " + strconv.Quote(field) + " is neither payload nor header")
			m.Headers = append(m.Headers, core.Header{Name: field, Value: value})
		}
	}
	if m.Payload == nil && fault == nil {
		fault = undecodable("there is no payload")
	}
	return m, fault
}

func undecodable(why string) *core.Fault {
	return &core.Fault{
		Code:    core.FaultInvalid,
		Message: "read entry: " + why + "; a message has its payload in field p and its headers in fields h:NAME",
	}
}

// timeOf returns when an entry was added by the server's clock, which the first
// half of its id is; zero where somebody chose the id.
func timeOf(id string) time.Time {
	first, _, _ := strings.Cut(id, "-")
	ms, err := strconv.ParseInt(first, 10, 64)
	if err != nil || ms < firstTime {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
