// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// hostile is a server that behaves over its second connection and some that follow
// as a test says, and over all others as it should.
type hostile struct {
	t      *testing.T
	ln     net.Listener
	manner func(*guest)
	times  int

	mu    sync.Mutex
	began []time.Time // of each connection
	all   []net.Conn
	ended sync.WaitGroup
}

// guest is one connection of its.
type guest struct {
	net.Conn
	t *testing.T
	r *packet.Reader
	n int
}

func newHostile(t *testing.T, times int, manner func(*guest)) *hostile {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hostile{t: t, ln: ln, manner: manner, times: times}
	h.ended.Go(h.accept)
	t.Cleanup(func() {
		ln.Close()
		h.mu.Lock()
		for _, nc := range h.all {
			nc.Close()
		}
		h.mu.Unlock()
		h.ended.Wait()
	})
	return h
}

func (h *hostile) accept() {
	for n := 1; ; n++ {
		nc, err := h.ln.Accept()
		if err != nil {
			return
		}
		h.mu.Lock()
		h.began, h.all = append(h.began, time.Now()), append(h.all, nc)
		h.mu.Unlock()
		h.ended.Go(func() {
			defer nc.Close()
			g := &guest{Conn: nc, t: h.t, r: packet.NewReader(nc, 0), n: n}
			defer g.r.Close()
			if g.next() == nil {
				return
			}
			if n > 1 && n <= 1+h.times {
				h.manner(g)
				return
			}
			g.say("\x20\x03\x00\x00\x00")
			g.honest(n == 1)
		})
	}
}

// next returns the next packet, nil at the end.
func (g *guest) next() *packet.Packet {
	var p packet.Packet
	for {
		there, err := g.r.Next(&p)
		if err != nil {
			g.t.Errorf("the server gets %v", err)
			return nil
		}
		if there {
			p.Body = bytes.Clone(p.Body)
			g.r.Spent()
			return &p
		}
		if g.r.Fill() != nil {
			return nil
		}
	}
}

func (g *guest) say(s string) error {
	_, err := io.WriteString(g.Conn, s)
	return err
}

// lingers reads until the client ends the connection, or has had time for all that
// was sent.
func (g *guest) lingers() {
	_ = g.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	g.hangs()
}

// hangs reads until the client ends the connection.
func (g *guest) hangs() { _, _ = io.Copy(io.Discard, g.Conn) }

// publishOf is a PUBLISH to t with properties.
func publishOf(qos, flags byte, id uint16, payload, properties string) string {
	body := []byte("\x00\x01t")
	if qos > 0 {
		body = binary.BigEndian.AppendUint16(body, id)
	}
	body = append(body, sizeOf(len(properties))...)
	body = append(body, properties...)
	body = append(body, payload...)
	return framed(packet.TypePublish<<4|qos<<1|flags, string(body))
}

func framed(head byte, body string) string {
	return string(append(append([]byte{head}, sizeOf(len(body))...), body...))
}

func sizeOf(n int) []byte {
	var b []byte
	for {
		x := byte(n & 0x7F)
		if n >>= 7; n == 0 {
			return append(b, x)
		}
		b = append(b, x|0x80)
	}
}

// honest answers as a server should, and sends "good" behind a SUBSCRIBE. The first
// connection it ends then.
func (g *guest) honest(first bool) {
	for {
		p := g.next()
		if p == nil {
			return
		}
		switch p.Type {
		case packet.TypeSubscribe:
			_ = g.say(framed(packet.TypeSuback<<4, string(p.Body[:2])+"\x00\x01"))
			if first {
				return
			}
			_ = g.say(publishOf(1, 0, 7, "good", ""))
		case packet.TypeUnsubscribe:
			_ = g.say(framed(packet.TypeUnsuback<<4, string(p.Body[:2])+"\x00\x00"))
		case packet.TypePublish:
			var q packet.Publish
			if err := packet.ParsePublish(p, &q); err != nil {
				g.t.Error(err)
				return
			}
			switch q.QoS {
			case 1:
				_ = g.say(string(packet.AppendAck(nil, packet.TypePuback, q.ID, 0)))
			case 2:
				_ = g.say(string(packet.AppendAck(nil, packet.TypePubrec, q.ID, 0)))
			}
		case packet.TypePubrel:
			_ = g.say(framed(packet.TypePubcomp<<4, string(p.Body[:2])))
		case packet.TypePingreq:
			_ = g.say("\xd0\x00")
		}
	}
}

const accepted = "\x20\x03\x00\x00\x00"

// manners are what servers should not do.
func manners() map[string]func(*guest) {
	return map[string]func(*guest){
		"ends at once":   func(g *guest) { _ = g.say(accepted) },
		"does not greet": func(*guest) {},
		"says goodbye":   func(g *guest) { _ = g.say(accepted + "\xe0\x01\x8b"); g.hangs() },
		"too few codes": func(g *guest) {
			_ = g.say(accepted)
			p := g.next()
			_ = g.say(framed(packet.TypeSuback<<4, string(p.Body[:2])+"\x00"))
			g.hangs()
		},
		"too many codes": func(g *guest) {
			_ = g.say(accepted)
			p := g.next()
			_ = g.say(framed(packet.TypeSuback<<4, string(p.Body[:2])+"\x00\x01\x01"))
			g.hangs()
		},
		"strange codes": func(g *guest) {
			_ = g.say(accepted)
			p := g.next()
			_ = g.say(framed(packet.TypeSuback<<4, string(p.Body[:2])+"\x00\x55"))
			g.lingers()
		},
		"answers to nothing": func(g *guest) {
			_ = g.say(accepted)
			for id := uint16(1); id < 500; id++ {
				for _, typ := range []byte{packet.TypePuback, packet.TypePubrec, packet.TypePubcomp} {
					_ = g.say(string(packet.AppendAck(nil, typ, id*100, 0)))
				}
			}
			g.lingers()
		},
		"PUBREL without end": func(g *guest) {
			g.floods(func(i int) string { return string(packet.AppendAck(nil, packet.TypePubrel, uint16(i)|1, 0)) })
		},
		"DUP without end": func(g *guest) { g.floods(func(int) string { return publishOf(2, 8, 3, "dup", "") }) },
		"PUBREC without end": func(g *guest) {
			g.floods(func(i int) string { return string(packet.AppendAck(nil, packet.TypePubrec, uint16(i)|1, 0)) })
		},
		"QoS 0 without end": func(g *guest) { g.floods(func(int) string { return publishOf(0, 0, 0, "flood", "") }) },
		"QoS 1 without end": func(g *guest) { g.floods(func(i int) string { return publishOf(1, 0, uint16(i)|1, "flood", "") }) },
		"large without end": func(g *guest) {
			g.floods(func(i int) string { return publishOf(1, 0, uint16(i)|1, strings.Repeat("x", 100<<10), "") })
		},
		"topic alias": func(g *guest) { _ = g.say(accepted + publishOf(1, 0, 1, "x", "\x23\x00\x01")); g.hangs() },
		"identifiers of nobody": func(g *guest) {
			_ = g.say(accepted + publishOf(1, 0, 1, "nobody's", "\x0b\x01\x0b\xff\xff\xff\x7f"+strings.Repeat("\x0b\x05", 100)))
			g.lingers()
		},
		"many properties": func(g *guest) {
			_ = g.say(accepted + publishOf(1, 0, 1, "many", strings.Repeat("\x26\x00\x01n\x00\x01v", 100_000)))
			g.lingers()
		},
		"64 MiB": func(g *guest) { _ = g.say(accepted + "\x32\xff\xff\xff\x1f" + strings.Repeat("x", 1<<20)); g.hangs() },
		"half a packet": func(g *guest) {
			_ = g.say(accepted + publishOf(1, 0, 1, strings.Repeat("x", 1000), "")[:100])
		},
		"byte by byte": func(g *guest) {
			for _, b := range []byte(accepted + publishOf(1, 0, 1, "slow", "") + publishOf(2, 0, 2, "slower", "")) {
				_ = g.say(string([]byte{b}))
				runtime.Gosched()
			}
		},
		"rubbish": func(g *guest) {
			b := make([]byte, 1000)
			for i := range b {
				b[i] = byte(rand.Uint32())
			}
			_ = g.say(accepted + string(b))
			g.lingers() // it may be the beginning of a long packet
		},
		"session out of nowhere": func(g *guest) { _ = g.say("\x20\x03\x01\x00\x00"); g.honest(true) },
		"small limits": func(g *guest) {
			_ = g.say("\x20\x0d\x00\x00\x0a\x27\x00\x00\x00\x01\x21\x00\x01\x24\x00")
			g.honest(true)
		},
		"receive maximum 0": func(g *guest) { _ = g.say("\x20\x06\x00\x00\x03\x21\x00\x00"); g.hangs() },
		"another CONNACK":   func(g *guest) { _ = g.say(accepted + accepted); g.hangs() },
		"speaks HTTP":       func(g *guest) { _ = g.say("HTTP/1.1 503 Service Unavailable\r\n\r\n") },
		"speaks MQTT 3":     func(g *guest) { _ = g.say("\x20\x02\x00\x00"); g.hangs() },
	}
}

// floods sends without an end, and reads nothing.
func (g *guest) floods(next func(i int) string) {
	_ = g.say(accepted)
	var b strings.Builder
	limit := time.Now().Add(time.Second / 2)
	for i := 0; time.Now().Before(limit); {
		b.Reset()
		for b.Len() < 64<<10 {
			i++
			b.WriteString(next(i))
		}
		_ = g.SetWriteDeadline(limit)
		if g.say(b.String()) != nil {
			return
		}
	}
}

// Whatever a server does, the endpoint comes back when it behaves, what is published
// has its receipt, and memory is bounded.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	for name, manner := range manners() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHostile(t, 2, manner)
			r := registration(t, "t", settings.SubscribeOptions{})
			set := at("mqtt://"+h.ln.Addr().String(), "svc")
			d := opened(t, set, usage(r))
			s := d.subscribe(r)
			var receipts []pluginapi.Receipt
			var publishing sync.WaitGroup
			publishing.Go(func() { receipts = d.publish(servicetest.Message("out", "1"), servicetest.Message("out", "2")) })
			for good := false; !good; {
				b, err := s.Receive(d.ctx, pluginapi.Room{Messages: 100, Bytes: 1 << 20})
				if err != nil {
					t.Fatalf("%v\n%s", err, d.log)
				}
				for _, x := range b.Deliveries {
					good = good || string(x.Message.Payload) == "good"
				}
				if b.Memory != nil {
					b.Memory.Release()
				}
				if n := inUse(); n > most {
					t.Fatalf("%d MiB in use", n>>20)
				}
			}
			publishing.Wait()
			for _, x := range receipts {
				if x.Status != pluginapi.ReceiptConfirmed && name != "small limits" {
					t.Errorf("receipt %v %v", x.Status, x.Fault)
				}
			}
		})
	}
}

// most is what several servers that flood may have in queues and buffers together.
const most = 512 << 20

func inUse() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
