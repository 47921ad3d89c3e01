// SPDX-License-Identifier: Apache-2.0

package packet_test

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/eclipse/paho.golang/packets"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet/packettest"
)

// Whatever a server sends is read the same way however it comes in pieces, without
// a panic, and without memory beyond what has arrived.
func FuzzReader(f *testing.F) {
	f.Add(slices.Concat(raw(packet.TypeConnack, 0, "\x00\x00\x00"), raw(packet.TypePublish, 2, strings.Repeat("p", 300)), raw(packet.TypePingresp, 0, "")), []byte{0, 3})
	f.Add([]byte("\x30\xff\xff\xff\x7f"), []byte{})
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), []byte{0})
	f.Fuzz(func(t *testing.T, data, sizes []byte) {
		const most = 1 << 16
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		want := told(packet.NewReader(bytes.NewReader(data), most))
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 2*mib+uint64(100*len(data)) {
			t.Errorf("%d bytes were taken for %d", got, len(data))
		}
		r := packet.NewReader(&pieces{rest: data, sizes: sizes}, most)
		if diff := cmp.Diff(want, told(r)); diff != "" {
			t.Error(diff)
		}
		r.Close()
		if end := want[len(want)-1]; end != "EOF" && end != "unexpected EOF" && !strings.HasPrefix(end, "MQTT: ") {
			t.Errorf("ends with %q", end)
		}
	})
}

// Whatever stands in a PUBLISH: it is refused with a code, or written again as it
// was and read by the library to the same.
func FuzzPublish(f *testing.F) {
	f.Add(byte(0x0D), []byte(str("a/b")+"\x01\x02\x0b\x01\x01\x0b\x05\x26"+str("a")+str("b")+"payload"))
	f.Add(byte(0), []byte(str("a")+"\x0d\x02\x00\x00\x00\x3c\x03"+str("t")+"\x09"+str("c")))
	f.Add(byte(2), []byte(str("é")+"\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, flags byte, body []byte) {
		b := raw(packet.TypePublish, flags&0x0F, string(body))
		var p packet.Publish
		err := packet.ParsePublish(one(t, b), &p)
		if err != nil {
			if c := code(err); c < packet.CodeMalformed {
				t.Fatalf("code 0x%02X, %v", c, err)
			}
			return
		}
		if again := packettest.Append(nil, &p); !bytes.Equal(again, b) {
			t.Fatalf("%x was written again as %x", b, again)
		}
		in, err := packets.ReadPacket(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("the library says %v", err)
		}
		agree(t, in.Content.(*packets.Publish), &p)
	})
}

// agree compares what the library and we read of one PUBLISH.
func agree(t *testing.T, theirs *packets.Publish, ours *packet.Publish) {
	t.Helper()
	type read struct {
		QoS          byte
		Dup, Retain  bool
		ID           uint16
		Topic, Body  string
		Users        []packets.User
		Type, Reply  string
		Correlation  string
		Expiry       uint32
		Identifier   uint32
		Format       int
		Unidentified bool
	}
	a := read{
		QoS: theirs.QoS, Dup: theirs.Duplicate, Retain: theirs.Retain, ID: theirs.PacketID, Topic: theirs.Topic, Body: string(theirs.Payload),
		Users: theirs.Properties.User, Type: theirs.Properties.ContentType, Reply: theirs.Properties.ResponseTopic,
		Correlation: string(theirs.Properties.CorrelationData), Unidentified: theirs.Properties.SubscriptionIdentifier == nil,
	}
	if e := theirs.Properties.MessageExpiry; e != nil {
		a.Expiry = *e
	}
	if i := theirs.Properties.SubscriptionIdentifier; i != nil {
		a.Identifier = uint32(*i)
	}
	if i := theirs.Properties.PayloadFormat; i != nil {
		a.Format = int(*i)
	}
	b := read{QoS: ours.QoS, Dup: ours.Dup, Retain: ours.Retain, ID: ours.ID, Topic: string(ours.Topic), Body: string(ours.Payload)}
	b.Expiry, _ = ours.Expiry()
	ids := ours.Identifiers(nil)
	if b.Unidentified = len(ids) == 0; !b.Unidentified {
		b.Identifier = ids[len(ids)-1] // the library keeps the last alone
	}
	for rest, ok := ours.Properties, true; ok; {
		var p packet.Property
		if p, rest, ok = packet.CutProperty(rest); !ok {
			break
		}
		switch p.ID {
		case packet.PropUser:
			b.Users = append(b.Users, packets.User{Key: string(p.Name), Value: string(p.Value)})
		case packet.PropContentType:
			b.Type = string(p.Value)
		case packet.PropResponseTopic:
			b.Reply = string(p.Value)
		case packet.PropCorrelationData:
			b.Correlation = string(p.Value)
		case packet.PropPayloadFormat:
			b.Format = int(p.Number)
		}
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("the library reads another packet: %s", diff)
	}
	if ours.Users() != len(b.Users) {
		t.Errorf("%d user properties, and there are %d", ours.Users(), len(b.Users))
	}
}

// Whatever stands in an ack or a control packet: it is refused with a code, or the
// library reads the same; nothing panics, and little memory is taken.
func FuzzControl(f *testing.F) {
	f.Add(packet.TypeConnack, []byte("\x01\x00\x0a\x21\x00\x14\x22\x00\x0a\x24\x01\x29\x01"))
	f.Add(packet.TypeConnack, []byte("\x00\x87\x06\x1f"+str("no")))
	f.Add(packet.TypeSuback, []byte("\x00\x01\x00\x01\x87"))
	f.Add(packet.TypeUnsuback, []byte("\x00\x01\x00\x11"))
	f.Add(packet.TypeDisconnect, []byte("\x9d\x06\x1c"+str("else")))
	f.Add(packet.TypePuback, []byte("\x00\x01\x10\x00"))
	f.Add(packet.TypePubrel, []byte("\x00\x01\x92\x06\x1f"+str("no")))
	f.Fuzz(func(t *testing.T, typ byte, body []byte) {
		switch typ {
		case packet.TypePuback, packet.TypePubrec, packet.TypePubrel, packet.TypePubcomp:
			fuzzAck(t, typ, body)
		case packet.TypeConnack, packet.TypeSuback, packet.TypeUnsuback, packet.TypeDisconnect:
			fuzzControl(t, typ, body)
		}
	})
}

func fuzzAck(t *testing.T, typ byte, body []byte) {
	flags := byte(0)
	if typ == packet.TypePubrel {
		flags = 2
	}
	var a packet.Ack
	if err := packet.ParseAck(one(t, raw(typ, flags, string(body))), &a); err != nil {
		if c := code(err); c < packet.CodeMalformed {
			t.Errorf("code 0x%02X, %v", c, err)
		}
		return
	}
	if got := one(t, packet.AppendAck(nil, typ, a.ID, a.Code)); !bytes.HasPrefix(body, got.Body) {
		t.Errorf("%x was written again as %x", body, got.Body)
	}
}

func fuzzControl(t *testing.T, typ byte, body []byte) {
	b := raw(typ, 0, string(body))
	p := one(t, b)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := parse(p)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > mib+uint64(100*len(body)) {
		t.Errorf("%d bytes were taken for %d", got, len(body))
	}
	if err != nil {
		if c := code(err); c < packet.CodeMalformed {
			t.Errorf("code 0x%02X, %v", c, err)
		}
		return
	}
	if len(body) == 0 {
		return // the library does not read the shortest DISCONNECT
	}
	in, err := packets.ReadPacket(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("the library says %v", err)
	}
	if theirs, ok := in.Content.(*packets.Suback); ok {
		if ours, _ := packet.ParseSuback(p); ours.ID != theirs.PacketID || !bytes.Equal(ours.Codes, theirs.Reasons) {
			t.Errorf("%+v, the library says %+v", ours, theirs)
		}
	}
}
