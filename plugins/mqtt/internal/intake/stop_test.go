// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/intake"
)

// ended fails unless a receiver has nothing more to give.
func (r *receiver) ended(cause error) {
	r.t.Helper()
	if b, ok, err := r.Take(wide); ok || !errors.Is(err, cause) {
		r.t.Errorf("got %d deliveries and %v, want %v", len(b.Deliveries), err, cause)
	}
}

// Acks leave behind the end of intake, what waits is nobody's.
func TestStopIntake(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 1)
	b.up(intake.Session{})
	b.send(q1(1, "a", "1", "a"))
	d := rc.one()
	b.send(q1(2, "a", "2", "a"))
	rc.StopIntake()
	rc.StopIntake()
	rc.ended(io.EOF)
	b.send(q1(3, "a", "3", "a"))
	rc.done(d)
	want(t, "answers", b.answers(), []string{"PUBACK 1"})
	rc.Close()
	rc.ended(io.EOF)
	// The route is still there: who opens it next has what nobody has settled.
	rc = b.open("a", 1)
	list := rc.all()
	want(t, "deliveries", texts(list), []string{"a 2", "a 3"})
	rc.done(list...)
	want(t, "answers", b.answers(), []string{"PUBACK 2", "PUBACK 3"})
}

// What waits for a member that ends goes to the others.
func TestStopOfAMember(t *testing.T) {
	b := newBench(t)
	x, y := b.open("a", 1), b.open("a", 1)
	b.up(intake.Session{})
	for id := range uint16(4) {
		b.send(q1(id+1, "a", fmt.Sprint(id), "a"))
	}
	x.StopIntake()
	b.send(q1(5, "a", "4", "a"))
	list := y.all()
	want(t, "deliveries", len(list), 5)
	y.done(list...)
	want(t, "answers", len(b.answers()), 5)
	x.Close()
}

// Behind its last receiver a route keeps what can be answered, and nothing else.
func TestQoS0BehindTheLastReceiver(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 1)
	b.up(intake.Session{})
	b.send(q0("a", "0", "a"), q1(1, "a", "1", "a"))
	rc.StopIntake()
	b.send(q0("a", "0", "a"), q1(2, "a", "2", "a"))
	rc.Close()
	want(t, "unread", b.in.Counters().Unread, uint64(1))
	want(t, "deliveries", texts(b.open("a", 1).all()), []string{"a 1", "a 2"})
	want(t, "lines", len(b.log.lines("WARN")), 0)
}

// A member that stands still does not get its share of the window.
func TestMemberThatStandsStill(t *testing.T) {
	b := newBench(t, func(c *intake.Config) { c.ReceiveMaximum = 200 })
	x, y := b.open("a", 1), b.open("a", 1)
	b.up(intake.Session{})
	n := 0
	for id := range uint16(1000) {
		b.send(q1(id+1, "a", "x", "a"))
		list := y.all()
		y.done(list...)
		n += len(list)
	}
	want(t, "handled by the other", n > 900, true)
	x.done(x.all()...)
	want(t, "left behind", b.in.State(), intake.State{})
	want(t, "unanswered", b.in.Counters().Unanswered < 100, true)
}

// What is in hand when a receiver is closed stays unanswered, and comes again.
func TestCloseLetsGo(t *testing.T) {
	for _, qos := range []byte{1, 2} {
		t.Run(fmt.Sprint(qos), func(t *testing.T) {
			b := newBench(t)
			rc, other := b.open("a", qos), b.open("a/#", qos)
			b.up(intake.Session{})
			s := sent{topic: "a", payload: "x", qos: qos, id: 7, for_: []string{"a", "a/#"}}
			b.send(s)
			rc.one()
			other.done(other.one())
			rc.StopIntake()
			rc.Close()
			want(t, "answers", b.answers(), none)
			want(t, "slots", b.in.State().Flight, 1)
			rc = b.open("a", qos)
			want(t, "deliveries", len(rc.all()), 0)
			b.again()
			b.send(s.again())
			rc.done(rc.one())
			other.done(other.one())
			want(t, "answers", len(b.answers()), 1)
		})
	}
}

func TestRemove(t *testing.T) {
	b := newBench(t)
	rt := b.route("a", 1)
	rc := &receiver{t: t, Receiver: rt.Open("a")}
	b.up(intake.Session{})
	b.send(q1(1, "a", "1", "a"), q0("a", "0", "a"))
	rc.StopIntake()
	rc.Close()
	b.send(q1(2, "a", "2", "a"))
	rt.Remove()
	rt.Remove()
	want(t, "answers", b.answers(), []string{"PUBACK 1", "PUBACK 2"})
	b.send(q1(3, "a", "3", "a"))
	want(t, "answers", b.answers(), []string{"PUBACK 3"})
	want(t, "left over", b.in.Counters().LeftOver, uint64(3))
	want(t, "unread", b.in.Counters().Unread, uint64(1))
	want(t, "left behind", b.in.State(), intake.State{})
	again := b.open("a", 1)
	b.send(q1(4, "a", "4", "a"))
	want(t, "delivery", again.one().text, "a 4")
}

// The session ends for good: what waits is delivered where it is all that is left.
func TestFail(t *testing.T) {
	fault := &core.Fault{Code: core.FaultDenied, Message: "no"}
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprint("kept ", kept), func(t *testing.T) {
			b := newBench(t)
			rc := b.open("a", 2)
			b.up(intake.Session{Kept: kept})
			b.send(q1(1, "a", "1", "a"), q2(2, "a", "2", "a"))
			held := rc.all()
			b.send(q1(3, "a", "3", "a"), q2(4, "a", "4", "a"), q0("a", "0", "a"))
			b.down()
			b.in.Fail(fault)
			b.in.Fail(&core.Fault{Message: "another"})
			list, voids := rc.receive(pluginapi.Room{})
			if len(voids) != 1 || len(list) > 0 {
				t.Errorf("without room got %v and %v", texts(list), voids)
			}
			if _, ok, err := rc.Take(pluginapi.Room{}); ok || err != nil {
				t.Errorf("without room it ends with %v, and messages wait", err)
			}
			list, _ = rc.until(fault)
			want(t, "voids", len(voids), 1)
			want(t, "handles", len(voids[0].Handles), 2)
			want(t, "returns", voids[0].Returns, kept)
			if kept {
				want(t, "deliveries", texts(list), []string{"a 0"})
			} else {
				want(t, "deliveries", texts(list), []string{"a 3", "a 4", "a 0"})
			}
			want(t, "late ack", rc.ack(held[0])[0] == pluginapi.ResultDone, !kept)
			late := b.open("b", 1)
			late.ended(fault)
		})
	}
}

// until receives until the cause.
func (r *receiver) until(cause error) (list []got, voids []pluginapi.Void) {
	r.t.Helper()
	for {
		b, ok, err := r.Take(wide)
		if errors.Is(err, cause) {
			return list, voids
		}
		if err != nil || !ok {
			r.t.Fatalf("receive: %v and %v", ok, err)
		}
		for i := range b.Deliveries {
			list = append(list, r.take(&b.Deliveries[i]))
		}
		voids = append(voids, b.Voids...)
	}
}

// One filter is refused, the others go on.
func TestFailOfARoute(t *testing.T) {
	fault := &core.Fault{Code: core.FaultDenied, Message: "no"}
	b := newBench(t)
	rt := b.route("a", 1)
	x, y := &receiver{t: t, Receiver: rt.Open("a")}, b.open("b", 1)
	b.up(intake.Session{})
	b.send(q1(1, "a", "1", "a"), q1(2, "b", "2", "b"))
	rt.Fail(fault)
	list, _ := x.until(fault)
	x.done(list...)
	y.done(y.one())
	want(t, "answers", b.answers(), []string{"PUBACK 1", "PUBACK 2"})
	x.StopIntake()
	x.Close()
	x = &receiver{t: t, Receiver: rt.Open("a")}
	x.ended(fault)
}

// Who waits for messages is told of the end.
func TestFailRousesWhoWaits(t *testing.T) {
	fault := &core.Fault{Code: core.FaultDenied, Message: "no"}
	for name, fail := range map[string]func(*bench, *intake.Route){
		"of the route": func(_ *bench, rt *intake.Route) { rt.Fail(fault) },
		"of all":       func(b *bench, _ *intake.Route) { b.in.Fail(fault) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				rt := b.route("a", 1)
				rc := rt.Open("a")
				b.up(intake.Session{})
				ended := make(chan error, 1)
				go func() {
					_, err := rc.Receive(t.Context(), wide)
					ended <- err
				}()
				synctest.Wait()
				fail(b, rt)
				synctest.Wait()
				select {
				case err := <-ended:
					if !errors.Is(err, fault) {
						t.Errorf("receive: %v", err)
					}
				default:
					t.Error("it still waits")
				}
			})
		})
	}
}

func TestCloseTellsWhatWasLost(t *testing.T) {
	for kept, lost := range map[bool]string{true: "unread=2", false: "unread=3"} {
		t.Run(fmt.Sprint("kept ", kept), func(t *testing.T) { closeTells(t, kept, lost) })
	}
}

func closeTells(t *testing.T, kept bool, lost string) {
	b := newBench(t)
	rc, rt := b.open("a", 1), b.route("b", 0)
	b.up(intake.Session{Kept: kept})
	b.send(q0("a", "1", "a"), q1(1, "a", "2", "a"), q0("b", "3", "b"))
	b.down()
	b.in.Close()
	b.in.Close()
	rc.ended(io.EOF)
	rc.StopIntake()
	rc.Close()
	(&receiver{t: t, Receiver: rt.Open("b")}).ended(io.EOF)
	lines := b.log.lines("messages were lost")
	if len(lines) != 1 || !strings.Contains(lines[0], lost) {
		t.Errorf("lines %q", lines)
	}
	want(t, "waiting", b.in.State().Loose, 0)
}
