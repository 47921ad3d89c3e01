// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/go-zeromq/zmq4"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// sampleMessages are the two messages of the sample.
func sampleMessages() []core.Message {
	var ms []core.Message
	for _, payload := range []string{"hello 0", "hello 1"} {
		ms = append(ms, core.Message{
			Name: "orders", Headers: core.Headers{{Name: "x-tenant", Value: []byte("acme")}}, Payload: []byte(payload),
		})
	}
	return ms
}

// The reference's PUSH is read from its greeting to its second message, and
// answered with the bytes that its PULL answers.
func TestSampleRead(t *testing.T) {
	c, heard, err := against(t, sample(t, "push"), true, zmtp.Options{Type: zmq4.Pull})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(t, "pull"), heard); diff != "" {
		t.Errorf("answer: %s", diff)
	}
	var (
		f   zmtp.Frames
		d   message.Decoder
		got []core.Message
	)
	for {
		if err := next(c.Reader(), &f); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			break
		}
		var m core.Message
		if fault := d.Decode(f.List, &m); fault != nil {
			t.Fatal(fault)
		}
		got = append(got, m.Clone())
	}
	if diff := cmp.Diff(sampleMessages(), got); diff != "" {
		t.Error(diff)
	}
}

// What we write as PUSH is what the reference writes.
func TestSampleWritten(t *testing.T) {
	ours, peer := pair(t)
	done := make(chan []byte, 1)
	go func() {
		_, _ = peer.Write(sample(t, "pull"))
		heard, _ := io.ReadAll(peer)
		done <- heard
	}()
	c, err := open(ours, zmtp.Options{Type: zmq4.Push})
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	for _, m := range sampleMessages() {
		b = message.Append(b, &m, m.Name)
	}
	if _, err := c.NetConn().Write(b); err != nil {
		t.Fatal(err)
	}
	_ = ours.Close()
	if diff := cmp.Diff(sample(t, "push"), <-done); diff != "" {
		t.Error(diff)
	}
}

// The bytes of reference 3.1, written.
func TestReferenceBytes(t *testing.T) {
	m := core.Message{Name: "jobs", Payload: []byte(`{"id":7}`)}
	copied := m
	copied.Headers = core.Headers{{Name: "x-ruststream-retry-count", Value: []byte("1")}}
	for name, tt := range map[string]struct{ got, want []byte }{
		"plain":      {message.Append(nil, &m, m.Name), []byte("\x01\x04jobs\x01\x00\x00\x08{\"id\":7}")},
		"first copy": {message.Append(nil, &copied, m.Name), []byte("\x01\x04jobs\x01\x1bx-ruststream-retry-count: 1\x00\x08{\"id\":7}")},
		"SUB filter": {zmtp.AppendSubscribe(nil, "events", true), []byte("\x00\x07\x01events")},
		"its end":    {zmtp.AppendSubscribe(nil, "events", false), []byte("\x00\x07\x00events")},
		"PING":       {zmtp.AppendPing(nil, 3e9, []byte("ctx")), []byte("\x04\x0a\x04PING\x00\x1ectx")},
		"PONG":       {zmtp.AppendPong(nil, []byte("ctx")), []byte("\x04\x08\x04PONGctx")},
		"long frame": {zmtp.AppendFrame(nil, make([]byte, 256), true), append([]byte{3, 0, 0, 0, 0, 0, 0, 1, 0}, make([]byte, 256)...)},
		"255 bytes":  {zmtp.AppendFrame(nil, make([]byte, 255), false), append([]byte{0, 255}, make([]byte, 255)...)},
	} {
		if !bytes.Equal(tt.got, tt.want) {
			t.Errorf("%s: %q, want %q", name, tt.got, tt.want)
		}
	}
}
