// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory/settings"
	"github.com/longshore-go/longshore/pluginapi"
)

// TestPublishIsCheckedBeforeItLeaves: what the destination cannot carry is
// refused by the host, in words that say what to do; nothing reaches the plugin.
func TestPublishIsCheckedBeforeItLeaves(t *testing.T) {
	header := host.WithHeader
	for name, c := range map[string]struct {
		to   settings.Destination
		send []host.SendOption
		code core.FaultCode
		says string
	}{
		"too large":               {settings.Destination{MaxBytes: 10}, []host.SendOption{header("abc", "de")}, core.FaultTooLarge, "11 bytes"},
		"headers count as bytes":  {settings.Destination{MaxBytes: 11}, []host.SendOption{header("abc", "def")}, core.FaultTooLarge, "limit of 11"},
		"too many headers":        {settings.Destination{MaxHeaders: 1}, []host.SendOption{header("a", "1"), header("b", "2")}, core.FaultTooLarge, "2 headers"},
		"no headers":              {settings.Destination{Headers: "none"}, []host.SendOption{header("a", "1")}, core.FaultUnsupported, "leave a out"},
		"no content type":         {settings.Destination{Headers: "none"}, []host.SendOption{host.WithContentType("x/y")}, core.FaultUnsupported, "leave content-type out"},
		"repeated header":         {settings.Destination{NoRepeats: true}, []host.SendOption{header("a", "1"), header("A", "2")}, core.FaultInvalid, "send one"},
		"bytes in a text header":  {settings.Destination{Headers: "native-text"}, []host.SendOption{header("a", "\xff")}, core.FaultInvalid, "encode it"},
		"cannot delay":            {settings.Destination{}, []host.SendOption{host.WithDelay(time.Second)}, core.FaultUnsupported, "leave WithDelay out"},
		"not that long":           {settings.Destination{MaxDelay: core.Duration(time.Second)}, []host.SendOption{host.WithDelay(time.Second)}, core.FaultUnsupported, "ask for less"},
		"a negative delay":        {settings.Destination{}, []host.SendOption{host.WithDelay(-time.Second)}, core.FaultInvalid, "-1s is no delay"},
		"options without any":     {settings.Destination{}, []host.SendOption{host.WithOptions(map[string]any{"qos": 1})}, core.FaultInvalid, "qos: is no known field; remove it"},
		"a header name not UTF-8": {settings.Destination{}, []host.SendOption{header("\xff", "1")}, core.FaultInvalid, "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newExchange(t, settings.Settings{}.WithDestination("out", c.to))
			p := host.To[[]byte](x.Host, x.mem.To("out"))
			x.serve(t)
			_, err := p.Publish(x.ctx, []byte("123456"), c.send...)
			e := failure(t, err)
			if e.MaybeSent || e.To != x.mem.To("out") || faultCode(t, err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if _, err := p.PublishAsync(x.ctx, []byte("123456"), c.send...); err == nil || err.Error() != e.Error() {
				t.Errorf("not waiting: got %v, want %v", err, e)
			}
			if n := len(x.Published("out")); n != 0 {
				t.Errorf("%d messages came", n)
			}
		})
	}
}

func TestPublishWithinTheLimits(t *testing.T) {
	x := newExchange(t, settings.Settings{}.WithDestination("out", settings.Destination{
		MaxBytes: 8, MaxHeaders: 2, NoRepeats: true, Headers: "native-text", MaxDelay: core.Duration(time.Second),
	}))
	p := host.To[[]byte](x.Host, x.mem.To("out"))
	x.serve(t)
	if _, err := p.Publish(x.ctx, []byte("1234"), host.WithHeader("a", "é"), host.WithHeader("b", ""), host.WithDelay(time.Millisecond)); err != nil {
		t.Error(err)
	}
}

// messageOptions are options of a message.
type messageOptions struct {
	QoS    int           `json:"qos,omitempty" min:"0" max:"2"`
	Key    string        `json:"key,omitempty"`
	Secret core.Secret   `json:"secret,omitzero"`
	Expiry core.Duration `json:"expiry,omitzero"`
}

func TestOptionsOfMessagesAreCheckedByTheSchema(t *testing.T) {
	q := newQueues()
	q.messages = pluginapi.SchemaOf[messageOptions]()
	var came []string
	q.published = func(m pluginapi.Outgoing) *pluginapi.Receipt {
		came = append(came, string(m.Options.JSON()))
		return nil
	}
	s := newService()
	out := attach(s.Host, "out", q)
	p := host.To[[]byte](s.Host, out.To("orders"))
	s.serve(t)
	for _, c := range []struct {
		options any
		says    string // "" = they are right
	}{
		{messageOptions{QoS: 1, Key: "k"}, ""},
		{&messageOptions{QoS: 1}, ""},
		{map[string]any{"qos": 2, "expiry": "3s"}, ""},
		{nil, ""},
		{messageOptions{QoS: 3}, "qos: is too large; use 2 or less"},
		{map[string]any{"qqos": 1}, "qqos: is no known field"},
		{map[string]any{"key": 1}, "key: has the type number"},
		{[]int{1}, "options"},
		{make(chan int), "encode options"},
	} {
		before := len(came)
		_, err := p.Publish(t.Context(), []byte("m"), host.WithOptions(c.options))
		if c.says == "" {
			if err != nil || len(came) != before+1 {
				t.Errorf("%v: got %v", c.options, err)
			}
			continue
		}
		if e := failure(t, err); e.MaybeSent || !strings.Contains(err.Error(), c.says) || len(came) != before {
			t.Errorf("%v: got %v, want %q", c.options, err, c.says)
		}
		var f *core.Fault
		if errors.As(err, &f) && len(f.Diagnostics) == 1 && f.Diagnostics[0].Path != strings.SplitN(c.says, ":", 2)[0] && c.says != "options" {
			t.Errorf("%v: diagnostics %+v", c.options, f.Diagnostics)
		}
	}
	if diff := cmp.Diff([]string{`{"key":"k","qos":1}`, `{"qos":1}`, `{"expiry":"3s","qos":2}`, `{}`}, came); diff != "" {
		t.Error(diff)
	}
}

// TestContentTypesOfPublishers: who says more precisely what a message is wins,
// and nothing is added that the destination cannot carry.
func TestContentTypesOfPublishers(t *testing.T) {
	const typ = "content-type"
	set := settings.Settings{}.WithDestination("plain", settings.Destination{Headers: "none"})
	x := newExchange(t, set)
	raw := host.To[core.Message](x.Host, x.mem.To("raw"), host.PublishContentType("text/plain"))
	pb := host.To[*wrapperspb.StringValue](x.Host, x.mem.To("pb"))
	plain := host.To[*wrapperspb.StringValue](x.Host, x.mem.To("plain"))
	text := host.To[*wrapperspb.StringValue](x.Host, x.mem.To("text"), host.PublishContentType("application/json"))
	x.serve(t)
	own := core.Headers{{Name: "Content-Type", Value: []byte("image/png")}}
	must := func(_ host.Receipt, err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	must(raw.Publish(x.ctx, core.Message{}))
	must(raw.Publish(x.ctx, core.Message{Headers: own}))
	must(raw.Publish(x.ctx, core.Message{Headers: own}, host.WithContentType("a/b")))
	v := wrapperspb.String("v")
	must(pb.Publish(x.ctx, v))
	must(plain.Publish(x.ctx, v))
	must(text.Publish(x.ctx, v))
	must(text.Publish(x.ctx, v, host.WithContentType("application/protobuf")))
	var got []string
	for _, q := range []string{"raw", "pb", "plain", "text"} {
		for _, m := range x.Published(q) {
			var all []string
			for _, h := range m.Headers {
				if strings.EqualFold(h.Name, typ) {
					all = append(all, string(h.Value))
				}
			}
			got = append(got, q+" "+strings.Join(all, "+"))
		}
	}
	want := []string{
		"raw text/plain", "raw image/png", "raw a/b", "pb application/protobuf", "plain ", "text application/json", "text application/protobuf",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if string(own[0].Value) != "image/png" || len(own) != 1 {
		t.Errorf("the caller's headers are %v now", own)
	}
}

func TestMisuseOfPublishersIsFoundAtStart(t *testing.T) {
	s := newService(host.WithPublishMiddleware(nil))
	out := attach(s.Host, "out", newQueues())
	host.To[[]byte](s.Host, out.To("a"), host.InFlight(0, 1))
	host.To[[]byte](s.Host, out.To("b"), host.InFlight(1, 1), host.InFlight(1, 1), host.PublisherOption{})
	host.To[[]byte](s.Host, out.To("c"), host.PublishTimeout(0), host.PublishContentType(""))
	host.To[[]byte](s.Host, out.To("d"), host.PublishMiddleware(func(host.PublishNext) host.PublishNext { return nil }))
	host.To[[]byte](s.Host, out.To("e"), host.PublishMiddleware())
	var got []string
	for _, f := range startError(t, s).Findings {
		got = append(got, f.Endpoint+" "+f.Option+" "+f.Message)
		if n := strings.Count(strings.Join(f.Places, " "), "publish_check_test.go"); n == 0 || f.Message == "given twice" && n != 2 {
			t.Errorf("places of %v: %v", f, f.Places)
		}
	}
	want := []string{
		" WithPublishMiddleware has a nil among its middleware",
		"out InFlight messages 0 is below 1",
		"out InFlight given twice",
		"out PublishTimeout 0s is below 1ns",
		"out PublishContentType is empty",
		"out PublishMiddleware has middleware that returns no function",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
