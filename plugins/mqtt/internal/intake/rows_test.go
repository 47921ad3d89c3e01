// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/intake"
)

// want fails unless got is what is wanted.
func want[T any](t testing.TB, what string, got, want T, o ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, o...); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

// none is what is written where nothing is.
var none []string

func TestS_MQT_01_AckIsPUBACK(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 1)
	b.up(intake.Session{})
	b.send(q1(7, "a", "x", "a"))
	d := rc.one()
	want(t, "delivery", d.text, "a x")
	want(t, "profile", d.profile, uint32(intake.ProfileAcks))
	want(t, "before the ack", b.answers(), none)
	rc.done(d)
	want(t, "answers", b.answers(), []string{"PUBACK 7"})
	want(t, "left behind", b.in.State(), intake.State{})
	want(t, "a second ack", rc.ack(d), []pluginapi.ResultStatus{pluginapi.ResultStale})
	want(t, "answers to it", b.answers(), none)
}

func TestS_MQT_02_AckIsPUBREC(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 2)
	b.up(intake.Session{})
	b.send(q2(7, "a", "x", "a"))
	rc.done(rc.one())
	want(t, "answers", b.answers(), []string{"PUBREC 7"})
	want(t, "slots", b.in.State().Flight, 1)
	b.send(pubrel(7))
	want(t, "answers", b.answers(), []string{"PUBCOMP 7"})
	want(t, "left behind", b.in.State(), intake.State{})
}

// S-MQT-03 is S-MQT-01 and 02 with another outcome: the host acks what is dropped.

func TestS_MQT_04_QoS0HasNoAck(t *testing.T) {
	for _, qos := range []byte{0, 1} {
		t.Run(fmt.Sprintf("subscribed with %d", qos), func(t *testing.T) {
			b := newBench(t)
			rc := b.open("a", qos)
			b.up(intake.Session{})
			b.send(q0("a", "x", "a"))
			d := rc.one()
			want(t, "profile", d.profile, uint32(qos)) // the second one, or the only one
			want(t, "ack", rc.ack(d), []pluginapi.ResultStatus{pluginapi.ResultUnsupported})
			rc.letGo(d)
			b.again()
			if list, voids := rc.receive(wide); len(list)+len(voids) > 0 {
				t.Errorf("got %v and %v", texts(list), voids)
			}
			want(t, "answers", b.answers(), none)
		})
	}
}

func TestS_MQT_05_RetryKeepsTheSlot(t *testing.T) {
	for _, qos := range []byte{1, 2} {
		t.Run(fmt.Sprint(qos), func(t *testing.T) {
			b := newBench(t)
			rc := b.open("a", qos)
			b.up(intake.Session{})
			s := sent{topic: "a", payload: "x", qos: qos, id: 7, for_: []string{"a"}}
			b.send(s)
			d := rc.one()
			rc.letGo(d)
			want(t, "slots", b.in.State().Flight, 1)
			want(t, "ack behind it", rc.ack(d), []pluginapi.ResultStatus{pluginapi.ResultStale})
			want(t, "answers", b.answers(), none)
			b.again()
			if _, voids := rc.receive(wide); len(voids) > 0 {
				t.Errorf("voids %v for what the host has let go", voids)
			}
			want(t, "slots of the new link", b.in.State().Flight, 0)
			b.send(s.again())
			d = rc.one()
			if !d.headers.Has("mqtt-redelivered") {
				t.Errorf("headers %v do not say that it comes again", d.headers)
			}
			rc.done(d)
			want(t, "answers", b.answers(), []string{[]string{"PUBACK 7", "PUBREC 7"}[qos-1]})
		})
	}
}

// The server may have no more than its window of messages that are not answered;
// those that were let go are among them, and QoS 0 goes by. Mosquitto sends more
// all the same, which is told once a link.
func TestS_MQT_06_WindowIsUsedUp(t *testing.T) {
	b := newBench(t, func(c *intake.Config) { c.ReceiveMaximum = 3 })
	rc := b.open("a", 1)
	b.up(intake.Session{})
	for id := range uint16(3) {
		b.send(q1(id+1, "a", "x", "a"))
		rc.letGo(rc.one())
	}
	b.send(q0("a", "y", "a"))
	want(t, "QoS 0", rc.one().text, "a y")
	want(t, "the link's end", b.link.over(), byte(0))
	want(t, "lines", len(b.log.lines("receive_maximum")), 0)
	b.send(q1(4, "a", "x", "a"), q1(5, "a", "x", "a"))
	b.send(q1(6, "a", "x", "a"))
	rc.done(rc.all()...)
	want(t, "the link's end", b.link.over(), byte(0))
	lines := b.log.lines("receive_maximum")
	if len(lines) != 1 || !strings.Contains(lines[0], "unanswered=5 receive_maximum=3") {
		t.Errorf("lines %q", lines)
	}
	want(t, "counted", b.in.Counters().Unanswered, uint64(6))
	b.again()
	for id := range uint16(6) {
		b.send(q1(id+1, "a", "x", "a").again())
	}
	want(t, "lines with another link", len(b.log.lines("receive_maximum")), 2)
}

// The late ack of a delivery whose link is gone settles nobody else's packet.
func TestS_MQT_25_SessionResumed(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 1)
	b.up(intake.Session{})
	b.send(q1(7, "a", "x", "a"))
	d := rc.one()
	if b.in.Returns(&d.carry) {
		t.Error("it returns while its link is up")
	}
	b.again()
	if !b.in.Returns(&d.carry) {
		t.Error("it does not return, and its session was resumed")
	}
	list, voids := rc.receive(pluginapi.Room{})
	want(t, "deliveries", len(list), 0)
	want(t, "voids", voids, []pluginapi.Void{{Handles: []any{d.handle}, Returns: true}}, sameHandles)
	b.send(q1(7, "a", "x", "a").again())
	want(t, "late ack", rc.ack(d), []pluginapi.ResultStatus{pluginapi.ResultStale})
	want(t, "answers", b.answers(), none)
	d = rc.one()
	want(t, "link of its carry", d.carry.Link, uint64(2))
	rc.done(d)
	want(t, "answers", b.answers(), []string{"PUBACK 7"})
	b.again()
	if b.in.Returns(&d.carry) {
		t.Error("it returns, and was acked")
	}
}

func TestS_MQT_25_SessionLost(t *testing.T) {
	for _, qos := range []byte{1, 2} {
		t.Run(fmt.Sprint(qos), func(t *testing.T) {
			b := newBench(t)
			rc := b.open("a", qos)
			b.up(intake.Session{})
			b.send(sent{topic: "a", payload: "x", qos: qos, id: 7, for_: []string{"a"}})
			d := rc.one()
			b.lost()
			if b.in.Returns(&d.carry) {
				t.Error("it returns, and its session is gone")
			}
			b.send(sent{topic: "a", payload: "stranger", qos: qos, id: 7, for_: []string{"a"}})
			// An ack that crosses the void on its way must not be taken for one of a
			// delivery that returns: what is to follow it would be left out.
			want(t, "ack before the void", rc.ack(d), []pluginapi.ResultStatus{pluginapi.ResultDone})
			want(t, "answers", b.answers(), none)
			list, voids := rc.receive(wide)
			want(t, "deliveries", texts(list), []string{"a stranger"})
			want(t, "voids", voids, []pluginapi.Void{{Handles: []any{d.handle}}}, sameHandles)
		})
	}
}

// sameHandles compares handles by identity.
var sameHandles = cmp.Comparer(func(a, b []any) bool { return slices.Equal(a, b) })

func TestS_MQT_26_OnePacketForEachFilter(t *testing.T) {
	b := newBench(t)
	x, y := b.open("a/b", 1), b.open("a/#", 1)
	b.up(intake.Session{})
	b.send(q1(1, "a/b", "m", "a/b"), q1(2, "a/b", "m", "a/#"))
	y.done(y.one())
	want(t, "answers", b.answers(), []string{"PUBACK 2"})
	x.done(x.one())
	want(t, "answers", b.answers(), []string{"PUBACK 1"})
}

func TestS_MQT_28_MembersTakeTurns(t *testing.T) {
	b := newBench(t)
	x, y := b.open("a", 1), b.open("a", 1)
	b.up(intake.Session{})
	for id := range uint16(10) {
		b.send(q1(id+1, "a", "x", "a"))
	}
	dx, dy := x.all(), y.all()
	if len(dx) != 5 || len(dy) != 5 {
		t.Fatalf("%d and %d deliveries, want 5 each", len(dx), len(dy))
	}
	want(t, "ack of another's", y.ack(dx[0]), []pluginapi.ResultStatus{pluginapi.ResultStale})
	want(t, "answers", b.answers(), none)
	x.done(dx...)
	y.done(dy...)
	want(t, "answers", len(b.answers()), 10)
}

func TestS_MQT_36_NoOutcome(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 2)
	b.up(intake.Session{})
	b.send(q1(1, "a", "1", "a"), q2(2, "a", "2", "a"), q0("a", "0", "a"))
	rc.letGo(rc.all()...)
	want(t, "answers", b.answers(), none)
	want(t, "slots", b.in.State().Flight, 2)
	b.again()
	b.send(q1(1, "a", "1", "a").again(), q2(2, "a", "2", "a").again())
	want(t, "deliveries", texts(rc.all()), []string{"a 1", "a 2"})
}

func TestS_MQT_38_LetGoThenReconnected(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 1)
	b.up(intake.Session{})
	b.send(q1(1, "a", "1", "a"))
	rc.letGo(rc.one())
	for range 3 {
		b.again()
		b.send(q1(1, "a", "1", "a").again())
		rc.letGo(rc.one())
	}
	b.again()
	b.send(q1(1, "a", "1", "a").again())
	rc.done(rc.one())
	want(t, "answers", b.answers(), []string{"PUBACK 1"})
}

// One packet for several filters is acked behind all of them, whatever the order
// (D23, M-09).
func TestS_MQT_40_OneAckBehindAll(t *testing.T) {
	for _, qos := range []byte{1, 2} {
		for _, first := range []int{0, 1, 2} {
			t.Run(fmt.Sprint(qos, first), func(t *testing.T) {
				b := newBench(t)
				rcs := []*receiver{b.open("a/b", qos), b.open("a/#", qos), b.open("$share/g/a/+", qos)}
				b.up(intake.Session{})
				b.send(sent{topic: "a/b", payload: "m", qos: qos, id: 9, for_: []string{"a/b", "a/#", "$share/g/a/+"}})
				for i := range rcs {
					rc := rcs[(first+i)%3]
					want(t, "answers", b.answers(), none)
					rc.done(rc.one())
				}
				want(t, "answers", b.answers(), []string{[]string{"PUBACK 9", "PUBREC 9"}[qos-1]})
			})
		}
	}
}

// One that leaves it keeps the packet from being acked, before the others' acks as
// behind them, and it comes again to all.
func TestS_MQT_42_OneLeavesIt(t *testing.T) {
	for _, qos := range []byte{1, 2} {
		for _, last := range []bool{false, true} {
			t.Run(fmt.Sprint(qos, last), func(t *testing.T) {
				b := newBench(t)
				x, y, z := b.open("a/b", qos), b.open("a/#", qos), b.open("a/+", qos)
				b.up(intake.Session{})
				s := sent{topic: "a/b", payload: "m", qos: qos, id: 9, for_: []string{"a/b", "a/#", "a/+"}}
				b.send(s)
				dx, dy, dz := x.one(), y.one(), z.one()
				if !last {
					y.letGo(dy)
				}
				x.done(dx)
				if last {
					y.letGo(dy)
				}
				want(t, "slots", b.in.State().Flight, 1)
				b.again()
				// What the third one still has comes again to it as well.
				_, voids := z.receive(pluginapi.Room{})
				want(t, "voids", voids, []pluginapi.Void{{Handles: []any{dz.handle}, Returns: true}}, sameHandles)
				b.send(s.again())
				want(t, "answers", b.answers(), none)
				for _, rc := range []*receiver{x, y, z} {
					rc.done(rc.one())
				}
				want(t, "answers", b.answers(), []string{[]string{"PUBACK 9", "PUBREC 9"}[qos-1]})
			})
		}
	}
}

func TestS_MQT_41_SharedFilterMatchesByTopic(t *testing.T) {
	b := newBench(t)
	rc := b.open("$share/g/a/+", 1)
	b.up(intake.Session{})
	b.send(q1(1, "a/x", "m")) // a server without subscription identifiers
	rc.done(rc.one())
	want(t, "answers", b.answers(), []string{"PUBACK 1"})
}

// What is let go returns the credit; only the server's slots stay taken.
func TestS_MQT_44_CreditBeyondWhatWasLetGo(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 1)
	b.up(intake.Session{})
	for id := range uint16(65) {
		b.send(q1(id+1, "a", "x", "a"))
		list, _ := rc.receive(pluginapi.Room{Messages: 1, Bytes: 1})
		if len(list) != 1 {
			t.Fatalf("delivery %d does not come", id+1)
		}
		rc.letGo(list...)
	}
	want(t, "slots", b.in.State().Flight, 65)
}
