// SPDX-License-Identifier: Apache-2.0

package packet_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// Acks are read in each of their three lengths, whatever code they have.
func TestParseAck(t *testing.T) {
	for body, want := range map[string]packet.Ack{
		"\x01\x02":                           {ID: 0x0102},
		"\x00\x01\x10":                       {ID: 1, Code: packet.CodeNoSubscribers},
		"\x00\x01\x87\x00":                   {ID: 1, Code: packet.CodeNotAuthorized},
		"\x00\x01\xee":                       {ID: 1, Code: 0xEE},
		"\x00\x01\x97\x06\x1f" + str("no\n"): {ID: 1, Code: packet.CodeQuota, Reason: "no"},
		"\x00\x01\x97\x07\x1f" + str("a\xffb\x00"):                       {ID: 1, Code: packet.CodeQuota, Reason: "a\uFFFDb"},
		"\x00\x01\x97\x0b\x26" + str("a") + str("b") + "\x1f" + str("c"): {ID: 1, Code: packet.CodeQuota, Reason: "c"},
	} {
		for typ, flags := range map[byte]byte{packet.TypePuback: 0, packet.TypePubrec: 0, packet.TypePubrel: 2, packet.TypePubcomp: 0} {
			got := packet.Ack{ID: 7, Code: 7, Reason: "before"}
			if err := packet.ParseAck(one(t, raw(typ, flags, body)), &got); err != nil || got != want {
				t.Errorf("%x: %+v, %v", body, got, err)
			}
		}
	}
}

// An ack that is none ends the connection.
func TestParseAckRefuses(t *testing.T) {
	for body, want := range map[string]byte{
		"":                             packet.CodeMalformed,
		"\x01":                         packet.CodeMalformed,
		"\x00\x00":                     packet.CodeMalformed,
		"\x00\x01\x00\x01":             packet.CodeMalformed,
		"\x00\x01\x00\x00\x00":         packet.CodeMalformed,
		"\x00\x01\x00\xff":             packet.CodeMalformed,
		"\x00\x01\x00\x02\x7f\x00":     packet.CodeMalformed,
		"\x00\x01\x00\x03\x1f\x00\x05": packet.CodeMalformed,
		"\x00\x01\x00\x02\x01\x00":     packet.CodeProtocolError,
		"\x00\x01\x00\x06\x1f\x00\x00\x1f\x00\x00": packet.CodeProtocolError,
	} {
		if err := packet.ParseAck(one(t, raw(packet.TypePuback, 0, body)), &packet.Ack{}); code(err) != want {
			t.Errorf("%x: %v", body, err)
		}
	}
}

// What a server says is kept as far as people read it.
func TestReasonIsShort(t *testing.T) {
	says := "\x1f" + str(strings.Repeat("é", 20_000))
	body := "\x00\x01\x97" + string([]byte{byte(len(says)) | 0x80, byte(len(says)>>7) | 0x80, byte(len(says) >> 14)}) + says
	var a packet.Ack
	if err := packet.ParseAck(one(t, raw(packet.TypePuback, 0, body)), &a); err != nil || a.Reason != strings.Repeat("é", 128) {
		t.Errorf("%q, %v", a.Reason, err)
	}
}

// Acks and pings are written in the shortest form, and read back.
func TestAppendAck(t *testing.T) {
	for want, got := range map[string][]byte{
		"40020102":   packet.AppendAck(nil, packet.TypePuback, 0x0102, packet.CodeSuccess),
		"500200ff":   packet.AppendAck(nil, packet.TypePubrec, 0xFF, packet.CodeSuccess),
		"6203ff0092": packet.AppendAck(nil, packet.TypePubrel, 0xFF00, packet.CodeIDNotFound),
		"7003000192": packet.AppendAck(nil, packet.TypePubcomp, 1, packet.CodeIDNotFound),
		"c000":       packet.AppendPing(nil),
		"e000":       packet.AppendDisconnect(nil, packet.CodeSuccess),
		"e00182":     packet.AppendDisconnect(nil, packet.CodeProtocolError),
	} {
		if text := fmt.Sprintf("%x", got); text != want {
			t.Errorf("%s, want %s", text, want)
		}
		one(t, got)
	}
}

// Each code has the standard's words.
func TestWord(t *testing.T) {
	for _, tt := range []struct {
		typ, code byte
		want      string
	}{
		{packet.TypeConnack, 0x00, "success (0x00)"},
		{packet.TypeDisconnect, 0x00, "normal disconnection (0x00)"},
		{packet.TypeSuback, 0x00, "granted QoS 0 (0x00)"},
		{packet.TypeSuback, 0x02, "granted QoS 2 (0x02)"},
		{packet.TypePuback, 0x10, "no matching subscribers (0x10)"},
		{packet.TypeUnsuback, 0x11, "no subscription existed (0x11)"},
		{packet.TypeConnack, 0x87, "not authorized (0x87)"},
		{packet.TypeDisconnect, 0x8E, "session taken over (0x8E)"},
		{packet.TypePubcomp, 0x92, "packet identifier not found (0x92)"},
		{packet.TypePuback, 0x97, "quota exceeded (0x97)"},
		{packet.TypeDisconnect, 0x98, "administrative action (0x98)"},
		{packet.TypeConnack, 0x9F, "connection rate exceeded (0x9F)"},
		{packet.TypeSuback, 0xA2, "wildcard subscriptions not supported (0xA2)"},
		{packet.TypeSuback, 0xA3, "unknown reason (0xA3)"},
		{packet.TypeSuback, 0x7F, "unknown reason (0x7F)"},
	} {
		if got := packet.Word(tt.typ, tt.code); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	for typ, want := range map[byte]string{0: "reserved type 0", 3: "PUBLISH", 15: "AUTH", 16: "type 16"} {
		if got := packet.Name(typ); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
