// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/poison"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/message"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet/packettest"
)

// The properties that headers are.
const (
	format, expiry, contentType, responseTopic, correlation, identifier, user = packet.PropPayloadFormat, packet.PropExpiry, packet.PropContentType,
		packet.PropResponseTopic, packet.PropCorrelationData, packet.PropIdentifier, packet.PropUser
)

// Headers come in the order of their properties, with case and repeats (D25); what
// is no header is left out.
func TestDecode(t *testing.T) {
	for name, tt := range map[string]struct {
		properties string
		want       core.Headers
	}{
		"nothing":     {"", nil},
		"no headers":  {string([]byte{format, 1, expiry, 0, 0, 0, 60, identifier, 5}), nil},
		"each":        {prop(user, "a", "1") + prop(contentType, "text/plain") + prop(responseTopic, "r/1") + prop(correlation, "\x00\xff"), headers("a", "1", "content-type", "text/plain", "reply-to", "r/1", "correlation-id", "\x00\xff")},
		"their order": {prop(correlation, "c") + prop(user, "a", "1") + prop(contentType, "") + prop(user, "b", ""), headers("correlation-id", "c", "a", "1", "content-type", "", "b", "")},
		"repeats":     {prop(user, "X-A", "1") + prop(user, "x-a", "2") + prop(user, "b", "") + prop(user, "X-A", "3") + prop(user, "X-A", "3"), headers("X-A", "1", "x-a", "2", "b", "", "X-A", "3", "X-A", "3")},
		"nameless":    {prop(user, "", "1") + prop(user, "", ""), headers("", "1", "", "")},
		"replies":     {prop(responseTopic, "a/#"), headers("reply-to", "a/#")},
		"controls":    {prop(user, "a\tb", "c\r\n\ufffe"), headers("a\tb", "c\r\n\ufffe")},

		"user property gives way":         {prop(user, "Content-Type", "a") + prop(contentType, "b"), headers("content-type", "b")},
		"it gives way before":             {prop(contentType, "b") + prop(user, "Content-Type", "a") + prop(user, "x", "y"), headers("content-type", "b", "x", "y")},
		"unreadable, it gives way":        {prop(contentType, "b") + prop(user, "Content-Type", "\xff"), headers("content-type", "b")},
		"user property in its place":      {prop(user, "x", "y") + prop(user, "Correlation-ID", "c") + prop(user, "z", ""), headers("x", "y", "Correlation-ID", "c", "z", "")},
		"of several the last":             {prop(user, "reply-to", "a") + prop(user, "x", "y") + prop(user, "Reply-To", "b"), headers("Reply-To", "b", "x", "y")},
		"our own are the server's to say": {prop(user, "mqtt-retained", "true") + prop(user, "MQTT-Redelivered", "true") + prop(user, "a", ""), headers("a", "")},
	} {
		t.Run(name, func(t *testing.T) {
			var d message.Decoder
			var memory message.Memory
			for range 3 { // the first time, from what is remembered, and in memory of its own
				var m core.Message
				if f := d.Decode(received(t, tt.properties), &m); f != nil {
					t.Fatal(f)
				}
				if diff := cmp.Diff(core.Message{Name: "a", Headers: tt.want, Payload: []byte("p")}, m, alike); diff != "" {
					t.Error(diff)
				}
				if cap(m.Headers) == len(m.Headers) {
					t.Error("no room for another header")
				}
				if f := message.CheckCopy(&m); f != nil {
					t.Errorf("a copy cannot be published: %v", f)
				}
				d.Use(&memory)
			}
		})
	}
}

// RETAIN and DUP are headers, where they are true.
func TestDecodeOwnHeaders(t *testing.T) {
	var d message.Decoder
	for _, tt := range []struct {
		retain, dup bool
		want        core.Headers
	}{
		{false, false, headers("a", "b")},
		{true, false, headers("a", "b", "mqtt-retained", "true")},
		{false, true, headers("a", "b", "mqtt-redelivered", "true")},
		{true, true, headers("a", "b", "mqtt-retained", "true", "mqtt-redelivered", "true")},
	} {
		p := publish(t, packettest.Append(nil, &packet.Publish{
			QoS: 1, ID: 1, Retain: tt.retain, Dup: tt.dup, Topic: []byte("t"),
			Properties: []byte(prop(user, "a", "b") + prop(user, "mqtt-retained", "x")),
		}))
		var m core.Message
		if f := d.Decode(p, &m); f != nil || !cmp.Equal(tt.want, m.Headers) {
			t.Errorf("%v, %v", m.Headers, f)
		}
		for i := range m.Headers { // nobody's value is another's
			m.Headers[i].Value = append(m.Headers[i].Value, "more"...)
		}
	}
}

// What cannot be read is told, with what can be had; the connection stays.
func TestDecodeUndecodable(t *testing.T) {
	for name, tt := range map[string]struct {
		properties string
		want       core.Headers
		words      string
		code       core.FaultCode
	}{
		"value not UTF-8":        {prop(user, "a", "1") + prop(user, "b", "\xff") + prop(user, "c", "3"), headers("a", "1", "c", "3"), `user property "b" is not UTF-8`, core.FaultInvalid},
		"name not UTF-8":         {prop(user, "\xff", "1"), nil, `name of a user property is not UTF-8, or has a null character: "\xff"`, core.FaultInvalid},
		"null in a value":        {prop(user, "b", "x\x00"), nil, `"x\x00"`, core.FaultInvalid},
		"null in a name":         {prop(user, "b\x00", "x"), nil, `"b\x00"`, core.FaultInvalid},
		"surrogate":              {prop(user, "b", "\xed\xa0\x80"), nil, "not UTF-8", core.FaultInvalid},
		"content type not UTF-8": {prop(contentType, "\xff") + prop(user, "a", "1"), headers("a", "1"), "property content-type is not UTF-8", core.FaultInvalid},
		"reply to no UTF-8":      {prop(responseTopic, "\xff"), nil, "property reply-to is not UTF-8", core.FaultInvalid},
		"the first is told":      {prop(user, "b", "\xff") + prop(user, "c", "\xfe"), nil, `"b"`, core.FaultInvalid},
		"too many":               {strings.Repeat(prop(user, "", ""), message.MaxHeaders+1), nil, "65537 user properties, the limit is 65536", core.FaultTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			var d message.Decoder
			var m core.Message
			f := d.Decode(received(t, tt.properties), &m)
			if f == nil || f.Code != tt.code || f.Transient || !strings.Contains(f.Message, tt.words) || !strings.Contains(f.Message, `topic "a"`) {
				t.Errorf("fault %v", f)
			}
			if diff := cmp.Diff(core.Message{Name: "a", Headers: tt.want, Payload: []byte("p")}, m, alike); diff != "" {
				t.Error(diff)
			}
			if f := message.CheckCopy(&m); f != nil {
				t.Errorf("what can be had cannot be published: %v", f)
			}
		})
	}
	t.Run("most", func(t *testing.T) {
		var d message.Decoder
		var m core.Message
		if f := d.Decode(received(t, strings.Repeat(prop(user, "", ""), message.MaxHeaders)), &m); f != nil || len(m.Headers) != message.MaxHeaders {
			t.Errorf("%d headers, %v", len(m.Headers), f)
		}
	})
}

// Names are remembered as they came, however long they are and whatever stood at
// their place before.
func TestDecodeNames(t *testing.T) {
	var d message.Decoder
	for round := range 3 {
		for i := range 300 {
			topic := strings.Repeat("t", i%90+1) + fmt.Sprint(i%7)
			name := strings.Repeat("n", i%70) + fmt.Sprint(i%11)
			b := packettest.Append(nil, &packet.Publish{Topic: []byte(topic), Properties: []byte(prop(user, "x", "y") + prop(user, name, "v"))})
			p := publish(t, b)
			var m core.Message
			f := d.Decode(p, &m)
			clear(p.Topic)
			clear(p.Properties)
			if f != nil || m.Name != topic || m.Headers[0].Name != "x" || m.Headers[1].Name != name {
				t.Fatalf("round %d: %q %v, %v", round, m.Name, m.Headers, f)
			}
		}
	}
}

// Lists that were handed out stay as they are until their memory is used again.
func TestDecoderKeeps(t *testing.T) {
	var d message.Decoder
	var memory message.Memory
	for round := range 5 {
		d.Use(&memory)
		var all []core.Message
		for i := range 200 * round {
			var m core.Message
			if f := d.Decode(received(t, strings.Repeat(prop(user, fmt.Sprintf("n%d", i%70), fmt.Sprintf("v%d", i)), 1+i%12)), &m); f != nil {
				t.Fatal(f)
			}
			m.Headers = append(m.Headers, core.Header{Name: "added"})
			all = append(all, m)
		}
		for i, m := range all {
			if len(m.Headers) != 2+i%12 || m.Headers.Value(fmt.Sprintf("n%d", i%70)) != fmt.Sprintf("v%d", i) || !m.Headers.Has("added") {
				t.Fatalf("message %d has become %v", i, m.Headers)
			}
		}
		memory.Spent()
		if poison.On && len(all) > 0 && all[len(all)-1].Headers[0].Name != "spent" {
			t.Error("memory given back is not poisoned")
		}
	}
}

// threeHeaders is a PUBLISH of 512 bytes with three headers.
func threeHeaders(t testing.TB) []byte {
	t.Helper()
	m := core.Message{
		Name: "devices/17/telemetry", Payload: bytes.Repeat([]byte("p"), 512),
		Headers: headers("content-type", "application/json", "x-tenant", "acme", "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
	}
	if f := message.Check(&m); f != nil {
		t.Fatal(f)
	}
	return message.Append(nil, &m, &message.Params{QoS: 1, ID: 7})
}

// Messages decode without memory of their own once there is some.
func TestDecoderAllocations(t *testing.T) {
	if poison.On {
		t.Skip("the race detector allocates by itself")
	}
	long := packettest.Append(nil, &packet.Publish{QoS: 1, ID: 1, Dup: true, Retain: true, Topic: bytes.Repeat([]byte("long/"), 40), Properties: []byte(prop(user, "a", "b"))})
	for name, b := range map[string][]byte{"three headers": threeHeaders(t), "long topic": long} {
		in := publish(t, b)
		body := bytes.Clone(b[len(b)-len(in.Payload):])
		var d message.Decoder
		var memory message.Memory
		got := testing.AllocsPerRun(100, func() {
			d.Use(&memory)
			for range 100 {
				var m core.Message
				if f := d.Decode(in, &m); f != nil || !bytes.Equal(m.Payload, body) {
					t.Fatal(f)
				}
			}
		})
		if got > 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}
