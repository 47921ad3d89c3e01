// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/message"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet/packettest"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/topic"
)

// Whatever properties a PUBLISH has: decoding it does not panic, tells names that
// are text, and what it tells can be published again and is the same then.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("a/b"), []byte(prop(user, "a", "1")+prop(contentType, "text/plain")+prop(responseTopic, "r")+prop(correlation, "\xff")), byte(1))
	f.Add([]byte("a"), []byte(prop(user, "Content-Type", "a")+prop(user, "content-type", "b")+prop(user, "mqtt-retained", "x")), byte(8))
	f.Add([]byte("a"), []byte(prop(user, "a\t", "\xff")+prop(user, "reply-to", "#")), byte(9))
	f.Fuzz(func(t *testing.T, name, properties []byte, flags byte) {
		b := packettest.Append(nil, &packet.Publish{
			QoS: 1, ID: 1, Dup: flags&8 != 0, Retain: flags&1 != 0, Topic: name[:min(len(name), packet.MaxString)],
			Properties: properties, Payload: []byte("p"),
		})
		var p packet.Packet
		var in packet.Publish
		r := packet.NewReader(bytes.NewReader(b), 0)
		for {
			if ok, err := r.Next(&p); err != nil {
				t.Fatal(err)
			} else if ok {
				break
			}
			if err := r.Fill(); err != nil {
				t.Fatal(err)
			}
		}
		if packet.ParsePublish(&p, &in) != nil {
			return
		}
		var d message.Decoder
		var first, second core.Message
		fault := d.Decode(&in, &first)
		if fault != nil && fault.Message == "" || string(first.Payload) != "p" {
			t.Errorf("payload %q, fault %v", first.Payload, fault)
		}
		for _, h := range first.Headers {
			if !utf8.ValidString(h.Name) {
				t.Errorf("name %q", h.Name)
			}
		}
		if topic.CheckDelivered(first.Name) != nil { // one that begins with $share/
			return
		}
		if f := message.CheckCopy(&first); f != nil {
			t.Fatalf("%v cannot be published: %v", first.Headers, f)
		}
		again := message.Append(nil, &first, &message.Params{QoS: 1, ID: 1})
		if n := message.Size(&first, &message.Params{QoS: 1, ID: 1}); n != len(again) {
			t.Fatalf("%d bytes, and said were %d", len(again), n)
		}
		if f := d.Decode(publish(t, again), &second); f != nil {
			t.Fatal(f)
		}
		first.Headers = first.Headers.Without(message.Retained, message.Redelivered)
		for i, h := range first.Headers {
			switch name := strings.ToLower(h.Name); name {
			case "content-type", "reply-to", "correlation-id": // a property has no case
				first.Headers[i].Name = name
			}
		}
		if diff := cmp.Diff(first, second, alike); diff != "" {
			t.Error(diff)
		}
	})
}
