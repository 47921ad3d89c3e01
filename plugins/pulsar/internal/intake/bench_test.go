// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"context"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/feed"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/intake"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/message"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// BenchmarkIntake receives and acks messages of a source that has them ready, in
// batches of 64, without a broker. A message has 512 bytes and three properties.
func BenchmarkIntake(b *testing.B) {
	for name, kind := range map[string]wire.SubscriptionType{"shared": wire.Shared, "exclusive": wire.Exclusive} {
		b.Run(name, func(b *testing.B) { benchIntake(b, kind) })
	}
}

// ready is a source of one batch at a time.
type ready struct{ ch chan *feed.Batch }

func (s *ready) Batches() <-chan *feed.Batch                    { return s.ch }
func (s *ready) Release(*feed.Batch)                            {}
func (s *ready) Seek(context.Context, pluginapi.Position) error { return nil }
func (s *ready) Close(context.Context) error                    { return nil }

func benchIntake(b *testing.B, kind wire.SubscriptionType) {
	const each = 64
	n, err := topic.Parse("bench")
	if err != nil {
		b.Fatal(err)
	}
	s := &ready{ch: make(chan *feed.Batch, 1)}
	in := intake.Over(intake.Config{Feed: feed.Config{Type: kind}}, s,
		func(*feed.Partition, []wire.Acked) error { return nil },
		func(*feed.Partition, []wire.MessageID) {},
		func(*feed.Partition) uint64 { return 1 })
	batch := &feed.Batch{Partition: &feed.Partition{Source: message.NewSource(n, "bench")}, Epoch: 1, Messages: make([]wire.Message, each)}
	for i := range batch.Messages {
		batch.Messages[i] = wire.Message{Payload: make([]byte, 512), Properties: []wire.Property{
			{Name: []byte("a"), Value: []byte("1")}, {Name: []byte("b"), Value: []byte("2")}, {Name: []byte("c"), Value: []byte("3")},
		}}
	}
	vs := make([]pluginapi.Verdict, each)
	entry := int64(0)
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += each {
		for i := range batch.Messages {
			entry++
			batch.Messages[i].ID = wire.MessageID{Ledger: 7, Entry: entry, Batch: wire.NoBatch}
		}
		s.ch <- batch
		for got := 0; got < each; {
			out, err := in.Receive(b.Context(), pluginapi.Room{Messages: each, Bytes: 1 << 20})
			if err != nil {
				b.Fatal(err)
			}
			for i := range out.Deliveries {
				vs[i] = pluginapi.Verdict{Handle: out.Deliveries[i].Handle, Kind: core.VerdictAck}
			}
			in.Settle(b.Context(), vs[:len(out.Deliveries)])
			got += len(out.Deliveries)
			if out.Memory != nil {
				out.Memory.Release()
			}
		}
	}
	b.StopTimer()
	if err := in.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}
