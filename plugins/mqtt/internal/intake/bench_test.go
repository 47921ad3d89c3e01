// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/intake"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// sink is a link that forgets what is written.
type sink struct{ out []byte }

func (l *sink) Number() uint64 { return 1 }
func (l *sink) Write(f func([]byte) []byte) (uint64, bool) {
	l.out = f(l.out[:0])
	return 0, true
}
func (l *sink) End(err error, _ byte) { panic(err) }
func (l *sink) Waiting() int          { return 0 }

// BenchmarkIntake passes packets of one read to a receiver, which receives and
// settles them, with memory that goes back at once.
func BenchmarkIntake(b *testing.B) {
	for _, qos := range []byte{0, 1, 2} {
		for _, size := range []int{64, 512, 4096} {
			b.Run(fmt.Sprintf("qos%d/%dB", qos, size), func(b *testing.B) { benchIntake(b, qos, size, 128) })
		}
	}
	b.Run("qos1/512B/alone", func(b *testing.B) { benchIntake(b, 1, 512, 1) })
}

func benchIntake(b *testing.B, qos byte, size, each int) {
	t := newBench(b)
	l := &sink{}
	rc := t.open("orders/+", qos)
	t.in.Up(l, intake.Session{})
	// User properties, and the subscription identifier.
	properties := sent{for_: []string{"orders/+"}}.properties()
	for _, h := range []string{"x-tenant", "x-trace", "x-kind"} {
		properties = append(properties, packet.PropUser)
		properties = packet.AppendString(properties, h)
		properties = packet.AppendString(properties, "0123456789")
	}
	var raw []byte
	for i := range each {
		p := packet.Publish{QoS: qos, Topic: []byte("orders/eu"), Properties: properties, Payload: make([]byte, size)}
		if qos > 0 {
			p.ID = uint16(i + 1)
		}
		raw = packet.AppendPublish(raw, &p)
	}
	var rel []byte
	for i := range each {
		if qos == 2 {
			rel = packet.AppendAck(rel, packet.TypePubrel, uint16(i+1), 0)
		}
	}
	source := bytes.NewReader(nil)
	r := packet.NewReader(source, 0)
	defer r.Close()
	feed := func(raw []byte) {
		source.Reset(raw)
		var p packet.Packet
		for source.Len() > 0 {
			if err := r.Fill(); err != nil {
				b.Fatal(err)
			}
			for {
				ok, err := r.Next(&p)
				if err != nil {
					b.Fatal(err)
				}
				if !ok {
					break
				}
				if err := t.in.Packet(l, &p); err != nil {
					b.Fatal(err)
				}
			}
			t.in.Handled(l, r)
		}
	}
	vs := make([]pluginapi.Verdict, 0, each)
	b.ReportAllocs()
	b.SetBytes(int64(size))
	n := 0
	b.ResetTimer()
	for n < b.N {
		feed(raw)
		for k := 0; k < each; {
			batch, _, err := rc.Take(wide)
			if err != nil {
				b.Fatal(err)
			}
			vs = vs[:0]
			for i := range batch.Deliveries {
				if qos > 0 {
					vs = append(vs, pluginapi.Verdict{Handle: batch.Deliveries[i].Handle, Kind: core.VerdictAck})
				}
			}
			k += len(batch.Deliveries)
			batch.Memory.Release()
			if qos > 0 {
				rc.Settle(b.Context(), vs)
			}
		}
		if qos == 2 {
			feed(rel)
		}
		n += each
	}
	b.StopTimer()
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "messages/s")
	if s := t.in.State(); s != (intake.State{}) {
		b.Errorf("left behind: %+v", s)
	}
}
