// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"fmt"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/intake"
)

// An ack that is given while there is no connection is kept until the server
// sends the packet again.
func TestAckBetweenLinks(t *testing.T) {
	for _, qos := range []byte{1, 2} {
		t.Run(fmt.Sprint(qos), func(t *testing.T) {
			b := newBench(t)
			rc := b.open("a", qos)
			b.up(intake.Session{})
			s := sent{topic: "a", payload: "x", qos: qos, id: 7, for_: []string{"a"}, count: "1", expiry: 9}
			b.send(s)
			d := rc.one()
			b.down()
			rc.done(d)
			b.up(intake.Session{Present: true})
			want(t, "answers before it comes again", b.answers(), none)
			s.expiry = 8 // what is left of it
			b.send(s.again())
			want(t, "answers", b.answers(), []string{[]string{"PUBACK 7", "PUBREC 7"}[qos-1]})
			if list, voids := rc.receive(wide); len(list)+len(voids) > 0 {
				t.Errorf("got %v and %v", texts(list), voids)
			}
			if b.in.Returns(&d.carry) {
				t.Error("it returns")
			}
		})
	}
}

// A server that has given a message up may use its identifier for another one.
func TestAckBetweenLinksIsNoStrangers(t *testing.T) {
	for name, s := range map[string]sent{
		"not sent before":  q1(7, "a", "x", "a"),
		"another message":  q1(7, "a", "y", "a").again(),
		"another quality":  q2(7, "a", "x", "a").again(),
		"of another topic": q1(7, "a/b", "x", "a").again(),
		"its own copy":     {topic: "a", payload: "x", qos: 1, id: 7, dup: true, for_: []string{"a"}, count: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			rc := b.open("a", 2)
			b.up(intake.Session{})
			b.send(q1(7, "a", "x", "a"))
			d := rc.one()
			b.down()
			rc.done(d)
			b.up(intake.Session{Present: true})
			b.send(s)
			want(t, "answers", b.answers(), none)
			rc.one()
		})
	}
}

// An ack that was given while its link ended, unknown to us, is kept as well.
func TestAckThatWasNotWritten(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 1)
	b.up(intake.Session{})
	b.send(q1(7, "a", "x", "a"))
	d := rc.one()
	b.link.die()
	rc.done(d)
	b.again()
	b.send(q1(7, "a", "x", "a").again())
	want(t, "answers", b.answers(), []string{"PUBACK 7"})
	want(t, "deliveries", len(rc.all()), 0)
	want(t, "left behind", b.in.State(), intake.State{})
}

// An ack that its link does not take any more is no matter of what has come since:
// another link, the end, or the packet once more.
func TestAckThatIsTooLateForItsLink(t *testing.T) {
	handed := func(t *testing.T) (*bench, *receiver, got) {
		b := newBench(t)
		rc := b.open("a", 1)
		b.up(intake.Session{Kept: true})
		b.send(q1(7, "a", "x", "a"))
		return b, rc, rc.one()
	}
	t.Run("another link", func(t *testing.T) {
		b, rc, d := handed(t)
		b.link.onWrite = func() { b.lost() }
		rc.done(d)
		b.send(q1(7, "a", "stranger", "a"))
		want(t, "deliveries", texts(rc.all()), []string{"a stranger"})
		want(t, "answers", b.answers(), none)
	})
	t.Run("the end", func(t *testing.T) {
		b, rc, d := handed(t)
		b.link.onWrite = func() {
			b.link.die()
			b.in.Fail(&core.Fault{Code: core.FaultDenied, Message: "banned"})
		}
		rc.done(d)
		want(t, "left behind", b.in.State(), intake.State{})
	})
	t.Run("once more", func(t *testing.T) {
		b, rc, d := handed(t)
		b.link.onWrite = func() {
			b.send(q1(7, "a", "x", "a").again())
			b.link.die()
		}
		rc.done(d)
		rc.letGo(rc.one())
		b.again()
		b.send(q1(7, "a", "x", "a").again())
		want(t, "deliveries", texts(rc.all()), []string{"a x"})
	})
}
