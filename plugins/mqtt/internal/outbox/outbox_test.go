// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"errors"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

func TestAnswers(t *testing.T) {
	r := newRig(t, Config{})
	r.up(Server{})
	q0, q1, q2 := r.add(0), r.add(1), r.add(2)
	r.wantSent("PUBLISH q0 t/0\nPUBLISH q1 #1 t/1\nPUBLISH q2 #2 t/2\n")
	r.want(q0, pluginapi.ReceiptConfirmed)
	r.want(q1, 0)
	r.ack(packet.TypePuback, 1, 0)
	r.want(q1, pluginapi.ReceiptConfirmed)
	r.ack(packet.TypePubrec, 2, 0)
	r.wantSent("PUBREL #2\n")
	r.ack(packet.TypePubrec, 2, 0) // again
	r.wantSent("PUBREL #2\n")
	r.want(q2, 0)
	r.ack(packet.TypePubcomp, 2, 0)
	if x := r.want(q2, pluginapi.ReceiptConfirmed); x.Unrouted {
		t.Error("somebody reads it")
	}
	r.ack(packet.TypePuback, 1, 0)  // late: nobody waits
	r.ack(packet.TypePubcomp, 2, 0) // likewise
	r.ack(packet.TypePubrec, 9, 0)  // of a process that is gone
	r.wantSent("PUBREL #9 0x92\n")
	if n := r.o.count; n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

// M-12: the server says that nobody has subscribed.
func TestUnrouted(t *testing.T) {
	r := newRig(t, Config{})
	r.up(Server{})
	a, b := r.add(1), r.add(2)
	r.ack(packet.TypePuback, 1, packet.CodeNoSubscribers)
	r.ack(packet.TypePubrec, 2, packet.CodeNoSubscribers)
	r.ack(packet.TypePubcomp, 2, 0)
	for _, i := range []int{a, b} {
		if x := r.want(i, pluginapi.ReceiptConfirmed); !x.Unrouted {
			t.Errorf("message %d: %+v, want that nobody reads it", i, x)
		}
	}
}

func TestRefusals(t *testing.T) {
	for code, want := range map[byte]struct {
		fault core.FaultCode
		again bool
		text  string
	}{
		packet.CodeError:          {core.FaultUnavailable, true, "unspecified error (0x80)"},
		packet.CodeImplementation: {core.FaultUnavailable, true, "implementation specific error (0x83)"},
		packet.CodeNotAuthorized:  {core.FaultDenied, false, "not authorized (0x87)"},
		packet.CodeTopicInvalid:   {core.FaultInvalid, false, "topic name invalid (0x90)"},
		packet.CodeIDInUse:        {core.FaultConflict, true, "packet identifier in use (0x91)"},
		packet.CodeTooLarge:       {core.FaultTooLarge, false, "packet too large (0x95)"},
		packet.CodeQuota:          {core.FaultExhausted, true, "quota exceeded (0x97)"},
		packet.CodePayloadFormat:  {core.FaultInvalid, false, "payload format invalid (0x99)"},
		0xF0:                      {core.FaultInternal, false, "unknown reason (0xF0)"},
	} {
		for qos, typ := range map[byte]byte{1: packet.TypePuback, 2: packet.TypePubrec} {
			r := newRig(t, Config{})
			r.up(Server{})
			i := r.add(qos)
			r.sent()
			if err := r.o.Ack(r.w, typ, &packet.Ack{ID: 1, Code: code, Reason: "because"}); err != nil {
				t.Fatal(err)
			}
			r.o.Flush()
			r.wantSent("") // no PUBREL follows
			f := r.want(i, pluginapi.ReceiptRefused).Fault
			if f.Code != want.fault || f.Transient != want.again || !strings.Contains(f.Message, want.text) ||
				!strings.HasPrefix(f.Message, `publish to "t/0": `) || !strings.Contains(f.Message, `"because"`) {
				t.Errorf("QoS %d, 0x%02X: %v (%d, %t)", qos, code, f, f.Code, f.Transient)
			}
		}
	}
}

// What the server says is checked before anything of a message is written (M-13).
func TestServerLimits(t *testing.T) {
	r := newRig(t, Config{MaxPacket: 2000})
	r.up(Server{MaximumQoS: 1, NoRetain: true, MaxPacket: 1000})
	large := func(n int) func(*Post) { return func(p *Post) { p.Message.Payload = make([]byte, n) } }
	for i, want := range map[int]struct {
		code core.FaultCode
		text string
	}{
		r.add(2): {core.FaultUnsupported, "QoS 2, and the server takes 1 at most; publish with qos 1"},
		r.add(1, func(p *Post) { p.Retain = true }): {core.FaultUnsupported, "the server retains no messages; publish without retain"},
		r.add(1, large(1200)):                       {core.FaultTooLarge, "a packet of 1211 bytes, the server's limit is 1000"},
		r.add(0, large(3000)):                       {core.FaultTooLarge, "a packet of 3009 bytes, the limit (max_packet_size) is 2000"},
	} {
		f := r.want(i, pluginapi.ReceiptRefused).Fault
		if f.Code != want.code || f.Transient || !strings.Contains(f.Error(), want.text) {
			t.Errorf("message %d: %v", i, f)
		}
	}
	r.wantSent("")
	i := r.add(2, func(p *Post) { p.Copy = true }) // with what the server takes
	r.wantSent("PUBLISH q1 #1 t/4\n")
	r.ack(packet.TypePuback, 1, 0)
	r.want(i, pluginapi.ReceiptConfirmed)
	r.add(1, large(989)) // a packet of 1000 bytes
	r.wantSent("PUBLISH q1 #2 t/5\n")
}

// What one server has had and the next one does not take may have arrived.
func TestNextServersLimits(t *testing.T) {
	r := newRig(t, Config{})
	r.up(Server{})
	sent := r.add(1, func(p *Post) { p.Retain = true })
	r.down()
	waits := r.add(1, func(p *Post) { p.Retain = true })
	r.up(Server{NoRetain: true})
	r.wantSent("")
	r.want(sent, pluginapi.ReceiptUnknown)
	r.want(waits, pluginapi.ReceiptRefused)
}

// A link that does not write is given no more than keeps it busy.
func TestSlowLink(t *testing.T) {
	const size = 100 << 10
	r := newRig(t, Config{})
	r.up(Server{})
	r.w.stuck = true
	for range 10 {
		r.add(0, func(p *Post) { p.Message.Payload = make([]byte, size) })
	}
	if n := r.w.Waiting(); n < size || n > maxAhead+2*size {
		t.Errorf("%d bytes wait in the link", n)
	}
	for i := range 10 {
		r.w.write(size + 100)
		r.o.Wrote(r.w)
		r.want(i, pluginapi.ReceiptConfirmed)
	}
}

// No more is under way than the server takes; QoS 0 keeps its place in the order.
func TestReceiveMaximum(t *testing.T) {
	r := newRig(t, Config{Window: 5})
	r.up(Server{ReceiveMaximum: 2})
	for _, q := range []byte{1, 2, 0, 1, 0} {
		r.add(q)
	}
	r.wantSent("PUBLISH q1 #1 t/0\nPUBLISH q2 #2 t/1\nPUBLISH q0 t/2\n")
	r.ack(packet.TypePubrec, 2, 0) // it counts until PUBCOMP
	r.wantSent("PUBREL #2\n")
	r.ack(packet.TypePubcomp, 2, 0)
	r.wantSent("PUBLISH q1 #3 t/3\nPUBLISH q0 t/4\n")
	r.ack(packet.TypePuback, 3, packet.CodeQuota) // out of order, and refused
	r.add(1)
	r.wantSent("PUBLISH q1 #4 t/5\n")
	r.down()
	r.up(Server{Present: true, ReceiveMaximum: 1})
	r.wantSent("PUBLISH q1 #1 dup t/0\n")
	r.ack(packet.TypePuback, 1, 0)
	r.wantSent("PUBLISH q1 #4 dup t/5\n")
}

// A server that answers what was not asked loses its connection.
func TestBreaches(t *testing.T) {
	for name, do := range map[string]func(r *rig) error{
		"PUBACK of QoS 2":  func(r *rig) error { r.add(2); return r.o.Ack(r.w, packet.TypePuback, &packet.Ack{ID: 1}) },
		"PUBREC of QoS 1":  func(r *rig) error { r.add(1); return r.o.Ack(r.w, packet.TypePubrec, &packet.Ack{ID: 1}) },
		"PUBCOMP too soon": func(r *rig) error { r.add(2); return r.o.Ack(r.w, packet.TypePubcomp, &packet.Ack{ID: 1}) },
		"not sent": func(r *rig) error {
			r.w.stuck = true
			r.add(1)
			r.down()
			r.up(Server{Present: true, ReceiveMaximum: 1})
			r.add(0) // nothing of message 0 was written, and it waits
			r.o.mu.Lock()
			r.o.queue.first.given = false
			r.o.mu.Unlock()
			return r.o.Ack(r.w, packet.TypePuback, &packet.Ack{ID: 1})
		},
	} {
		r := newRig(t, Config{})
		r.up(Server{})
		var breach *packet.ProtocolError
		if err := do(r); !errors.As(err, &breach) || breach.Code != packet.CodeProtocolError {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A server that only sends is not answered for ever.
func TestStrays(t *testing.T) {
	r := newRig(t, Config{})
	r.up(Server{})
	r.w.stuck = true
	r.add(2)
	var err error
	n := 0
	for ; err == nil && n < 10*maxStrays; n++ {
		err = r.o.Ack(r.w, packet.TypePubrec, &packet.Ack{ID: uint16(n%2*7 + 1)})
		r.o.Flush()
	}
	if err == nil || n > maxStrays+2 {
		t.Errorf("%d are answered, then: %v", n, err)
	}
	r.down()
	r.up(Server{Present: true})
	r.ack(packet.TypePubrec, 9, 0)
	r.wantSent("PUBREL #1\nPUBREL #9 0x92\n")
}

// A PUBCOMP that tells of a failure leaves open what became of the message, but
// where PUBREL went out again: then the answer to the first was lost.
func TestPubcompNotFound(t *testing.T) {
	for recovered, want := range map[bool]pluginapi.ReceiptStatus{false: pluginapi.ReceiptUnknown, true: pluginapi.ReceiptConfirmed} {
		r := newRig(t, Config{})
		r.up(Server{})
		i := r.add(2)
		r.ack(packet.TypePubrec, 1, 0)
		if recovered {
			r.down()
			r.up(Server{Present: true})
			r.wantSent("PUBREL #1\n")
		}
		r.ack(packet.TypePubcomp, 1, packet.CodeIDNotFound)
		r.want(i, want)
	}
}

func TestBounds(t *testing.T) {
	r := newRig(t, Config{})
	for range maxMessages {
		r.add(1)
	}
	i := r.add(1)
	if f := r.want(i, pluginapi.ReceiptRefused).Fault; f.Code != core.FaultExhausted || !f.Transient {
		t.Errorf("%v", f)
	}
	r.o.Fail(&core.Fault{Code: core.FaultDenied, Message: "no"})
	r.want(0, pluginapi.ReceiptRefused)

	r = newRig(t, Config{})
	half := make([]byte, maxBytes/2)
	for i, want := range []pluginapi.ReceiptStatus{0, pluginapi.ReceiptRefused} {
		r.want(r.add(0, func(p *Post) { p.Message.Payload = half }), want)
		if i == 1 && r.receipt(i).Fault.Code != core.FaultExhausted {
			t.Errorf("%v", r.receipt(i).Fault)
		}
	}
}
