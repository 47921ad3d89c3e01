// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/outbox"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// A window of 1000 messages of 512 bytes, through the outbox and through the library
// alone. cpu-ns/op is what the process takes, which on a busy machine says more than
// the time.
func BenchmarkPublish(b *testing.B) {
	for _, batch := range []time.Duration{0, time.Millisecond} {
		kind := "single"
		if batch > 0 {
			kind = "batched"
		}
		b.Run(kind+"/library", func(b *testing.B) {
			p, err := peer(b, broker.Broker(b)).CreateProducer(pulsar.ProducerOptions{
				Topic: name(b, "t"), SendTimeout: -1, MaxPendingMessages: 1024, DisableBatching: batch == 0, BatchingMaxPublishDelay: batch,
			})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			window(b, func(payload []byte, done func(error)) {
				p.SendAsync(context.Background(), &pulsar.ProducerMessage{Payload: payload}, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { done(err) })
			})
		})
		b.Run(kind+"/outbox", func(b *testing.B) {
			k := open(b, broker.Broker(b), func(c *outbox.Config) { c.Batch, c.BatchMessages = batch, 1000 })
			n, err := topic.Parse(name(b, "t"))
			if err != nil {
				b.Fatal(err)
			}
			window(b, func(payload []byte, done func(error)) {
				f := k.box.Add(&outbox.Post{
					Topic: n, Name: n.Local, Message: wire.Outgoing{Payload: payload},
					Done: func(_ int, r pluginapi.Receipt) {
						if r.Fault != nil {
							done(r.Fault)
							return
						}
						done(nil)
					},
				})
				if f != nil {
					done(f)
				}
			})
		})
	}
}

// window publishes with 1000 messages on their way at most.
func window(b *testing.B, publish func(payload []byte, done func(error))) {
	payload := make([]byte, 512)
	free := make(chan struct{}, 1000)
	done := func(err error) {
		if err != nil {
			b.Error(err)
		}
		<-free
	}
	send := func() {
		free <- struct{}{}
		publish(payload, done)
	}
	for range 5000 {
		send()
	}
	b.ReportAllocs()
	began := cpu()
	for b.Loop() {
		send()
	}
	for range cap(free) {
		free <- struct{}{}
	}
	b.ReportMetric(float64(cpu()-began)/float64(b.N), "cpu-ns/op")
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
