// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// headers are names and values in turn.
func headers(pairs ...string) core.Headers {
	hs := core.Headers{}
	for i := 0; i < len(pairs); i += 2 {
		hs = append(hs, core.Header{Name: pairs[i], Value: []byte(pairs[i+1])})
	}
	return hs
}

// frames are the frames of text, one a slice.
func frames(text ...string) [][]byte {
	var all [][]byte
	for _, s := range text {
		all = append(all, []byte(s))
	}
	return all
}

// read reads encoded bytes back.
func read(t testing.TB, b []byte) [][]byte {
	t.Helper()
	r := zmtp.NewReader(bytes.NewReader(b), 1<<30)
	var f zmtp.Frames
	if err := r.Fill(); err != nil {
		t.Fatal(err)
	}
	for {
		ok, err := r.Next(&f)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			return f.List
		}
		if err := r.Fill(); err != nil {
			t.Fatal(err)
		}
	}
}

// S-ZMQ-35: what would not come back from its line as it was is refused, naming
// header and destination.
func TestS_ZMQ_35_Check(t *testing.T) {
	for name, h := range map[string]core.Header{
		"LF in a value":          {Name: "x-a", Value: []byte("a\nb")},
		"CR in a value":          {Name: "x-a", Value: []byte("a\rb")},
		"value not UTF-8":        {Name: "x-a", Value: []byte("\xff")},
		"blank before a value":   {Name: "x-a", Value: []byte(" a")},
		"blank behind a value":   {Name: "x-a", Value: []byte("a\u00a0")},
		"blanks alone":           {Name: "x-a", Value: []byte("\t")},
		"colon in a name":        {Name: "x:a"},
		"LF in a name":           {Name: "x\na"},
		"CR in a name":           {Name: "x\ra"},
		"blank before a name":    {Name: " x"},
		"blank behind a name":    {Name: "x\t"},
		"name not UTF-8":         {Name: "x\xff"},
		"name of a blank":        {Name: "\u2003"},
		"line separator at ends": {Name: "x-a", Value: []byte("\u2028a")},
	} {
		t.Run(name, func(t *testing.T) {
			m := core.Message{Name: "jobs", Headers: append(headers("good", "1"), h)}
			fault := message.Check(&m)
			if fault == nil || fault.Code != core.FaultInvalid || fault.Transient ||
				!strings.Contains(fault.Message, `"jobs"`) || !strings.Contains(fault.Message, fmt.Sprintf("%q", h.Name)) || fault.Diagnostics[0].Fix == "" {
				t.Errorf("fault %v", fault)
			}
		})
	}
	if fault := message.Check(&core.Message{Name: "jo\xffbs"}); fault == nil || fault.Code != core.FaultInvalid {
		t.Errorf("name that is not UTF-8: %v", fault)
	}
	if fault := message.Check(&core.Message{Name: "jobs", Headers: make(core.Headers, message.MaxHeaders+1)}); fault == nil || fault.Code != core.FaultTooLarge {
		t.Errorf("too many headers: %v", fault)
	}
}

// What was received can be written again as it was: copies are made of it.
func TestReceivedCanBeWritten(t *testing.T) {
	for _, block := range []string{"a: b\tc", ": x", "y:", ":", "X-A: 1\nx-a: 2", "nul: a\x00b", "c: \u2028", "d: a\u0085b"} {
		var d message.Decoder
		var first, again core.Message
		if fault := d.Decode(frames("jobs", block, "p"), &first); fault != nil {
			t.Fatal(fault)
		}
		if fault := message.Check(&first); fault != nil {
			t.Errorf("%q: %v", block, fault)
			continue
		}
		if fault := d.Decode(read(t, message.Append(nil, &first, first.Name)), &again); fault != nil {
			t.Errorf("%q: %v", block, fault)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("%q: %s", block, diff)
		}
	}
}

// Size says what Append appends, and AppendHead appends the same but the
// payload.
func TestAppend(t *testing.T) {
	for _, payload := range []int{0, 1, 255, 256, 70_000} {
		for _, value := range []int{0, 1, 200, 252, 253, 300} {
			for _, name := range []string{"", "reply", strings.Repeat("n", 256)} {
				m := core.Message{Name: "jobs", Headers: headers("a", strings.Repeat("v", value)), Payload: make([]byte, payload)}
				got := message.Append([]byte("before"), &m, name)
				if want := message.Size(&m, name); len(got) != len("before")+want {
					t.Fatalf("%d bytes, Size says %d", len(got)-len("before"), want)
				}
				if head := message.AppendHead([]byte("before"), &m, name); !bytes.Equal(append(head, m.Payload...), got) {
					t.Fatal("head and payload are not the message")
				}
				var d message.Decoder
				var back core.Message
				if fault := d.Decode(read(t, got[len("before"):]), &back); fault != nil {
					t.Fatal(fault)
				}
				if diff := cmp.Diff(m.Headers, back.Headers); diff != "" || back.Name != name || !bytes.Equal(back.Payload, m.Payload) {
					t.Fatalf("%q is another: %s", back.Name, diff)
				}
			}
		}
	}
}
