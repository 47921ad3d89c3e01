// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"testing"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/carry"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/intake"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// Nothing is sent again on one connection, and yet some servers do.
func TestSentAgainOnOneLink(t *testing.T) {
	tests := map[string]struct {
		do      func(b *bench, rc *receiver)
		again   sent
		want    []string // deliveries
		answers []string
		code    byte
	}{
		"waits":   {func(*bench, *receiver) {}, q1(7, "a", "x", "a").again(), []string{"a x"}, nil, 0},
		"in hand": {func(_ *bench, rc *receiver) { rc.one() }, q1(7, "a", "x", "a").again(), nil, nil, 0},
		"let go":  {func(_ *bench, rc *receiver) { rc.letGo(rc.one()) }, q1(7, "a", "x", "a").again(), []string{"a x"}, nil, 0},
		"acked, so it is a new one": {func(_ *bench, rc *receiver) { rc.done(rc.one()) }, q1(7, "a", "x", "a").again(),
			[]string{"a x"}, []string{"PUBACK 7"}, 0},
		"another one under an identifier in use": {func(_ *bench, rc *receiver) { rc.one() }, q1(7, "a", "y", "a"), nil, nil, packet.CodeProtocolError},
		"the same without DUP":                   {func(_ *bench, rc *receiver) { rc.one() }, q1(7, "a", "x", "a"), nil, nil, 0},
		"of another quality":                     {func(_ *bench, rc *receiver) { rc.one() }, q2(7, "a", "x", "a").again(), nil, nil, packet.CodeProtocolError},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(c *intake.Config) { c.ReceiveMaximum = 1 })
			rc := b.open("a", 2)
			b.up(intake.Session{})
			b.send(q1(7, "a", "x", "a"))
			tt.do(b, rc)
			b.send(tt.again)
			want(t, "deliveries", texts(rc.all()), tt.want)
			want(t, "answers", b.answers(), tt.answers)
			want(t, "the link's end", b.link.over(), tt.code)
		})
	}
}

// One of several has let go of it, and the server sends it again at once.
func TestSentAgainToSeveral(t *testing.T) {
	b := newBench(t)
	x, y, z := b.open("x", 1), b.open("y", 1), b.open("z", 1)
	b.up(intake.Session{})
	s := q1(7, "a", "m", "x", "y", "z")
	b.send(s)
	x.letGo(x.one())
	dy := y.one() // z has not asked for it yet
	b.send(s.again())
	_, voids := y.receive(pluginapi.Room{})
	want(t, "voids", voids, []pluginapi.Void{{Handles: []any{dy.handle}, Returns: true}}, sameHandles)
	for _, rc := range []*receiver{x, y, z} {
		want(t, "answers", b.answers(), none)
		rc.done(rc.one())
	}
	want(t, "answers", b.answers(), []string{"PUBACK 7"})
	want(t, "left behind", b.in.State(), intake.State{})
}

func TestSentAgainBehindPUBREC(t *testing.T) {
	for name, tt := range map[string]struct {
		resumed bool
		again   sent
		fresh   bool
	}{
		"DUP":                               {false, q2(7, "a", "x", "a").again(), false},
		"no DUP":                            {false, q2(7, "a", "x", "a"), false},
		"another message before PUBREL":     {false, q2(7, "a", "y", "a"), false}, // none, whatever it says [MQTT-4.3.3-10]
		"resumed, DUP":                      {true, q2(7, "a", "x", "a").again(), false},
		"resumed, no DUP":                   {true, q2(7, "a", "x", "a"), false},
		"resumed, another message":          {true, q2(7, "a", "y", "a"), true},
		"resumed, another message with DUP": {true, q2(7, "a", "y", "a").again(), true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			rc := b.open("a", 2)
			b.up(intake.Session{})
			b.send(q2(7, "a", "x", "a"))
			rc.done(rc.one())
			if b.answers(); tt.resumed {
				b.again()
			}
			b.send(tt.again)
			if tt.fresh {
				want(t, "answers", b.answers(), none)
				want(t, "deliveries", texts(rc.all()), []string{"a y"})
				return
			}
			want(t, "answers", b.answers(), []string{"PUBREC 7"})
			want(t, "deliveries", len(rc.all()), 0)
			want(t, "slots", b.in.State().Flight, 1)
			b.send(pubrel(7))
			want(t, "slots", b.in.State().Flight, 0)
		})
	}
}

// A server that has given up a QoS 2 message uses its identifier for another one
// while the first is still in hand, or waits.
func TestIdentifierOfAMessageThatWasGivenUp(t *testing.T) {
	for name, inHand := range map[string]bool{"in hand": true, "waits": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			rc := b.open("a", 2)
			b.up(intake.Session{})
			b.send(q2(7, "a", "x", "a"))
			var d got
			if inHand {
				d = rc.one()
			}
			b.again()
			b.send(q2(7, "a", "y", "a"))
			list, voids := rc.receive(wide)
			if inHand {
				want(t, "voids", voids, []pluginapi.Void{{Handles: []any{d.handle}}}, sameHandles)
				want(t, "deliveries", texts(list), []string{"a y"})
			} else {
				want(t, "deliveries", texts(list), []string{"a x", "a y"})
				want(t, "profile of what nobody can settle", list[0].profile, uint32(intake.ProfileNoAcks))
				list = list[1:]
			}
			rc.done(list...)
			want(t, "answers", b.answers(), []string{"PUBREC 7"})
		})
	}
}

func TestPUBRELOutOfPlace(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 2)
	b.up(intake.Session{})
	b.send(q2(7, "a", "x", "a"), q1(8, "a", "y", "a"), pubrel(7), pubrel(8), pubrel(9))
	want(t, "answers", b.answers(), []string{"PUBCOMP 7 0x92", "PUBCOMP 8 0x92", "PUBCOMP 9 0x92"})
	rc.done(rc.all()...)
	want(t, "answers", b.answers(), []string{"PUBREC 7", "PUBACK 8"})
	b.send(pubrel(7), pubrel(7))
	want(t, "answers", b.answers(), []string{"PUBCOMP 7", "PUBCOMP 7 0x92"})
	want(t, "left behind", b.in.State(), intake.State{})
}

// While there is no link nothing is handed out that may come again over the next
// one; QoS 2 and 0 go on.
func TestReceiveBetweenLinks(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 2)
	b.up(intake.Session{})
	b.send(q2(1, "a", "2", "a"), q0("a", "0", "a"), q1(2, "a", "1", "a"), q0("a", "behind", "a"))
	b.down()
	list := rc.all()
	want(t, "deliveries", texts(list), []string{"a 2", "a 0"})
	rc.done(list[0])
	b.up(intake.Session{Present: true})
	want(t, "deliveries", texts(rc.all()), []string{"a behind"})
	b.send(q2(1, "a", "2", "a").again(), q1(2, "a", "1", "a").again())
	want(t, "answers", b.answers(), []string{"PUBREC 1"})
	want(t, "deliveries", texts(rc.all()), []string{"a 1"})
}

// A void that the host has not read yet is made true when the next session is
// another one.
func TestVoidIsCorrected(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 1)
	b.up(intake.Session{})
	b.send(q1(7, "a", "x", "a"))
	d := rc.one()
	b.again()
	b.lost()
	_, voids := rc.receive(wide)
	want(t, "voids", voids, []pluginapi.Void{{Handles: []any{d.handle}}}, sameHandles)
}

func TestReturnsIsOneConnections(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 1)
	b.up(intake.Session{})
	b.send(q1(7, "a", "x", "a"))
	d := rc.one()
	b.again()
	other := d.carry
	other.Instance = carry.NewInstance()
	if b.in.Returns(&other) {
		t.Error("another connection's delivery returns")
	}
	b.again()
	if b.in.Returns(&d.carry) {
		t.Error("it returns with every link that comes")
	}
}

// A server that sends what is no PUBLISH, and one that does not read.
func TestLinkIsEnded(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 1)
	b.up(intake.Session{})
	raw := q1(1, "a", "x", "a").append(nil)
	if err := b.write(append(raw, 0x30, 4, 0, 1, '#', 0)); err == nil { // a wildcard in a topic
		t.Error("a PUBLISH with a wildcard is taken")
	}
	want(t, "what came before", rc.one().text, "a x")
	b.link.waiting = 65 << 20
	b.send(q0("a", "x", "a"))
	want(t, "the link's end", b.link.over(), packet.CodeQuota)
}

// What a link has sent that is down by now is nothing to anybody.
func TestPacketsOfALinkThatIsDown(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 1)
	old := b.up(intake.Session{})
	b.again()
	live := b.link
	b.link = old
	b.send(q1(1, "a", "x", "a"))
	b.link = live
	want(t, "deliveries", len(rc.all()), 0)
	want(t, "left behind", b.in.State(), intake.State{})
}
