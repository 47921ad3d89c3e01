// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// sink is a connection that writes at once, and whose memory is used again.
type sink struct {
	b       []byte
	written uint64
}

func (s *sink) Append(f func([]byte) []byte) (uint64, bool) {
	s.b = f(s.b[:0])
	s.written += uint64(len(s.b))
	return s.written, true
}

func (*sink) Flush()            {}
func (s *sink) Written() uint64 { return s.written }
func (*sink) Waiting() int      { return 0 }

// round is one batch of messages with all of their answers.
type round struct {
	o    *Outbox
	l    *sink
	post Post
	got  int
	id   uint16
}

const (
	window  = 1024
	inRound = 256
)

func newRound(tb testing.TB, qos byte) *round {
	r := &round{o: New(Config{Window: window}), l: &sink{}}
	r.o.Up(r.l, Server{MaximumQoS: 2})
	r.post = Post{
		Message: core.Message{
			Name: "orders/new", Payload: make([]byte, 512),
			Headers: core.Headers{{Name: "content-type", Value: []byte("application/json")}, {Name: "tenant", Value: []byte("acme")}, {Name: "region", Value: []byte("north")}},
		},
		QoS: qos,
		Done: func(_ int, x pluginapi.Receipt) {
			if x.Status != pluginapi.ReceiptConfirmed {
				tb.Error(x.Fault)
			}
			r.got++
		},
	}
	return r
}

func (r *round) run(tb testing.TB) {
	r.got = 0
	for i := range inRound {
		r.post.I = i
		if f := r.o.Add(&r.post); f != nil {
			tb.Fatal(f)
		}
	}
	r.o.Flush()
	switch r.post.QoS {
	case 1:
		r.acks(tb, packet.TypePuback)
	case 2:
		first := r.id
		r.acks(tb, packet.TypePubrec)
		r.id = first
		r.acks(tb, packet.TypePubcomp)
	}
	if r.got != inRound {
		tb.Fatalf("%d receipts", r.got)
	}
}

func (r *round) acks(tb testing.TB, typ byte) {
	for range inRound {
		r.id = r.id%window + 1
		if err := r.o.Ack(r.l, typ, &packet.Ack{ID: r.id}); err != nil {
			tb.Fatal(err)
		}
	}
	r.o.Flush()
}

// Publishing takes no memory once it has begun.
func TestAllocations(t *testing.T) {
	for qos := range byte(3) {
		r := newRound(t, qos)
		for range 2 * window / inRound {
			r.run(t)
		}
		if n := testing.AllocsPerRun(20, func() { r.run(t) }); n > 0 {
			t.Errorf("QoS %d: %v allocations for %d messages", qos, n, inRound)
		}
	}
}

func BenchmarkPublish(b *testing.B) {
	for qos, name := range []string{"QoS 0", "QoS 1", "QoS 2"} {
		b.Run(name, func(b *testing.B) {
			r := newRound(b, byte(qos))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				r.run(b)
				n += inRound
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/message")
		})
	}
}
