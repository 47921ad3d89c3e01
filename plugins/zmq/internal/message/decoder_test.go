// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/poison"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
)

// What the reference's reader tolerates is read; names stay as they were sent,
// all lines in order (D25).
func TestDecode(t *testing.T) {
	for name, tt := range map[string]struct {
		frames [][]byte
		want   core.Message
	}{
		"one frame":           {frames("jobs"), core.Message{Name: "jobs"}},
		"one empty frame":     {frames(""), core.Message{}},
		"two frames":          {frames("jobs", "p"), core.Message{Name: "jobs", Payload: []byte("p")}},
		"three frames":        {frames("jobs", "a: b", "p"), core.Message{Name: "jobs", Headers: headers("a", "b"), Payload: []byte("p")}},
		"five frames":         {frames("jobs", "", "p", "x", "y"), core.Message{Name: "jobs", Payload: []byte("p")}},
		"empty headers":       {frames("jobs", "", "p"), core.Message{Name: "jobs", Payload: []byte("p")}},
		"blank lines":         {frames("jobs", "\n\na: b\n\n\nc: d\n", "p"), core.Message{Name: "jobs", Headers: headers("a", "b", "c", "d"), Payload: []byte("p")}},
		"blanks alone":        {frames("jobs", " \t\na: b\n ", "p"), core.Message{Name: "jobs", Headers: headers("a", "b"), Payload: []byte("p")}},
		"CRLF":                {frames("jobs", "a: b\r\n\r\nc: d\r\n", "p"), core.Message{Name: "jobs", Headers: headers("a", "b", "c", "d"), Payload: []byte("p")}},
		"CR at the end":       {frames("jobs", "a: b\r", "p"), core.Message{Name: "jobs", Headers: headers("a", "b"), Payload: []byte("p")}},
		"repeated headers":    {frames("jobs", "X-A: 1\nb: 2\nx-a: 3\nX-A: 4", "p"), core.Message{Name: "jobs", Headers: headers("X-A", "1", "b", "2", "x-a", "3", "X-A", "4"), Payload: []byte("p")}},
		"colons in values":    {frames("jobs", "u: http://x:1/", "p"), core.Message{Name: "jobs", Headers: headers("u", "http://x:1/"), Payload: []byte("p")}},
		"no blank, many":      {frames("jobs", "a:b\n c  :\t d \u00a0", "p"), core.Message{Name: "jobs", Headers: headers("a", "b", "c", "d"), Payload: []byte("p")}},
		"empty name, value":   {frames("jobs", ":\n: x\ny:", "p"), core.Message{Name: "jobs", Headers: headers("", "", "", "x", "y", ""), Payload: []byte("p")}},
		"payload of any kind": {frames("jobs", "", "\xff\x00\n"), core.Message{Name: "jobs", Payload: []byte("\xff\x00\n")}},
		"text of any script":  {frames("jöbs/日本", "Ключ: значение", "p"), core.Message{Name: "jöbs/日本", Headers: headers("Ключ", "значение"), Payload: []byte("p")}},
	} {
		t.Run(name, func(t *testing.T) {
			var d message.Decoder
			var memory message.Memory
			for range 3 { // the first time, from what is remembered, and in memory of its own
				var m core.Message
				if fault := d.Decode(tt.frames, &m); fault != nil {
					t.Fatal(fault)
				}
				if diff := cmp.Diff(tt.want, m, cmpopts.EquateEmpty()); diff != "" {
					t.Error(diff)
				}
				if cap(m.Headers) == len(m.Headers) {
					t.Error("no room for another header")
				}
				d.Use(&memory)
			}
		})
	}
}

// What cannot be read is told once, with what can be had (S-ZMQ-13).
func TestDecodeUndecodable(t *testing.T) {
	for name, tt := range map[string]struct {
		frames [][]byte
		want   core.Message
		reason string
		code   core.FaultCode
	}{
		"line without a colon":   {frames("jobs", "a: b\nno colon\nc: d", "p"), core.Message{Name: "jobs", Payload: []byte("p")}, `line 2 of the header frame, "no colon", has no colon`, core.FaultInvalid},
		"one line, no colon":     {frames("jobs", "x", "p"), core.Message{Name: "jobs", Payload: []byte("p")}, "line 1", core.FaultInvalid},
		"name of a REQ's frames": {frames("", "jobs", "a: b", "p"), core.Message{Payload: []byte("a: b")}, "has no colon", core.FaultInvalid},
		"headers not UTF-8":      {frames("jobs", "a: \xff", "p"), core.Message{Name: "jobs", Payload: []byte("p")}, "header frame is not UTF-8", core.FaultInvalid},
		"name not UTF-8":         {frames("jo\xffbs", "a: b", "p"), core.Message{Name: "jo\ufffdbs", Payload: []byte("p")}, "name frame is not UTF-8", core.FaultInvalid},
		"name alone, not UTF-8":  {frames("\xff"), core.Message{Name: "\ufffd"}, "name frame is not UTF-8", core.FaultInvalid},
		"too many headers":       {frames("jobs", strings.Repeat("a:\n", message.MaxHeaders+1), "p"), core.Message{Name: "jobs", Payload: []byte("p")}, "65537 headers, the limit is 65536", core.FaultTooLarge},
		"blank lines alone":      {frames("jobs", strings.Repeat(" \n", 2*message.MaxHeaders+1)+"a: b", "p"), core.Message{Name: "jobs", Payload: []byte("p")}, "131074 lines, the limit is 131072", core.FaultTooLarge},
		"name too long":          {frames(strings.Repeat("\u00e9", message.MaxName/2)+"x", "", "p"), core.Message{Name: strings.Repeat("\u00e9", 128), Payload: []byte("p")}, "name frame has 65537 bytes, the limit is 65536", core.FaultTooLarge},
		"no frame at all":        {nil, core.Message{}, "no frame", core.FaultInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			var d message.Decoder
			var m core.Message
			fault := d.Decode(tt.frames, &m)
			if fault == nil || !strings.Contains(fault.Error(), tt.reason) || fault.Code != tt.code || fault.Transient {
				t.Errorf("fault %v", fault)
			}
			if diff := cmp.Diff(tt.want, m, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			first := core.Header{Name: "reply-to", Value: []byte("r")}
			d.DecodeWith(first, tt.frames, &m)
			if diff := cmp.Diff(core.Headers{first}, m.Headers, cmpopts.EquateEmpty()); diff != "" && tt.frames != nil {
				t.Error(diff)
			}
		})
	}
	t.Run("longest name", func(t *testing.T) {
		var d message.Decoder
		var m core.Message
		if fault := d.Decode(frames(strings.Repeat("n", message.MaxName), "", "p"), &m); fault != nil || len(m.Name) != message.MaxName {
			t.Errorf("%d bytes, %v", len(m.Name), fault)
		}
	})
	t.Run("most headers", func(t *testing.T) {
		var d message.Decoder
		var m core.Message
		if fault := d.Decode(frames("jobs", strings.Repeat("\na:", message.MaxHeaders), "p"), &m); fault != nil || len(m.Headers) != message.MaxHeaders {
			t.Errorf("%d headers, %v", len(m.Headers), fault)
		}
	})
}

// A header of ours stands in front, and for all of its name.
func TestDecodeWith(t *testing.T) {
	var d message.Decoder
	first := core.Header{Name: "reply-to", Value: []byte("zmq-reply:00")}
	for block, want := range map[string]core.Headers{
		"":                                headers("reply-to", "zmq-reply:00"),
		"a: b":                            headers("reply-to", "zmq-reply:00", "a", "b"),
		"Reply-To: x\na: b\nreply-to: y":  headers("reply-to", "zmq-reply:00", "a", "b"),
		"\nreply-to: x":                   headers("reply-to", "zmq-reply:00"),
		"reply-too: x\nreply-to : y\nb:c": headers("reply-to", "zmq-reply:00", "reply-too", "x", "b", "c"),
	} {
		var m core.Message
		if fault := d.DecodeWith(first, frames("jobs", block, "p"), &m); fault != nil {
			t.Fatal(fault)
		}
		if diff := cmp.Diff(want, m.Headers); diff != "" {
			t.Errorf("%q: %s", block, diff)
		}
	}
}

// The lists of one memory lie one behind the other up to its last place, and none
// reaches into the next.
func TestDecodeWithFillsItsMemory(t *testing.T) {
	first := core.Header{Name: "reply-to", Value: []byte("x")}
	for headers := range 4 {
		var lines []string
		for i := range headers {
			lines = append(lines, fmt.Sprintf("h%d: %d", i, i))
		}
		frames := [][]byte{[]byte("jobs"), []byte(strings.Join(lines, "\n")), nil}
		var d message.Decoder
		d.Use(&message.Memory{})
		var all []core.Headers
		for range 300 {
			var m core.Message
			if f := d.DecodeWith(first, frames, &m); f != nil {
				t.Fatal(f)
			}
			all = append(all, append(m.Headers, core.Header{Name: "more"}))
		}
		for i, got := range all {
			if len(got) != headers+2 || got[0].Name != "reply-to" || got[headers+1].Name != "more" {
				t.Fatalf("%d headers, message %d: %v", headers, i, got)
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
			block := strings.Repeat(fmt.Sprintf("n%d: v%d\n", i%70, i), 1+i%12)
			if fault := d.Decode(frames("jobs", block, "p"), &m); fault != nil {
				t.Fatal(fault)
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

// Messages decode without memory of their own once there is some.
func TestDecoderAllocations(t *testing.T) {
	if poison.On {
		t.Skip("the race detector allocates by itself")
	}
	plain := frames("orders", "", strings.Repeat("p", 512))
	tenant := frames("orders", "x-tenant: acme\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "p")
	var d message.Decoder
	var memory message.Memory
	var m core.Message
	got := testing.AllocsPerRun(100, func() {
		d.Use(&memory)
		for i := range 256 {
			if fault := d.Decode([][][]byte{plain, tenant}[i%2], &m); fault != nil {
				t.Fatal(fault)
			}
		}
		memory.Spent()
	})
	if got > 0 {
		t.Errorf("%v allocations for a batch", got)
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, all := range map[string][][]byte{
		"plain":       frames("orders", "", strings.Repeat("p", 512)),
		"two headers": frames("orders", "x-tenant: acme\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", strings.Repeat("p", 512)),
	} {
		b.Run(name, func(b *testing.B) {
			var d message.Decoder
			var memory message.Memory
			var m core.Message
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%256 == 0 {
					d.Use(&memory)
				}
				if fault := d.Decode(all, &m); fault != nil {
					b.Fatal(fault)
				}
			}
		})
	}
}

// What Check takes is read back as it was; what is read is told apart or can be
// written again.
func FuzzDecode(f *testing.F) {
	f.Add("jobs", "a: b\nX-A:c\n\r\n: \nno", []byte("p"), "x-a", []byte("v"))
	f.Add("j\xff", "a: \xff", []byte{}, " :", []byte(" \r"))
	f.Add("", "\u0085:\u00a0x", []byte{0}, "", []byte{})
	f.Fuzz(func(t *testing.T, name, block string, payload []byte, header string, value []byte) {
		var d message.Decoder
		m := core.Message{Name: name, Headers: core.Headers{{Name: "a", Value: []byte("1")}, {Name: header, Value: value}}, Payload: payload}
		if message.Check(&m) == nil {
			again(t, &d, &m)
		}
		var got core.Message
		if fault := d.Decode(frames(name, block, string(payload)), &got); fault != nil {
			if fault.Message == "" || !bytes.Equal(got.Payload, payload) {
				t.Errorf("%v with the payload %q", fault, got.Payload)
			}
			return
		}
		first := core.Header{Name: "a", Value: []byte("first")}
		var with core.Message
		if fault := d.DecodeWith(first, frames(name, block, string(payload)), &with); fault != nil {
			t.Fatal(fault)
		}
		if diff := cmp.Diff(append(core.Headers{first}, got.Headers.Without("a")...), with.Headers); diff != "" {
			t.Error(diff)
		}
		if fault := message.Check(&got); fault != nil && !strings.Contains(block, "\r") {
			t.Fatalf("read and not writable: %v", fault)
		} else if fault == nil {
			again(t, &d, &got)
		}
	})
}

// again writes m and reads it back.
func again(t *testing.T, d *message.Decoder, m *core.Message) {
	t.Helper()
	var back core.Message
	b := message.Append(nil, m, m.Name)
	if len(b) != message.Size(m, m.Name) {
		t.Errorf("%d bytes, Size says %d", len(b), message.Size(m, m.Name))
	}
	if fault := d.Decode(read(t, b), &back); fault != nil {
		t.Fatalf("written and not readable: %v", fault)
	}
	if diff := cmp.Diff(*m, back, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}
