// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"
	"testing"
)

// benchMessage is a message of 512 bytes with three properties, as a host sends them.
func benchMessage() *Outgoing {
	return &Outgoing{
		Key: "customer-4711", Payload: bytes.Repeat([]byte("0123456789abcdef"), 32),
		Properties: []OutgoingProperty{
			{"content-type", []byte("application/json")},
			{"traceparent", []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")},
			{"message-id", []byte("2f1c1a52-9c1e-4f5c-8d7e-6a1b8e0c7d11")},
		},
	}
}

func BenchmarkAppendSend(b *testing.B) {
	s, m := &Send{Producer: 3, Sequence: 1000, Name: "standalone-1-5", PublishTime: 1764590000000}, benchMessage()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendSend(buf[:0], s, m)
	}
}

func BenchmarkBatch(b *testing.B) {
	s, m := &Send{Producer: 3, Sequence: 1000, Name: "standalone-1-5", PublishTime: 1764590000000}, benchMessage()
	var buf []byte
	var batch Batch
	b.ReportAllocs()
	for b.Loop() { // one message
		batch.Add(m)
		if batch.Len() == 100 {
			buf = batch.AppendSend(buf[:0], s)
			batch.Reset()
		}
	}
}

// repeated is an endless connection on which the same frames come.
type repeated struct {
	frames []byte
	at     int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.frames[r.at:])
	if r.at += n; r.at == len(r.frames) {
		r.at = 0
	}
	return n, nil
}

// One message is read and decoded, up to its properties.
func BenchmarkReceive(b *testing.B) {
	for _, batched := range []int{0, 100} {
		b.Run(fmt.Sprintf("batch=%d", batched), func(b *testing.B) {
			s, m := &Send{Producer: 3, Sequence: 1000, Name: "standalone-1-5", PublishTime: 1764590000000}, benchMessage()
			send := AppendSend(nil, s, m)
			if batched > 0 {
				var batch Batch
				for range batched {
					batch.Add(m)
				}
				send = batch.AppendSend(nil, s)
			}
			r := NewReader(&repeated{frames: bytes.Repeat(messageOf(send, 7, 12345, 678), 50)})
			var d Delivery
			var messages []Message
			b.ReportAllocs()
			for done := 0; b.Loop(); done++ {
				if batched > 0 && done%batched != 0 {
					continue
				}
				f, err := r.Next()
				if err == nil {
					err = f.Delivery(&d)
				}
				if err == nil {
					messages, err = d.Messages(messages[:0])
				}
				if err != nil || len(messages) != max(batched, 1) {
					b.Fatal(err, len(messages))
				}
			}
		})
	}
}

// BenchmarkDecode is BenchmarkReceive of one message, without the reading.
func BenchmarkDecode(b *testing.B) {
	s := &Send{Producer: 3, Sequence: 1000, Name: "standalone-1-5", PublishTime: 1764590000000}
	f, err := NewReader(bytes.NewReader(messageOf(AppendSend(nil, s, benchMessage()), 7, 12345, 678))).Next()
	if err != nil {
		b.Fatal(err)
	}
	var d Delivery
	var messages []Message
	b.ReportAllocs()
	for b.Loop() {
		if err = f.Delivery(&d); err == nil {
			messages, err = d.Messages(messages[:0])
		}
		if err != nil || len(messages) != 1 {
			b.Fatal(err)
		}
	}
}

func BenchmarkReceipt(b *testing.B) {
	body := appendPosition(appendVarint(appendVarint(nil, 1, 3), 2, 100000), 3, 12345, 678)
	r := NewReader(&repeated{frames: bytes.Repeat(framed(command(TypeSendReceipt, body)), 100)})
	b.ReportAllocs()
	for b.Loop() {
		f, err := r.Next()
		if err != nil {
			b.Fatal(err)
		}
		if got, err := f.Receipt(); err != nil || got.Sequence != 100000 {
			b.Fatal(got, err)
		}
	}
}

func BenchmarkAppendAck(b *testing.B) {
	var buf []byte
	acks := make([]Acked, 100)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendAck(buf[:0], 1, 2, acks)
	}
}
