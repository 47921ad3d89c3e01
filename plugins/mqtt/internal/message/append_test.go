// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/message"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// What the reference publishes shows the same to a stranger: as mosquitto_sub
// printed it, line by line.
func TestSampleProperties(t *testing.T) {
	sample, err := os.ReadFile("testdata/properties.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, p := range []struct {
		qos     byte
		headers core.Headers
		payload string
	}{
		{0, nil, "q0"}, {1, nil, "q1"}, {2, nil, "q2"},
		{1, headers("content-type", "application/json", "x-tenant", "acme", "reply-to", "replies/1", "partition-key", "k1", "correlation-id", "c42"), "hdr"},
		{1, headers("content-type", "application/octet-stream"), "bin"},
	} {
		m := core.Message{Name: "dev/1/t", Headers: p.headers, Payload: []byte(p.payload)}
		b := message.Append(nil, &m, &message.Params{QoS: p.qos, ID: 1})
		in := byLibrary(t, b)
		format, users := "", []string{}
		if f := in.Properties.PayloadFormat; f != nil {
			format = fmt.Sprint(*f)
		}
		for _, u := range in.Properties.User {
			users = append(users, u.Key+":"+u.Value)
		}
		fmt.Fprintf(&got, "topic=%s qos=%d retain=0 len=%d fmtind=%s ct=%s resp=%s corr=%s mei= tid= userprops=[%s] payload=%s\n",
			in.Topic, in.QoS, len(in.Payload), format, in.Properties.ContentType, in.Properties.ResponseTopic,
			in.Properties.CorrelationData, strings.Join(users, " "), in.Payload)
	}
	if diff := cmp.Diff(string(sample), got.String()); diff != "" {
		t.Error(diff)
	}
}

// Without headers there are no properties at all.
func TestAppendWithoutHeaders(t *testing.T) {
	m := core.Message{Name: "t", Payload: []byte("p")}
	for want, p := range map[string]message.Params{
		"\x30\x05\x00\x01t\x00p":         {},
		"\x3d\x07\x00\x01t\x00\x07\x00p": {QoS: 2, Dup: true, Retain: true, ID: 7},
	} {
		if got := string(message.Append(nil, &m, &p)); got != want {
			t.Errorf("%x, want %x", got, want)
		}
	}
}

// The content type says what the payload format is, and an option beats the header.
func TestPayloadFormat(t *testing.T) {
	for media, want := range map[string]byte{
		"text/plain": 1, "TEXT/html": 1, "text/": 1, "application/json": 1, "Application/JSON; charset=utf-8": 1, " application/json ": 1,
		"application/cloudevents+json": 1, "image/svg+xml": 0, "application/octet-stream": 0, "application/jsonp": 0, "x/application/json": 0,
		"": 0, "text": 0, "json": 0, "+json": 1, "application/json5": 0, ";text/plain": 0,
	} {
		for i, p := range []message.Params{{}, {ContentType: []byte(media)}} {
			m := core.Message{Name: "t", Headers: headers("Content-Type", media)}
			if i > 0 {
				m.Headers = headers("x", "y", "content-type", "image/png")
			}
			in := byLibrary(t, message.Append(nil, &m, &p))
			if f := in.Properties.PayloadFormat; f == nil || *f != want || in.Properties.ContentType != media {
				t.Errorf("%q: format %v, content type %q", media, f, in.Properties.ContentType)
			}
		}
	}
}

// The headers that tell about one delivery are not published, and the expiry is no
// header.
func TestAppendLeavesOut(t *testing.T) {
	m := core.Message{Name: "t", Headers: headers("mqtt-retained", "true", "a", "b", "MQTT-Redelivered", "true")}
	b := message.Append(nil, &m, &message.Params{Expiry: 60, HasExpiry: true})
	if diff := cmp.Diff(headers("a", "b"), again(t, b).Headers); diff != "" {
		t.Error(diff)
	}
	if seconds, ok := publish(t, b).Expiry(); !ok || seconds != 60 {
		t.Errorf("expiry %d, %v", seconds, ok)
	}
	if _, ok := publish(t, message.Append(nil, &m, &message.Params{Expiry: 60})).Expiry(); ok {
		t.Error("an expiry, where there is none")
	}
}

// Headers that must not be sent, and names that are no topics, are refused before
// anything is written, naming the header (S-MQT-20, 3.4).
func TestCheck(t *testing.T) {
	long := strings.Repeat("x", packet.MaxString+1)
	for name, tt := range map[string]struct {
		m     core.Message
		code  core.FaultCode
		words string
		copy  core.FaultCode // of CheckCopy, 0 = it takes it
	}{
		"nothing but a topic":            {core.Message{Name: "a/b"}, 0, "", 0},
		"text of any script":             {core.Message{Name: "größe/日本", Headers: headers("größe", "日本", "", "", "a", "")}, 0, "", 0},
		"correlation of any bytes":       {core.Message{Name: "t", Headers: headers("correlation-id", "\x00\xff\n")}, 0, "", 0},
		"repeats":                        {core.Message{Name: "t", Headers: headers("a", "1", "A", "2", "a", "1")}, 0, "", 0},
		"own headers of any bytes":       {core.Message{Name: "t", Headers: headers("mqtt-retained", "\xff", "mqtt-retained", "true")}, 0, "", 0},
		"the longest":                    {core.Message{Name: "t", Headers: headers(long[1:], long[1:])}, 0, "", 0},
		"no topic":                       {core.Message{}, core.FaultInvalid, "is empty", core.FaultInvalid},
		"topic with a wildcard":          {core.Message{Name: "a/+"}, core.FaultInvalid, "wildcard '+'", core.FaultInvalid},
		"topic with a control character": {core.Message{Name: "a\n"}, core.FaultInvalid, "control character U+000A", 0},
		"topic too long":                 {core.Message{Name: long}, core.FaultInvalid, "65536 bytes", core.FaultInvalid},
		"name with a control character":  {core.Message{Name: "t", Headers: headers("a\tb", "1")}, core.FaultInvalid, `header "a\tb": the name has the control character U+0009`, 0},
		"value with a control character": {core.Message{Name: "t", Headers: headers("a", "1", "b", "x\ny")}, core.FaultInvalid, `header "b": the value has the control character U+000A`, 0},
		"value with a C1 control":        {core.Message{Name: "t", Headers: headers("b", "\u0085")}, core.FaultInvalid, "U+0085", 0},
		"value with DEL":                 {core.Message{Name: "t", Headers: headers("b", "\x7f")}, core.FaultInvalid, "U+007F", 0},
		"value with a non-character":     {core.Message{Name: "t", Headers: headers("b", "\ufdd0")}, core.FaultInvalid, "non-character U+FDD0", 0},
		"value with the last of a plane": {core.Message{Name: "t", Headers: headers("b", "é\U0001fffe")}, core.FaultInvalid, "non-character U+1FFFE", 0},
		"value with a null":              {core.Message{Name: "t", Headers: headers("b", "\x00")}, core.FaultInvalid, "null character", core.FaultInvalid},
		"value that is not UTF-8":        {core.Message{Name: "t", Headers: headers("b", "\xff")}, core.FaultInvalid, `header "b": the value is not UTF-8`, core.FaultInvalid},
		"name that is not UTF-8":         {core.Message{Name: "t", Headers: headers("\xff", "")}, core.FaultInvalid, `header "\xff": the name is not UTF-8`, core.FaultInvalid},
		"value too long":                 {core.Message{Name: "t", Headers: headers("b", long)}, core.FaultTooLarge, `header "b": 65536 bytes`, core.FaultTooLarge},
		"name too long":                  {core.Message{Name: "t", Headers: headers(long, "b")}, core.FaultTooLarge, "65536 bytes", core.FaultTooLarge},
		"correlation too long":           {core.Message{Name: "t", Headers: headers("correlation-id", long)}, core.FaultTooLarge, "65536 bytes", core.FaultTooLarge},
		"too many headers":               {core.Message{Name: "t", Headers: make(core.Headers, message.MaxHeaders+1)}, core.FaultTooLarge, "65537 headers", core.FaultTooLarge},
		"reply to a filter":              {core.Message{Name: "t", Headers: headers("Reply-To", "a/#")}, core.FaultInvalid, `header "Reply-To": "a/#" is no topic`, 0},
		"reply to nowhere":               {core.Message{Name: "t", Headers: headers("reply-to", "")}, core.FaultInvalid, "no topic", 0},
		"two content types":              {core.Message{Name: "t", Headers: headers("content-type", "a", "Content-Type", "b")}, core.FaultInvalid, `header "Content-Type" is there twice`, core.FaultInvalid},
		"two correlations":               {core.Message{Name: "t", Headers: headers("correlation-id", "a", "x", "y", "correlation-id", "a")}, core.FaultInvalid, `header "correlation-id" is there twice`, core.FaultInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			f := message.Check(&tt.m)
			if (f == nil) != (tt.code == 0) || f != nil && (f.Code != tt.code || f.Transient || !strings.Contains(f.Error(), tt.words) || f.Diagnostics[0].Fix == "") {
				t.Errorf("fault %v", f)
			}
			if f != nil && !strings.HasPrefix(f.Message, "publish to ") {
				t.Errorf("fault %v", f)
			}
			if f := message.CheckCopy(&tt.m); (f == nil) != (tt.copy == 0) || f != nil && f.Code != tt.copy {
				t.Errorf("a copy: fault %v", f)
			}
		})
	}
}

// anyHeaders draws a list that Check takes.
func anyHeaders(t *rapid.T) core.Headers {
	text := rapid.StringMatching(`[ -~é日]{0,20}`)
	h := core.Headers{}
	for range rapid.IntRange(0, 6).Draw(t, "headers") {
		h = append(h, core.Header{Name: "h" + text.Draw(t, "name"), Value: []byte(text.Draw(t, "value"))})
	}
	own := core.Headers{
		{Name: "content-type", Value: []byte(text.Draw(t, "type"))},
		{Name: "reply-to", Value: []byte(rapid.StringMatching(`[a-z/é]{1,20}`).Draw(t, "reply"))},
		{Name: "correlation-id", Value: rapid.SliceOfN(rapid.Byte(), 0, 30).Draw(t, "correlation")},
	}
	for _, x := range own {
		if rapid.Bool().Draw(t, x.Name) {
			at := rapid.IntRange(0, len(h)).Draw(t, "at")
			h = append(h[:at:at], append(core.Headers{x}, h[at:]...)...)
		}
	}
	return h
}

// What is published comes back as it was, in its order; the size was known before;
// and the library reads the same.
func TestAppendProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := core.Message{
			Name: rapid.StringMatching(`[a-z/é$]{1,90}`).Draw(rt, "topic"), Headers: anyHeaders(rt),
			Payload: bytes.Repeat([]byte{1}, rapid.OneOf(rapid.IntRange(0, 200), rapid.IntRange(0, 20_000)).Draw(rt, "payload")),
		}
		p := message.Params{QoS: rapid.ByteRange(0, 2).Draw(rt, "qos"), ID: rapid.Uint16Min(1).Draw(rt, "id"), Expiry: rapid.Uint32().Draw(rt, "expiry"), HasExpiry: rapid.Bool().Draw(rt, "expires")}
		if f := message.Check(&m); f != nil {
			rt.Fatal(f)
		}
		b := message.Append([]byte("before"), &m, &p)[len("before"):]
		if n := message.Size(&m, &p); n != len(b) {
			rt.Fatalf("%d bytes, and said were %d", len(b), n)
		}
		if diff := cmp.Diff(m, again(t, b), alike); diff != "" {
			rt.Fatal(diff)
		}
		if in := byLibrary(t, b); len(in.Properties.User) != len(m.Headers.Without("content-type", "reply-to", "correlation-id")) {
			rt.Fatalf("the library reads %+v", in.Properties)
		}
	})
}

// Publishing takes no memory but what it appends to.
func TestAppendAllocations(t *testing.T) {
	m := core.Message{Name: "orders", Headers: headers("content-type", "application/json; charset=utf-8; v=1", "x", "y", "correlation-id", "c"), Payload: make([]byte, 512)}
	p := message.Params{QoS: 1, ID: 1}
	dst := make([]byte, 0, 1024)
	if got := testing.AllocsPerRun(100, func() { dst = message.Append(dst[:0], &m, &p) }); got > 0 {
		t.Errorf("%v allocations", got)
	}
	if got := testing.AllocsPerRun(100, func() { _ = message.Check(&m) }); got > 0 {
		t.Errorf("%v allocations by Check", got)
	}
}
