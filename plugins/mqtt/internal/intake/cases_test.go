// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/intake"
)

// M-01: nobody waits for a slow one.
func TestM_01_AcksInTheOrderOfVerdicts(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 1)
	b.up(intake.Session{})
	var list []got
	for id := range uint16(10) {
		b.send(q1(id+1, "a", fmt.Sprint(id+1), "a"))
		list = append(list, rc.one())
	}
	rc.done(list[9], list[4])
	rc.done(list[0])
	want(t, "answers", b.answers(), []string{"PUBACK 10", "PUBACK 5", "PUBACK 1"})
	pieces := b.link.pieces
	rc.done(list[1:4]...)
	want(t, "writes for three acks", b.link.pieces-pieces, 1)
}

// M-03: a handler that is busy over a reconnect acks nothing that was not
// delivered on the link that is there.
func TestM_03_BusyOverReconnects(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 1)
	b.up(intake.Session{})
	b.send(q1(1, "a", "1", "a"), q1(2, "a", "2", "a"), q1(3, "a", "3", "a"))
	busy := rc.all()
	b.again()
	b.send(q1(1, "a", "1", "a").again())
	rc.ack(busy...)
	want(t, "answers", b.answers(), none)
	b.again()
	rc.ack(busy...)
	want(t, "answers", b.answers(), none)
	_, voids := rc.receive(pluginapi.Room{})
	n := 0
	for _, v := range voids {
		n += len(v.Handles)
	}
	want(t, "voids", n, 3)
}

// M-07: a QoS 2 message is handled once in the life of a process as long as its
// session is kept, wherever the link is cut.
func TestM_07_CutAnywhere(t *testing.T) {
	s := q2(7, "a", "x", "a")
	cuts := []string{"queued", "in hand", "acked between the links", "acked before it comes again", "PUBREC", "PUBREL"}
	for i, name := range cuts {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			rc := b.open("a", 2)
			b.up(intake.Session{})
			b.send(s)
			var list []got
			if i > 0 {
				list = rc.all()
			}
			if i >= 4 {
				rc.done(list...)
				want(t, "answers", b.answers(), []string{"PUBREC 7"})
			}
			b.down()
			if i == 2 {
				rc.done(list...)
			}
			b.up(intake.Session{Present: true})
			if i == 3 {
				rc.done(list...)
				want(t, "answers", b.answers(), none)
			}
			if i < 5 {
				b.send(s.again())
				if i <= 1 {
					want(t, "answers before the ack", b.answers(), none)
					if i == 0 {
						list = rc.all()
					}
					rc.done(list...)
				}
				want(t, "answers", b.answers(), []string{"PUBREC 7"})
			}
			b.send(pubrel(7))
			want(t, "answers", b.answers(), []string{"PUBCOMP 7"})
			if more, voids := rc.receive(wide); len(list) != 1 || len(more)+len(voids) > 0 {
				t.Errorf("handled %d times, then %v and %v", len(list), texts(more), voids)
			}
			want(t, "left behind", b.in.State(), intake.State{})
		})
	}
}

func TestM_08_PUBRELOfAFormerProcess(t *testing.T) {
	b := newBench(t, func(c *intake.Config) { c.ReceiveMaximum = 1 })
	rc := b.open("a", 2)
	b.up(intake.Session{Present: true, Kept: true})
	b.send(pubrel(5))
	want(t, "answers", b.answers(), []string{"PUBCOMP 5 0x92"})
	for id := range uint16(5) {
		b.send(q2(id+1, "a", "x", "a"))
		rc.done(rc.one())
		b.send(pubrel(id + 1))
	}
	want(t, "the link's end", b.link.over(), byte(0))
	want(t, "slots", b.in.State().Flight, 0)
}

// M-14: what comes before a subscription is opened waits for it; what nobody wants
// does not block the rest.
func TestM_14_BeforeTheHandlerExists(t *testing.T) {
	b := newBench(t)
	rt := b.route("a", 1)
	b.up(intake.Session{Present: true, Kept: true})
	b.send(q1(1, "a", "1", "a"), q0("a", "0", "a"), q1(2, "a", "2", "a"))
	want(t, "answers", b.answers(), none)
	rc := &receiver{t: t, Receiver: rt.Open("a")}
	list := rc.all()
	want(t, "deliveries", texts(list), []string{"a 1", "a 0", "a 2"})
	rc.done(list[0], list[2])
	want(t, "answers", b.answers(), []string{"PUBACK 1", "PUBACK 2"})
}

func TestM_14_LeftOverFilter(t *testing.T) {
	b := newBench(t, func(c *intake.Config) { c.ReceiveMaximum = 5 })
	rc := b.open("a", 2)
	b.up(intake.Session{Present: true, Kept: true})
	for id := range uint16(50) {
		b.send(q1(id+1, "gone/topic", "x", "gone/+"))
	}
	b.send(q2(100, "gone/topic", "x", "gone/+"), q0("gone/topic", "x"), q1(101, "a", "x", "a"))
	want(t, "deliveries", texts(rc.all()), []string{"a x"})
	answers := b.answers()
	if len(answers) != 51 || answers[0] != "PUBACK 1" || answers[50] != "PUBREC 100" {
		t.Errorf("answers %v", answers)
	}
	b.send(pubrel(100))
	want(t, "slots", b.in.State().Flight, 1)
	want(t, "counted", b.in.Counters().LeftOver, uint64(52))
	lines := b.log.lines(core.LogHeld.String())
	if len(lines) != 1 {
		t.Fatalf("lines %q, want one", lines)
	}
	for _, part := range []string{"level=WARN", "topic=gone/topic", "count="} {
		if !strings.Contains(lines[0], part) {
			t.Errorf("%q does not say %s", lines[0], part)
		}
	}
}
