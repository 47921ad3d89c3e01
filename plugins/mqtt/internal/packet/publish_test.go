// SPDX-License-Identifier: Apache-2.0

package packet_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet/packettest"
)

// Everything that a PUBLISH may have is read.
func TestParsePublish(t *testing.T) {
	props := "\x01\x01" + "\x02\x00\x00\x00\x3c" + "\x0b\x05" + "\x26" + str("a") + str("b") + "\x0b\x80\x01" + "\x03" + str("text/plain") +
		"\x08" + str("replies") + "\x09" + str("\x00\xff") + "\x26" + str("a") + str("c") + "\x0b\x05"
	b := raw(packet.TypePublish, 0x0D, str("a/b")+"\x01\x02"+string([]byte{byte(len(props))})+props+"payload")
	var got packet.Publish
	if err := packet.ParsePublish(one(t, b), &got); err != nil {
		t.Fatal(err)
	}
	want := packet.Publish{
		QoS: 2, Dup: true, Retain: true, ID: 0x0102,
		Topic: []byte("a/b"), Properties: []byte(props), Payload: []byte("payload"),
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(packet.Publish{})); diff != "" {
		t.Error(diff)
	}
	if ids := got.Identifiers([]uint32{9}); !slices.Equal(ids, []uint32{9, 5, 128, 5}) {
		t.Errorf("identifiers %v", ids)
	}
	if seconds, ok := got.Expiry(); !ok || seconds != 60 {
		t.Errorf("expiry %d, %v", seconds, ok)
	}
	if got.Users() != 2 || !got.Has(packet.PropContentType) || got.Has(packet.PropTopicAlias) {
		t.Errorf("%+v", got)
	}
	if again := packettest.Append(nil, &got); !bytes.Equal(again, b) {
		t.Errorf("written again %x, was %x", again, b)
	}
	var ids []string
	for rest, ok := got.Properties, true; ok; {
		var p packet.Property
		if p, rest, ok = packet.CutProperty(rest); ok {
			ids = append(ids, string([]byte{p.ID}))
		}
	}
	if list := strings.Join(ids, ""); list != "\x01\x02\x0b\x26\x0b\x03\x08\x09\x26\x0b" {
		t.Errorf("properties %x", list)
	}
}

// What is before in the same Publish does not stay there.
func TestParsePublishForgets(t *testing.T) {
	var p packet.Publish
	for range 2 {
		for _, props := range []string{"\x07\x0b\x05\x02\x00\x00\x00\x01", "\x00"} {
			if err := packet.ParsePublish(one(t, raw(packet.TypePublish, 0, str("a")+props)), &p); err != nil {
				t.Fatal(err)
			}
		}
		if _, ok := p.Expiry(); ok || len(p.Identifiers(nil)) > 0 || len(p.Payload) > 0 || p.Payload == nil {
			t.Errorf("%+v", p)
		}
	}
}

// What a PUBLISH must not be ends the connection, with the standard's code.
func TestParsePublishRefuses(t *testing.T) {
	block := func(b string) string { return str("a") + string([]byte{byte(len(b))}) + b }
	for name, tt := range map[string]struct {
		flags byte
		body  string
		code  byte
	}{
		"empty":                     {0, "", packet.CodeMalformed},
		"QoS 3":                     {6, block(""), packet.CodeMalformed},
		"DUP at QoS 0":              {8, block(""), packet.CodeMalformed},
		"topic cut off":             {0, "\x00\x05abcd", packet.CodeMalformed},
		"no topic":                  {0, "\x00\x00\x00", packet.CodeProtocolError},
		"topic with +":              {0, str("a/+") + "\x00", packet.CodeMalformed},
		"topic with #":              {0, str("#") + "\x00", packet.CodeMalformed},
		"topic not UTF-8":           {0, str("a\xff") + "\x00", packet.CodeMalformed},
		"topic with a surrogate":    {0, str("\xed\xa0\x80") + "\x00", packet.CodeMalformed},
		"topic with a null":         {0, str("a\x00") + "\x00", packet.CodeMalformed},
		"no packet identifier":      {2, str("a"), packet.CodeMalformed},
		"half a packet identifier":  {2, str("a") + "\x01", packet.CodeMalformed},
		"packet identifier 0":       {2, str("a") + "\x00\x00\x00", packet.CodeMalformed},
		"no properties":             {0, str("a"), packet.CodeMalformed},
		"properties too long":       {0, str("a") + "\x01", packet.CodeMalformed},
		"properties of no length":   {0, str("a") + "\xff\xff\xff\xff\x7f", packet.CodeMalformed},
		"unknown property":          {0, block("\x7e\x00"), packet.CodeMalformed},
		"unknown property 0xFF":     {0, block("\xff\x00"), packet.CodeMalformed},
		"property of CONNACK":       {0, block("\x21\x00\x01"), packet.CodeProtocolError},
		"property of CONNECT":       {0, block("\x18\x00\x00\x00\x01"), packet.CodeProtocolError},
		"topic alias":               {0, block("\x23\x00\x01"), packet.CodeTopicAlias},
		"format 2":                  {0, block("\x01\x02"), packet.CodeProtocolError},
		"format twice":              {0, block("\x01\x00\x01\x00"), packet.CodeProtocolError},
		"expiry twice":              {0, block("\x02\x00\x00\x00\x01\x02\x00\x00\x00\x01"), packet.CodeProtocolError},
		"content type twice":        {0, block("\x03" + str("a") + "\x03" + str("a")), packet.CodeProtocolError},
		"response topic twice":      {0, block("\x08" + str("a") + "\x08" + str("a")), packet.CodeProtocolError},
		"correlation data twice":    {0, block("\x09" + str("a") + "\x09" + str("a")), packet.CodeProtocolError},
		"identifier 0":              {0, block("\x0b\x00"), packet.CodeProtocolError},
		"identifier of five bytes":  {0, block("\x0b\xff\xff\xff\xff\x01"), packet.CodeMalformed},
		"identifier cut off":        {0, block("\x0b\xff"), packet.CodeMalformed},
		"expiry cut off":            {0, block("\x02\x00\x00\x00"), packet.CodeMalformed},
		"user property of no value": {0, block("\x26" + str("a")), packet.CodeMalformed},
		"user property cut off":     {0, block("\x26" + str("a") + "\x00\x02b"), packet.CodeMalformed},
		"content type cut off":      {0, block("\x03\x00"), packet.CodeMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			var p packet.Publish
			err := packet.ParsePublish(one(t, raw(packet.TypePublish, tt.flags, tt.body)), &p)
			if got := code(err); got != tt.code {
				t.Errorf("code 0x%02X, %v", got, err)
			}
		})
	}
	t.Run("identifiers without end", func(t *testing.T) {
		props := strings.Repeat("\x0b\x01", 1<<16+1)
		b := packettest.Append(nil, &packet.Publish{Topic: []byte("a"), Properties: []byte(props)})
		if err := packet.ParsePublish(one(t, b), &packet.Publish{}); code(err) != packet.CodeProtocolError {
			t.Errorf("error %v", err)
		}
	})
}

// A PUBLISH that is cut off anywhere within its head is refused, wherever its
// length says it ends.
func TestParsePublishTruncations(t *testing.T) {
	props := "\x01\x01\x02\x00\x00\x00\x3c\x0b\x05\x26" + str("a") + str("b") + "\x03" + str("text/plain") + "\x08" + str("r") + "\x09" + str("c")
	body := str("a/b") + "\x01\x02" + string([]byte{byte(len(props))}) + props
	for n := range body {
		if err := packet.ParsePublish(one(t, raw(packet.TypePublish, 2, body[:n])), &packet.Publish{}); code(err) != packet.CodeMalformed {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if err := packet.ParsePublish(one(t, raw(packet.TypePublish, 2, body)), &packet.Publish{}); err != nil {
		t.Error(err)
	}
}

// What is written is read as it was, and its size was known before; its lengths are
// about those from which one takes another byte.
func TestPublishProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		qos := rapid.ByteRange(0, 2).Draw(t, "qos")
		want := packet.Publish{
			QoS: qos, Dup: qos > 0 && rapid.Bool().Draw(t, "dup"), Retain: rapid.Bool().Draw(t, "retain"),
			Topic:      []byte(rapid.StringMatching(`[a-zé/$ ]{1,200}`).Draw(t, "topic")),
			Properties: []byte(strings.Repeat("\x26"+str("name")+str("value"), rapid.IntRange(0, 400).Draw(t, "users"))),
			Payload:    bytes.Repeat([]byte{7}, rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(16_000, 17_000), rapid.IntRange(2_090_000, 2_100_000)).Draw(t, "payload")),
		}
		if qos > 0 {
			want.ID = rapid.Uint16Min(1).Draw(t, "id")
		}
		b := packettest.Append([]byte("before"), &want)[len("before"):]
		h := packet.Head{QoS: want.QoS, Topic: string(want.Topic)}
		if n := packet.PublishSize(&h, len(want.Properties), len(want.Payload)); n != len(b) {
			t.Fatalf("%d bytes, and said were %d", len(b), n)
		}
		r := packet.NewReader(bytes.NewReader(b), 0)
		var p packet.Packet
		var got packet.Publish
		if err := next(r, &p); err != nil {
			t.Fatal(err)
		}
		if err := packet.ParsePublish(&p, &got); err != nil {
			t.Fatal(err)
		}
		if got.QoS != want.QoS || got.Dup != want.Dup || got.Retain != want.Retain || got.ID != want.ID || !bytes.Equal(got.Topic, want.Topic) ||
			!bytes.Equal(got.Properties, want.Properties) || !bytes.Equal(got.Payload, want.Payload) {
			t.Fatalf("%d bytes were read as another packet", len(b))
		}
	})
}
