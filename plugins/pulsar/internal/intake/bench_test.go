// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"context"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/feed"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/intake"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/message"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
)

// BenchmarkIntake receives and acks messages of a source that has them ready, in
// batches of 64, without a broker.
func BenchmarkIntake(b *testing.B) {
	for name, kind := range map[string]pulsar.SubscriptionType{"shared": pulsar.Shared, "exclusive": pulsar.Exclusive} {
		b.Run(name, func(b *testing.B) { benchIntake(b, kind) })
	}
}

// ready is a source of one batch at a time.
type ready struct{ ch chan *feed.Batch }

func (s *ready) Batches() <-chan *feed.Batch                    { return s.ch }
func (s *ready) Release(*feed.Batch)                            {}
func (s *ready) Seek(context.Context, pluginapi.Position) error { return nil }
func (s *ready) Close(context.Context) error                    { return nil }

func benchIntake(b *testing.B, kind pulsar.SubscriptionType) {
	const each = 64
	n, err := topic.Parse("bench")
	if err != nil {
		b.Fatal(err)
	}
	s := &ready{ch: make(chan *feed.Batch, 1)}
	in := intake.Over(intake.Config{Feed: feed.Config{Type: kind}}, s,
		func(*feed.Partition, []pulsar.MessageID) error { return nil },
		func(*feed.Partition, pulsar.Message) {},
		func(*feed.Partition) uint64 { return 1 })
	batch := &feed.Batch{Partition: &feed.Partition{Source: message.NewSource(n, "bench")}, Epoch: 1, Messages: make([]pulsar.Message, each)}
	all := make([]benchMessage, each)
	for i := range all {
		batch.Messages[i] = &all[i]
	}
	vs := make([]pluginapi.Verdict, each)
	entry := int64(0)
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += each {
		for i := range all {
			entry++
			all[i].id = &modelID{entry: entry, size: 1}
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

// benchMessage is a message of 512 bytes with three properties.
type benchMessage struct {
	modelMessage
	id *modelID
}

var ( //nolint:gochecknoglobals // what all messages of the benchmark share
	benchPayload    = make([]byte, 512)
	benchProperties = map[string]string{"a": "1", "b": "2", "c": "3"}
)

func (m *benchMessage) ID() pulsar.MessageID          { return m.id }
func (m *benchMessage) Payload() []byte               { return benchPayload }
func (m *benchMessage) Properties() map[string]string { return benchProperties }
