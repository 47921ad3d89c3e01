// SPDX-License-Identifier: Apache-2.0

package packet_test

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/eclipse/paho.golang/packets"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// written is what the library writes.
func written(t *testing.T, p io.WriterTo) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := p.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// read is what the library reads.
func read[P packets.Packet](t *testing.T, b []byte) P {
	t.Helper()
	p, err := packets.ReadPacket(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return p.Content.(P)
}

func to[T any](v T) *T { return &v }

// The library reads what CONNECT says, will and all.
func TestAppendConnect(t *testing.T) {
	c := packet.ConnectParams{
		ClientID: "ls-1", CleanStart: true, KeepAlive: 60, Username: "me", Password: []byte{0, 0xFF},
		SessionExpiry: 3600, ReceiveMaximum: 1000, MaxPacket: mib, ResponseInformation: true,
		Will: &packet.Will{
			Topic: "gone/ls-1", Payload: []byte("bye"), QoS: 2, Retain: true,
			ContentType: "text/plain", Delay: 5, Expiry: 60,
		},
	}
	b, err := packet.AppendConnect(nil, &c)
	if err != nil {
		t.Fatal(err)
	}
	want := &packets.Connect{
		ProtocolName: "MQTT", ProtocolVersion: 5, ClientID: "ls-1", CleanStart: true, KeepAlive: 60,
		UsernameFlag: true, Username: "me", PasswordFlag: true, Password: []byte{0, 0xFF},
		Properties: &packets.Properties{
			SessionExpiryInterval: to[uint32](3600), ReceiveMaximum: to[uint16](1000),
			MaximumPacketSize: to[uint32](mib), RequestResponseInfo: to[byte](1),
		},
		WillFlag: true, WillTopic: "gone/ls-1", WillMessage: []byte("bye"), WillQOS: 2, WillRetain: true,
		WillProperties: &packets.Properties{
			PayloadFormat: to[byte](1), ContentType: "text/plain", WillDelayInterval: to[uint32](5), MessageExpiry: to[uint32](60),
		},
	}
	if diff := cmp.Diff(want, read[*packets.Connect](t, b)); diff != "" {
		t.Error(diff)
	}
	least, err := packet.AppendConnect(nil, &packet.ConnectParams{Password: []byte{}})
	if err != nil || string(least) != "\x10\x0f\x00\x04MQTT\x05\x40\x00\x00\x00\x00\x00\x00\x00" {
		t.Errorf("%x, %v", least, err)
	}
}

// What the library would cut off or servers end the connection for is refused by
// name, and nothing is appended.
func TestAppendConnectRefuses(t *testing.T) {
	long := strings.Repeat("x", packet.MaxString+1)
	for want, c := range map[string]packet.ConnectParams{
		"client identifier has 65536 bytes":      {ClientID: long},
		"client identifier is not UTF-8":         {ClientID: "\xff"},
		"client identifier has a null character": {ClientID: "a\x00"},
		"user name has 65536 bytes":              {Username: long},
		"password has 65536 bytes":               {Password: []byte(long)},
		"topic of the will is not UTF-8":         {Will: &packet.Will{Topic: "\xff"}},
		"content type of the will is not UTF-8":  {Will: &packet.Will{ContentType: "\xff"}},
		"payload of the will has 65536 bytes":    {Will: &packet.Will{Payload: []byte(long)}},
		"will has QoS 3":                         {Will: &packet.Will{QoS: 3}},
	} {
		b, err := packet.AppendConnect([]byte("before"), &c)
		if err == nil || !strings.Contains(err.Error(), want) || string(b) != "before" {
			t.Errorf("%s: %q, %v", want, b, err)
		}
	}
	if b, err := packet.AppendSubscribe([]byte("before"), 1, 0, []packet.Subscription{{Filter: "a"}, {Filter: long}}); err == nil || string(b) != "before" {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if b, err := packet.AppendUnsubscribe([]byte("before"), 1, []string{"a", long}); err == nil || string(b) != "before" {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// SUBSCRIBE and UNSUBSCRIBE say what they are to.
func TestAppendSubscribe(t *testing.T) {
	b, err := packet.AppendSubscribe([]byte("before"), 0x0102, 268_435_455, []packet.Subscription{
		{Filter: "$share/g/a", QoS: 1}, {Filter: "b/#", QoS: 2, NoLocal: true, RetainAsPublished: true, RetainHandling: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "before\x82\x1b\x01\x02\x05\x0b\xff\xff\xff\x7f" + str("$share/g/a") + "\x01" + str("b/#") + "\x2e"
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Error(diff)
	}
	if b, err = packet.AppendUnsubscribe(nil, 7, []string{"a", "b/#"}); err != nil || string(b) != "\xa2\x0b\x00\x07\x00"+str("a")+str("b/#") {
		t.Errorf("%x, %v", b, err)
	}
}

// What CONNACK says is read, and what it does not say is as the standard has it.
func TestParseConnack(t *testing.T) {
	for name, tt := range map[string]struct {
		in   packets.Connack
		want packet.Connack
	}{
		"nothing": {packets.Connack{}, packet.Connack{
			ReceiveMaximum: math.MaxUint16, MaximumQoS: 2, Retain: true, Wildcards: true, Identifiers: true, Shared: true,
		}},
		"everything": {
			packets.Connack{SessionPresent: true, Properties: &packets.Properties{
				ReceiveMaximum: to[uint16](20), MaximumQOS: to[byte](1), RetainAvailable: to[byte](0), WildcardSubAvailable: to[byte](0),
				SubIDAvailable: to[byte](0), SharedSubAvailable: to[byte](0), MaximumPacketSize: to[uint32](4096),
				SessionExpiryInterval: to[uint32](0), ServerKeepAlive: to[uint16](30), AssignedClientID: "auto-1", ResponseInfo: "replies/",
				ServerReference: "b.example:1883", ReasonString: "welcome", TopicAliasMaximum: to[uint16](10), User: []packets.User{{Key: "a", Value: "b"}},
			}},
			packet.Connack{
				SessionPresent: true, Reason: "welcome", ReceiveMaximum: 20, MaximumQoS: 1, MaxPacket: 4096, SetsSessionExpiry: true,
				KeepAlive: 30, SetsKeepAlive: true, ClientID: "auto-1", ResponseInformation: "replies/", ServerReference: "b.example:1883",
			},
		},
		"a refusal with a session, and QoS 2": {
			packets.Connack{SessionPresent: true, ReasonCode: packet.CodeMoved, Properties: &packets.Properties{MaximumQOS: to[byte](2)}},
			packet.Connack{
				Code: packet.CodeMoved, ReceiveMaximum: math.MaxUint16, MaximumQoS: 2, Retain: true, Wildcards: true, Identifiers: true, Shared: true,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.in.Properties == nil {
				tt.in.Properties = &packets.Properties{}
			}
			got, err := packet.ParseConnack(one(t, written(t, &tt.in)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// SUBACK, UNSUBACK and DISCONNECT are read, the shortest form included.
func TestParseControl(t *testing.T) {
	for body, want := range map[string]packet.Suback{
		"\x00\x07\x00\x00":                           {ID: 7, Codes: []byte{0}},
		"\x01\x02\x06\x1f" + str("why") + "\x01\x87": {ID: 0x0102, Codes: []byte{1, 0x87}, Reason: "why"},
	} {
		for _, typ := range []byte{packet.TypeSuback, packet.TypeUnsuback} {
			p := one(t, raw(typ, 0, body))
			got, err := packet.ParseSuback(p)
			if err != nil {
				t.Fatal(err)
			}
			clear(p.Body) // which lies in the reader's memory
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Error(diff)
			}
		}
	}
	for body, want := range map[string]packet.Disconnect{
		"":         {},
		"\x8b":     {Code: packet.CodeShuttingDown},
		"\x8e\x00": {Code: packet.CodeTakenOver},
		"\x9d\x0c\x1f" + str("so") + "\x1c" + str("else"): {Code: packet.CodeMoved, Reason: "so", ServerReference: "else"},
		"\x00\x05\x11\x00\x00\x00\x01":                    {},
	} {
		got, err := packet.ParseDisconnect(one(t, raw(packet.TypeDisconnect, 0, body)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// parse reads any control packet of a server.
func parse(p *packet.Packet) error {
	var err error
	switch p.Type {
	case packet.TypeConnack:
		_, err = packet.ParseConnack(p)
	case packet.TypeSuback, packet.TypeUnsuback:
		_, err = packet.ParseSuback(p)
	default:
		_, err = packet.ParseDisconnect(p)
	}
	return err
}

// The guard before the library refuses what it takes, or gives up on in words of
// its own: that is the reason for the guard (ADR 0111).
func TestControlGuard(t *testing.T) {
	big := strings.Repeat("\x26\x00\x00\x00\x00", 14_000)
	for name, tt := range map[string]struct {
		typ   byte
		body  string
		code  byte
		takes bool // the library
	}{
		"CONNACK of MQTT 3.1.1":            {packet.TypeConnack, "\x00\x01", packet.CodeVersion, false},
		"CONNACK cut off":                  {packet.TypeConnack, "\x00", packet.CodeMalformed, false},
		"CONNACK with flags":               {packet.TypeConnack, "\x02\x00\x00", packet.CodeMalformed, true},
		"CONNACK that says neither":        {packet.TypeConnack, "\x00\x01\x00", packet.CodeProtocolError, true},
		"properties longer than a packet":  {packet.TypeConnack, "\x00\x00\x09\x21\x00\x01", packet.CodeMalformed, true},
		"bytes behind the end":             {packet.TypeConnack, "\x00\x00\x00\x00", packet.CodeMalformed, true},
		"property twice":                   {packet.TypeConnack, "\x00\x00\x06\x21\x00\x01\x21\x00\x02", packet.CodeProtocolError, true},
		"receive maximum 0":                {packet.TypeConnack, "\x00\x00\x03\x21\x00\x00", packet.CodeProtocolError, true},
		"maximum packet size 0":            {packet.TypeConnack, "\x00\x00\x05\x27\x00\x00\x00\x00", packet.CodeProtocolError, true},
		"retain available 2":               {packet.TypeConnack, "\x00\x00\x02\x25\x02", packet.CodeProtocolError, true},
		"property of PUBLISH":              {packet.TypeConnack, "\x00\x00\x02\x01\x01", packet.CodeProtocolError, false},
		"unknown property":                 {packet.TypeConnack, "\x00\x00\x02\x7f\x01", packet.CodeMalformed, false},
		"length of six bytes":              {packet.TypeConnack, "\x00\x00\x80\x80\x80\x80\x80\x00", packet.CodeMalformed, true},
		"property of half a string":        {packet.TypeConnack, "\x00\x00\x03\x1f\x00\x09", packet.CodeMalformed, false},
		"more user properties than enough": {packet.TypeConnack, "\x00\x00\xf0\xa2\x04" + big, packet.CodeTooLarge, true},
		"SUBACK of no code":                {packet.TypeSuback, "\x00\x01\x00", packet.CodeProtocolError, true},
		"SUBACK of identifier 0":           {packet.TypeSuback, "\x00\x00\x00\x00", packet.CodeMalformed, true},
		"UNSUBACK cut off":                 {packet.TypeUnsuback, "\x00", packet.CodeMalformed, false},
		"DISCONNECT cut off":               {packet.TypeDisconnect, "\x00\x05\x1f\x00", packet.CodeMalformed, false},
		"DISCONNECT with bytes behind it":  {packet.TypeDisconnect, "\x00\x00\x00", packet.CodeMalformed, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := raw(tt.typ, 0, tt.body)
			if err := parse(one(t, b)); code(err) != tt.code {
				t.Errorf("error %v, want code 0x%02X", err, tt.code)
			}
			if _, err := packets.ReadPacket(bytes.NewReader(b)); (err == nil) != tt.takes {
				t.Errorf("the library says %v, want that it takes it: %v", err, tt.takes)
			}
		})
	}
	t.Run("DISCONNECT without a body", func(t *testing.T) {
		if _, err := packets.ReadPacket(strings.NewReader("\xe0\x00")); err == nil {
			t.Error("the library reads the shortest form now")
		}
	})
	t.Run("will that the library writes", func(t *testing.T) {
		b := written(t, &packets.Connect{WillFlag: true, WillProperties: &packets.Properties{ContentType: "text/plain", MessageExpiry: to[uint32](1)}})
		if bytes.Contains(b, []byte("text/plain")) {
			t.Error("the library writes the content type of a will now")
		}
	})
}

// A panic of the library is a packet that cannot be read.
func TestGuardedPanic(t *testing.T) {
	err := packet.Guarded(packet.TypeConnack, func() error { panic("index out of range") })
	if code(err) != packet.CodeMalformed || !strings.Contains(err.Error(), "CONNACK: the library cannot read it: index out of range") {
		t.Errorf("error %v", err)
	}
}
