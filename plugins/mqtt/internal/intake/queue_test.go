// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/intake"
)

func TestRoomIsObeyed(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 0)
	b.up(intake.Session{})
	text := strings.Repeat("x", 999) // with the topic 1,000 bytes, and the identifier
	for range 600 {
		b.send(q0("a", text, "a"))
	}
	for _, tt := range []struct {
		room pluginapi.Room
		want int
	}{
		{pluginapi.Room{}, 0},
		{pluginapi.Room{Messages: 5}, 0},
		{pluginapi.Room{Bytes: 5}, 0},
		{pluginapi.Room{Messages: 3, Bytes: 1 << 20}, 3},
		{pluginapi.Room{Messages: 100, Bytes: 1}, 1},
		{pluginapi.Room{Messages: 100, Bytes: 2500}, 3},
		{wide, 115}, // about a frame
	} {
		batch, _, err := rc.Take(tt.room)
		if got := len(batch.Deliveries); err != nil || got != tt.want {
			t.Errorf("room %+v: %d deliveries and %v, want %d", tt.room, got, err, tt.want)
		}
		if batch.Memory != nil {
			batch.Memory.Release()
		}
	}
	for range 600 {
		b.send(q0("a", "", "a"))
	}
	rc.receive(pluginapi.Room{Messages: 480, Bytes: 1 << 30}) // the large ones
	batch, _, _ := rc.Take(wide)
	want(t, "small ones in a batch", len(batch.Deliveries), 256)
}

// M-14, D14: what is read as fast as it comes and handled slowly has a bound, and
// what is beyond it is counted and told.
func TestQoS0QueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *intake.Config) { c.QoS0Messages, c.QoS0Bytes = 10, 1000 })
		x, y := b.open("a", 1), b.open("b", 0)
		b.up(intake.Session{})
		for i := range 8 {
			b.send(q0("a", fmt.Sprint(i), "a"), q0("b", fmt.Sprint(i), "b"), q1(uint16(i+1), "a", "acked", "a"))
		}
		want(t, "waiting", b.in.State().Loose, 10)
		want(t, "dropped", b.in.Counters().Dropped, uint64(6))
		want(t, "lines", len(b.log.lines("are dropped")), 1)
		time.Sleep(time.Second)
		b.send(q0("b", "late", "b"))
		lines := b.log.lines("are dropped")
		if len(lines) != 2 || !strings.Contains(lines[1], "topic=b count=5 total=7") {
			t.Errorf("lines %q", lines)
		}
		list := x.all()
		want(t, "deliveries, the oldest", len(list), 5+8)
		want(t, "deliveries, the oldest", texts(y.all()), []string{"b 0", "b 1", "b 2", "b 3", "b 4"})
		want(t, "waiting", b.in.State().Loose, 0)
		b.send(q0("b", strings.Repeat("x", 2000), "b"), q0("b", "y", "b")) // one is always taken
		want(t, "bytes that wait", b.in.State().Bytes > 1000, true)
		want(t, "deliveries", len(y.all()), 1)
		b.in.Close()
		lines = b.log.lines("messages were lost")
		if len(lines) != 1 || !strings.Contains(lines[0], "dropped=8") {
			t.Errorf("lines %q", lines)
		}
	})
}

// Before a route is opened it keeps the newest.
func TestQoS0BeforeARouteIsOpened(t *testing.T) {
	b := newBench(t)
	rt := b.route("a", 1)
	b.up(intake.Session{})
	const more = 4000 // so that more than are held come in one read
	var list []sent
	for i := range intake.HeldLoose + more {
		list = append(list, q0("a", fmt.Sprint(i), "a"))
		if i%100 == 0 {
			list = append(list, q1(uint16(i+1), "a", "acked", "a"))
		}
	}
	b.send(list...) // in a read, whose memory nobody owns yet
	want(t, "unsound", b.in.Unsound(), "")
	for i := range more {
		b.send(q0("a", fmt.Sprint(intake.HeldLoose+more+i), "a"))
	}
	rc := &receiver{t: t, Receiver: rt.Open("a")}
	var got []string
	for _, s := range texts(rc.all()) {
		if s != "a acked" {
			got = append(got, s)
		}
	}
	want(t, "kept", len(got), intake.HeldLoose)
	want(t, "the first", got[0], fmt.Sprint("a ", 2*more))
	want(t, "the last", got[len(got)-1], fmt.Sprint("a ", intake.HeldLoose+2*more-1))
	want(t, "left behind", b.in.State().Loose, 0)
	for range intake.HeldLoose + more {
		b.send(q0("a", "open", "a"))
	}
	want(t, "kept once it is open", len(rc.all()), intake.HeldLoose+more)
}

// What waited when its session was lost is all that is left: it is delivered, and
// bounded as QoS 0 is.
func TestWhatIsLeftOfALostSession(t *testing.T) {
	b := newBench(t, func(c *intake.Config) { c.QoS0Messages = 12 })
	rc := b.open("a", 2)
	b.up(intake.Session{})
	for round := range 3 {
		for id := range uint16(5) {
			b.send(sent{topic: "a", payload: fmt.Sprint(round, id), qos: byte(1 + id%2), id: id + 1, for_: []string{"a"}})
		}
		b.lost()
	}
	list := rc.all()
	want(t, "deliveries", len(list), 12)
	for i, d := range list {
		want(t, "text", d.text, fmt.Sprint("a ", i/5, i%5))
		want(t, "profile", d.profile, uint32(intake.ProfileNoAcks))
		want(t, "handle", d.handle, nil)
	}
	want(t, "dropped", b.in.Counters().Dropped, uint64(3))
	want(t, "left behind", b.in.State(), intake.State{})
}

// What expires while it waits is settled, not delivered.
func TestExpiresWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		rc := b.open("a", 2)
		b.up(intake.Session{})
		for i, s := range []sent{q1(1, "a", "1", "a"), q2(2, "a", "2", "a"), q0("a", "0", "a"), q1(3, "a", "long", "a")} {
			if s.expiry = 10; i == 3 {
				s.expiry = 60
			}
			b.send(s)
		}
		time.Sleep(10 * time.Second)
		d := rc.one()
		want(t, "delivery", d.text, "a long")
		if left, ok := d.carry.Expiry(time.Now()); !ok || left != 50 {
			t.Errorf("%d s are left, %v; want 50", left, ok)
		}
		want(t, "answers", b.answers(), []string{"PUBACK 1", "PUBREC 2"})
		want(t, "expired", b.in.Counters().Expired, uint64(3))
		rc.done(d)
		b.send(pubrel(2))
		want(t, "left behind", b.in.State(), intake.State{})
		b.send(q0("a", "x", "a"))
		rc.all()
		if lines := b.log.lines("expired while"); len(lines) != 1 || !strings.Contains(lines[0], "count=3 total=3") {
			t.Errorf("lines %q", lines)
		}
		b.send(sent{topic: "a", payload: "at once", qos: 1, id: 9, for_: []string{"a"}, expiry: 1})
		want(t, "not expired yet", rc.one().text, "a at once")
	})
}

// The server may lower the QoS of a subscription, and still send what it had
// queued before.
func TestGrantedQoS0(t *testing.T) {
	b := newBench(t)
	rt := b.route("a", 1)
	rt.Grant(0)
	rc := &receiver{t: t, Receiver: rt.Open("a")}
	other := b.open("b", 1)
	b.up(intake.Session{})
	b.send(q1(1, "a", "x", "a"), q2(2, "a", "y", "a", "b"))
	want(t, "answers before it is handed out", b.answers(), none)
	for _, d := range rc.all() {
		want(t, "profile", d.profile, uint32(0))
		want(t, "handle", d.handle, nil)
	}
	want(t, "answers", b.answers(), []string{"PUBACK 1"})
	other.done(other.one())
	want(t, "answers", b.answers(), []string{"PUBREC 2"})
}

func TestRetainedAndUndecodable(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 1)
	b.up(intake.Session{})
	s := q1(1, "a", "x", "a")
	s.retain = true
	b.send(s)
	d := rc.one()
	want(t, "mqtt-retained", d.headers.Value("mqtt-retained"), "true")
	rc.done(d)
	bad := q1(2, "a", "x", "a").append(nil)
	at := strings.Index(string(bad), "\x0b") // the identifier's property
	bad = append(bad[:at:at], append([]byte{0x26, 0, 1, 0xFF, 0, 1, 'v'}, bad[at:]...)...)
	bad[1] += 7
	bad[at-1] += 7
	if err := b.write(bad); err != nil {
		t.Fatal(err)
	}
	d = rc.one()
	if d.fault == nil || d.fault.Code != core.FaultInvalid {
		t.Errorf("fault %v, want one that says what cannot be read", d.fault)
	}
	rc.done(d)
	want(t, "answers", b.answers(), []string{"PUBACK 1", "PUBACK 2"})
	want(t, "counted", b.in.Counters().Undecoded, uint64(1))
}

// Identifiers of nobody: the session has a filter of an earlier process, whose
// messages are for those that match now.
func TestStrays(t *testing.T) {
	b := newBench(t)
	rc := b.open("a/+", 1)
	b.up(intake.Session{Present: true})
	b.send(q1(1, "a/b", "x", "a/#"), q1(2, "a/b", "y", "a/#", "a/+"), q1(3, "a/b", "z", "a/+", "a/+"))
	list := rc.all()
	want(t, "deliveries", texts(list), []string{"a/b x", "a/b y", "a/b z"})
	rc.done(list...)
	want(t, "answers", len(b.answers()), 3)
	want(t, "counted", b.in.Counters().Strays, uint64(1))
	want(t, "lines", len(b.log.lines("an earlier process has left")), 1)
}

func TestReceiveWaits(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 1)
	b.up(intake.Session{})
	got := make(chan pluginapi.Batch)
	failed := make(chan error)
	go func() {
		for {
			batch, err := rc.Receive(t.Context(), wide)
			if err != nil {
				failed <- err
				return
			}
			got <- batch
		}
	}()
	for id := range uint16(3) {
		b.send(q1(id+1, "a", "x", "a"))
		want(t, "deliveries", len((<-got).Deliveries), 1)
	}
	b.again()
	n := 0
	for n < 3 {
		for _, v := range (<-got).Voids {
			n += len(v.Handles)
		}
	}
	b.send(q1(1, "a", "x", "a"))
	<-got
	b.down()
	b.up(intake.Session{Present: true})
	want(t, "voids", len((<-got).Voids), 1)
	b.in.Fail(&core.Fault{Message: "no"})
	if f, ok := errors.AsType[*core.Fault](<-failed); !ok || f.Message != "no" {
		t.Errorf("receive: %v", f)
	}
}

// Who waits is roused by what becomes of messages that it may not have yet.
func TestReceiveIsRoused(t *testing.T) {
	for name, f := range map[string]func(b *bench, x, y *receiver){
		"its session is lost": func(b *bench, x, _ *receiver) { // what waits is delivered then
			b.send(q1(1, "a", "x", "a"), q1(2, "a", "x", "a"))
			b.down()
			go b.up(intake.Session{})
		},
		"another gets what has taken its identifier": func(b *bench, x, y *receiver) {
			b.send(q2(1, "a", "1", "a"), q2(2, "a", "2", "a"))
			x.all()
			y.all()
			b.again()
			b.send(q2(3, "a", "3", "a"), q2(1, "a", "4", "a"), q2(4, "a", "5", "a"), q2(2, "a", "6", "a"))
		},
		"the other member ends": func(b *bench, x, y *receiver) {
			b.send(q1(1, "a", "1", "a"), q1(2, "a", "2", "a"))
			x.all()
			go y.StopIntake()
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			x, y := b.open("a", 2), b.open("a", 2)
			b.up(intake.Session{})
			f(b, x, y)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			batch, err := x.Receive(ctx, wide)
			if err != nil || len(batch.Deliveries)+len(batch.Voids) == 0 {
				t.Errorf("got nothing and %v", err)
			}
		})
	}
}

func TestReceiveEndsWithItsContext(t *testing.T) {
	b := newBench(t)
	rc := b.open("a", 1)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := rc.Receive(ctx, wide)
		failed <- err
	}()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("receive: %v", err)
	}
	if _, err := rc.Receive(ctx, wide); !errors.Is(err, context.Canceled) {
		t.Errorf("receive: %v", err)
	}
}
