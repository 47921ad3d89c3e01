// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// counted is a producer that lets a benchmark have so many messages without a receipt.
type counted struct{ free chan struct{} }

func (c counted) Receipt(wire.SendReceipt)                { c.free <- struct{}{} }
func (c counted) Failed(uint64, wire.ServerError, string) { panic("refused") }
func (c counted) Pause()                                  {}
func (c counted) Room()                                   {}
func (c counted) Closed()                                 {}
func (c counted) Lost(error)                              {}

// Messages of 100 bytes to a broker, so many at a time: with one it is the latency of a
// publish.
func BenchmarkSend(b *testing.B) {
	broker := shared.Broker(b)
	const n = "public/bench"
	broker.CreateNamespace(n)
	broker.Grant(n, "service", "produce", "consume")
	for _, window := range []int{1, 4, 1000} {
		b.Run(fmt.Sprint(window), func(b *testing.B) {
			address, err := ParseURL(broker.PlainURL())
			if err != nil {
				b.Fatal(err)
			}
			c, err := New(Config{Address: address, Token: core.NewSecret(broker.Token("service"))})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close(b.Context())
			if err := c.Connect(b.Context()); err != nil {
				b.Fatal(err)
			}
			name := fmt.Sprintf("persistent://%s/of-%d", n, window)
			conn, err := c.Broker(b.Context(), name)
			if err != nil {
				b.Fatal(err)
			}
			out := counted{make(chan struct{}, window)}
			id := conn.Producer(out)
			if _, err := conn.Ask(b.Context(), wire.TypeProducerSuccess, func(dst []byte, request uint64) []byte {
				return wire.AppendProducer(dst, request, wire.Producer{ID: id, Topic: name})
			}); err != nil {
				b.Fatal(err)
			}
			for range window {
				out.free <- struct{}{}
			}
			m := wire.Outgoing{Payload: make([]byte, 100)}
			send := wire.Send{Producer: id, Name: "x"}
			b.ReportAllocs()
			for b.Loop() {
				<-out.free
				conn.Send(func(dst []byte) []byte { return wire.AppendSend(dst, &send, &m) })
				send.Sequence++
			}
			for range window {
				<-out.free
			}
		})
	}
}
