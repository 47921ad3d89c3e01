// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/eclipse/paho.golang/packets"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/message"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet/packettest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// alike are the options that messages are compared with: bytes as a whole, since
// there are many.
var alike = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.FilterValues(func(x, y []byte) bool { return len(x)+len(y) > 0 }, cmp.Comparer(bytes.Equal)),
}

// headers makes a list of names and values in turn.
func headers(pairs ...string) core.Headers {
	h := core.Headers{}
	for i := 0; i < len(pairs); i += 2 {
		h = append(h, core.Header{Name: pairs[i], Value: []byte(pairs[i+1])})
	}
	return h
}

// publish reads the one PUBLISH that stands in b.
func publish(t testing.TB, b []byte) *packet.Publish {
	t.Helper()
	var p packet.Packet
	r := packet.NewReader(bytes.NewReader(b), 0)
	for {
		ok, err := r.Next(&p)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			break
		}
		if err := r.Fill(); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Fill(); r.Buffered() > 0 || !errors.Is(err, io.EOF) {
		t.Fatalf("%d bytes behind the packet, %v", r.Buffered(), err)
	}
	out := &packet.Publish{}
	if err := packet.ParsePublish(&p, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// received is a PUBLISH with any properties.
func received(t testing.TB, properties string) *packet.Publish {
	t.Helper()
	return publish(t, packettest.Append(nil, &packet.Publish{Topic: []byte("a"), Properties: []byte(properties), Payload: []byte("p")}))
}

// str is a string as it stands in a packet, and prop a property that is one.
func str(s string) string { return string(packet.AppendString(nil, s)) }

func prop(id byte, s ...string) string {
	b := string([]byte{id})
	for _, s := range s {
		b += str(s)
	}
	return b
}

// byLibrary is what the library reads in a PUBLISH.
func byLibrary(t testing.TB, b []byte) *packets.Publish {
	t.Helper()
	p, err := packets.ReadPacket(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return p.Content.(*packets.Publish)
}

// again decodes what Append wrote.
func again(t testing.TB, b []byte) core.Message {
	t.Helper()
	var d message.Decoder
	var m core.Message
	if f := d.Decode(publish(t, b), &m); f != nil {
		t.Fatal(f)
	}
	return m
}
