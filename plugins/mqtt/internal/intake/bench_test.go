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
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet/packettest"
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
	p := newPump(b, qos, size, each)
	b.ReportAllocs()
	b.SetBytes(int64(size))
	n := 0
	b.ResetTimer()
	for n < b.N {
		p.round()
		n += each
	}
	b.StopTimer()
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "messages/s")
	p.end()
}

// pump passes the same packets again and again.
type pump struct {
	*bench
	link    *sink
	rc      *receiver
	qos     byte
	each    int
	packets []byte
	pubrels []byte
	source  *bytes.Reader
	reader  *packet.Reader
	vs      []pluginapi.Verdict
}

func newPump(t testing.TB, qos byte, size, each int) *pump {
	p := &pump{bench: newBench(t), link: &sink{}, qos: qos, each: each, source: bytes.NewReader(nil)}
	p.rc = p.open("orders/+", qos)
	p.in.Up(p.link, intake.Session{})
	p.reader = packet.NewReader(p.source, 0)
	// The subscription identifier and three user properties.
	properties := sent{for_: []string{"orders/+"}}.properties()
	for _, h := range []string{"x-tenant", "x-trace", "x-kind"} {
		properties = append(properties, packet.PropUser)
		properties = packet.AppendString(properties, h)
		properties = packet.AppendString(properties, "0123456789")
	}
	for i := range each {
		out := packet.Publish{QoS: qos, Topic: []byte("orders/eu"), Properties: properties, Payload: make([]byte, size)}
		if qos > 0 {
			out.ID = uint16(i + 1)
		}
		p.packets = packettest.Append(p.packets, &out)
		if qos == 2 {
			p.pubrels = packet.AppendAck(p.pubrels, packet.TypePubrel, out.ID, 0)
		}
	}
	return p
}

// round passes all packets once.
func (p *pump) round() {
	p.feed(p.packets)
	for n := 0; n < p.each; {
		batch, _, err := p.rc.Take(wide)
		if err != nil {
			p.t.Fatal(err)
		}
		p.vs = p.vs[:0]
		for i := range batch.Deliveries {
			p.vs = append(p.vs, pluginapi.Verdict{Handle: batch.Deliveries[i].Handle, Kind: core.VerdictAck})
		}
		n += len(batch.Deliveries)
		batch.Memory.Release()
		if p.qos > 0 {
			p.rc.Settle(p.t.Context(), p.vs)
		}
	}
	if p.qos == 2 {
		p.feed(p.pubrels)
	}
}

func (p *pump) feed(raw []byte) {
	p.source.Reset(raw)
	var in packet.Packet
	for p.source.Len() > 0 {
		if err := p.reader.Fill(); err != nil {
			p.t.Fatal(err)
		}
		for {
			ok, err := p.reader.Next(&in)
			if err != nil {
				p.t.Fatal(err)
			}
			if !ok {
				break
			}
			if err := p.in.Packet(p.link, &in); err != nil {
				p.t.Fatal(err)
			}
		}
		p.in.Handled(p.link, p.reader)
	}
}

func (p *pump) end() {
	p.reader.Close()
	if s := p.in.State(); s != (intake.State{}) {
		p.t.Errorf("left behind: %+v", s)
	}
}
