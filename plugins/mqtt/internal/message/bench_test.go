// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/eclipse/paho.golang/packets"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/message"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// endless hands out the same bytes again and again.
type endless struct {
	all []byte
	at  int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.all[e.at:])
	e.at = (e.at + n) % len(e.all)
	return n, nil
}

// BenchmarkDeliveries is deliveries of 512 bytes with three headers: read, checked
// and decoded by this plugin, and read by the library from memory, without the
// mapping to headers.
func BenchmarkDeliveries(b *testing.B) {
	batch := bytes.Repeat(threeHeaders(b), 400)
	b.Run("own", func(b *testing.B) {
		var (
			r      = packet.NewReader(&endless{all: batch}, 0)
			p      packet.Packet
			in     packet.Publish
			d      message.Decoder
			memory message.Memory
			loan   packet.Loan
			m      core.Message
		)
		b.ReportAllocs()
		for b.Loop() {
			ok, err := r.Next(&p)
			for !ok && err == nil {
				r.Lend(&loan)
				loan.Release()
				d.Use(&memory)
				if err = r.Fill(); err == nil {
					ok, err = r.Next(&p)
				}
			}
			if err == nil {
				err = packet.ParsePublish(&p, &in)
			}
			if err != nil {
				b.Fatal(err)
			}
			if f := d.Decode(&in, &m); f != nil || len(m.Headers) != 3 {
				b.Fatal(f)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		var in io.Reader = &endless{all: batch}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := packets.ReadPacket(in); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkPublish is one message of 512 bytes with three headers checked and
// written.
func BenchmarkPublish(b *testing.B) {
	var d message.Decoder
	var m core.Message
	d.Decode(publish(b, threeHeaders(b)), &m)
	p := message.Params{QoS: 1, ID: 1}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		if f := message.Check(&m); f != nil {
			b.Fatal(f)
		}
		dst = message.Append(dst[:0], &m, &p)
	}
}
