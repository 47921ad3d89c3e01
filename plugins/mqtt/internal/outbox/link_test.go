// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/carry"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// A resumed session goes on where the old connection ended: PUBREL first, in the
// order of PUBREC, then PUBLISH in the order of old.
func TestResume(t *testing.T) {
	r := newRig(t, Config{})
	r.up(Server{})
	for _, q := range []byte{2, 1, 2, 1, 2, 0} {
		r.add(q)
	}
	r.sent()
	r.ack(packet.TypePubrec, 5, 0)
	r.ack(packet.TypePubrec, 3, 0)
	r.ack(packet.TypePuback, 2, 0)
	r.down()
	r.add(1)
	r.up(Server{Present: true})
	r.wantSent("PUBREL #5\nPUBREL #3\nPUBLISH q2 #1 dup t/0\nPUBLISH q1 #4 dup t/3\nPUBLISH q1 #6 t/6\n")
}

// In a new session QoS 1 is published anew, and nothing is said of QoS 2 that was
// written (S-MQT-25, note).
func TestNewSession(t *testing.T) {
	r := newRig(t, Config{})
	r.up(Server{})
	q1, rec, pub := r.add(1), r.add(2), r.add(2)
	r.ack(packet.TypePubrec, 2, 0)
	r.down()
	never := r.add(2)
	r.up(Server{})
	r.wantSent("PUBLISH q1 #1 t/0\nPUBLISH q2 #4 t/3\n")
	for _, i := range []int{rec, pub} {
		if f := r.want(i, pluginapi.ReceiptUnknown).Fault; f.Code != core.FaultUnavailable {
			t.Errorf("%v", f)
		}
	}
	r.ack(packet.TypePuback, 1, 0)
	r.want(q1, pluginapi.ReceiptConfirmed)
	r.want(never, 0)
}

// A packet that was not written whole no server has: it is sent as a new one, in
// its place, whatever its QoS.
func TestWrittenInPart(t *testing.T) {
	for _, present := range []bool{false, true} {
		r := newRig(t, Config{})
		r.up(Server{})
		r.w.stuck = true
		whole, part := r.add(0), r.add(0)
		r.add(2)
		r.add(1)
		r.w.write(15) // packets of QoS 0 have 9 bytes
		r.down()
		r.want(whole, pluginapi.ReceiptConfirmed)
		r.want(part, 0)
		r.up(Server{Present: present})
		r.wantSent("PUBLISH q0 t/1\nPUBLISH q2 #1 t/2\nPUBLISH q1 #2 t/3\n")
		r.want(part, pluginapi.ReceiptConfirmed)
	}
}

// S-MQT-25: a copy of a delivery that comes back is not sent; of one that is gone
// it is.
func TestCopiesOfVoidDeliveries(t *testing.T) {
	returns := false
	r := newRig(t, Config{Returns: func(c *carry.Carry) bool { return returns && c.ID == 7 }})
	r.up(Server{})
	stems := func(id uint16) func(*Post) {
		return func(p *Post) { p.Copy, p.Carried, p.Carry = true, true, carry.Carry{Link: 1, ID: id, QoS: 1} }
	}
	r.w.stuck = true
	given := r.add(1, stems(7))
	r.w.write(1)
	r.down()
	waits, other := r.add(1, stems(7)), r.add(1, stems(8))
	returns = true
	r.up(Server{Present: true})
	late := r.add(1, stems(7))
	for _, i := range []int{given, waits, late} {
		if f := r.want(i, pluginapi.ReceiptRefused).Fault; !f.Transient {
			t.Errorf("message %d: %v", i, f)
		}
	}
	r.wantSent("PUBLISH q1 #2 t/2\n")
	r.down()
	returns = false
	again := r.add(1, stems(7))
	r.up(Server{})
	r.wantSent("PUBLISH q1 #2 t/2\nPUBLISH q1 #3 t/4\n")
	r.ack(packet.TypePuback, 2, 0)
	r.ack(packet.TypePuback, 3, 0)
	r.want(other, pluginapi.ReceiptConfirmed)
	r.want(again, pluginapi.ReceiptConfirmed)
}

// A copy that the server may have is sent on, though its delivery comes back: to
// say that it was not sent could be wrong.
func TestCopyThatWasWritten(t *testing.T) {
	returns := false
	r := newRig(t, Config{Returns: func(*carry.Carry) bool { return returns }})
	r.up(Server{})
	written := r.add(1, func(p *Post) { p.Copy, p.Carried, p.Carry = true, true, carry.Carry{Link: 1, ID: 7, QoS: 1} })
	r.down()
	returns = true
	r.up(Server{Present: true})
	r.wantSent("PUBLISH q1 #1 dup t/0\n")
	r.ack(packet.TypePuback, 1, 0)
	r.want(written, pluginapi.ReceiptConfirmed)
}

// The first messages of QoS 2 in a session that a former process has left wait
// until it has nothing more under their ids.
func TestFormerProcess(t *testing.T) {
	r := newRig(t, Config{Window: 2})
	r.up(Server{Present: true})
	r.add(1)
	r.add(2)
	r.wantSent("PUBLISH q1 #1 t/0\nPUBREL #1 0x92\nPUBREL #2 0x92\n")
	r.ack(packet.TypePubcomp, 1, packet.CodeIDNotFound)
	r.wantSent("")
	r.down()
	r.up(Server{Present: true})
	r.wantSent("PUBREL #2 0x92\nPUBLISH q1 #1 dup t/0\n")
	r.ack(packet.TypePubcomp, 2, 0)
	r.wantSent("PUBLISH q2 #2 t/1\n")
	r.ack(packet.TypePubrec, 2, 0)
	r.wantSent("PUBREL #2\n")
	r.ack(packet.TypePubcomp, 2, 0)
	r.want(1, pluginapi.ReceiptConfirmed)
}

// Identifiers begin where the Config says, those of a former process too, and no
// others are known.
func TestFirstID(t *testing.T) {
	r := newRig(t, Config{Window: 2, FirstID: MaxID - 1})
	r.up(Server{Present: true})
	first, second := r.add(1), r.add(2)
	r.wantSent("PUBLISH q1 #65278 t/0\nPUBREL #65278 0x92\nPUBREL #65279 0x92\n")
	r.ack(packet.TypePuback, 1, 0)
	r.ack(packet.TypePubcomp, 2, 0)
	r.ack(packet.TypePubcomp, MaxID, packet.CodeIDNotFound)
	r.wantSent("PUBLISH q2 #65279 t/1\n")
	r.ack(packet.TypePubrec, MaxID, 0)
	r.ack(packet.TypePubcomp, MaxID, 0)
	r.ack(packet.TypePuback, MaxID-1, 0)
	r.want(first, pluginapi.ReceiptConfirmed)
	r.want(second, pluginapi.ReceiptConfirmed)
	o := New(Config{Window: 9, FirstID: MaxID})
	if got := o.ids.ring; got[0] != MaxID-8 || got[8] != MaxID {
		t.Errorf("ids %v, want the last 9", got)
	}
}

// A link that has ended takes nothing, and what it was not given is sent over the
// next one.
func TestDeadLink(t *testing.T) {
	r := newRig(t, Config{})
	r.up(Server{})
	r.w.dead = true
	i := r.add(0)
	r.add(1)
	r.want(i, 0)
	r.down()
	r.o.Down(r.w, EndByServer) // again
	r.o.Wrote(r.w)
	dead := r.w
	late := func() {
		t.Helper()
		if err := r.o.Ack(dead, packet.TypePuback, &packet.Ack{ID: 1}); err != nil {
			t.Errorf("an ack of a link that is down: %v", err)
		}
		r.o.Flush()
	}
	late()
	r.up(Server{Present: true})
	r.wantSent("PUBLISH q0 t/0\nPUBLISH q1 #1 t/1\n")
	r.want(i, pluginapi.ReceiptConfirmed)
	late()
	r.want(1, 0)
	r.ack(packet.TypePuback, 1, 0)
	r.want(1, pluginapi.ReceiptConfirmed)
}

// A PUBREC for what this link was not given yet, for want of room, is an answer all
// the same, and leaves no more room than there is.
func TestAnsweredBeforeItIsSentAgain(t *testing.T) {
	r := newRig(t, Config{})
	r.up(Server{})
	first, second := r.add(2), r.add(2)
	r.down()
	r.up(Server{Present: true, ReceiveMaximum: 1})
	r.wantSent("PUBLISH q2 #1 dup t/0\n")
	r.ack(packet.TypePubrec, 2, 0)
	r.wantSent("PUBREL #2\n")
	r.ack(packet.TypePubcomp, 2, 0)
	r.want(second, pluginapi.ReceiptConfirmed)
	third := r.add(2)
	r.wantSent("")
	r.ack(packet.TypePubrec, 1, 0)
	r.ack(packet.TypePubcomp, 1, 0)
	r.want(first, pluginapi.ReceiptConfirmed)
	r.wantSent("PUBREL #1\nPUBLISH q2 #3 t/2\n")
	r.want(third, 0)
}
