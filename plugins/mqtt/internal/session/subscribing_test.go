// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// Each filter has a packet of its own with its identifier; a second subscriber of
// one that is granted asks nothing.
func TestSubscribe_S_MQT_28(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := newDesk(t), &wire{}
		a, b := d.declare(jobs(), &target{}), d.declare(group(), &target{})
		first, second := d.begin(a), d.begin(a) // both wait for a connection
		d.up(w, true, all)
		other := d.begin(b)
		expect(t, w.said(t), "65280: "+askJobs, "65281: "+askGroup)
		d.reply(65280, 1)
		d.reply(65281, 2)
		for _, got := range []chan *core.Fault{first, second, other, d.begin(a)} {
			if f := <-got; f != nil {
				t.Error(f)
			}
		}
		expect(t, w.said(t))
	})
}

// Without a session all that was subscribed to is asked for again, at once; a
// resumed one has it.
func TestSubscribeAgain_M_04(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := newDesk(t), &wire{}
		a, b := d.declare(jobs(), &target{}), d.declare(group(), &target{})
		d.up(w, false, all)
		expect(t, w.said(t)) // nobody has asked yet
		got := d.begin(a)
		d.reply(65280, 1)
		<-got
		w.said(t)
		d.down()
		d.up(w, true, all)
		expect(t, w.said(t))
		waits := d.begin(b)
		expect(t, w.said(t), "65281: "+askGroup)
		d.down() // before the answer
		d.up(w, true, all)
		expect(t, w.said(t), "65282: "+askGroup)
		if err := d.acked(packet.TypeSuback, &packet.Suback{ID: 65281, Codes: []byte{2}}); err == nil {
			t.Error("an answer to what another connection was asked is taken")
		}
		d.reply(65282, 2)
		if f := <-waits; f != nil {
			t.Error(f)
		}
		d.down()
		d.up(w, false, all)
		expect(t, w.said(t), "65283: "+askJobs, "65284: "+askGroup)
		if f := <-d.begin(a); f != nil { // known to be granted, and being asked for again
			t.Error(f)
		}
	})
}

// The answer to a SUBSCRIBE that was taken back is not that to the next one.
func TestAnswerToWhatWasTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := newDesk(t), &wire{}
		d.up(w, false, all)
		a := d.declare(jobs(), &target{})
		first := d.begin(a)
		d.reply(65280, 1)
		<-first
		d.unsubscribe(a)
		second := d.begin(a)
		d.unsubscribe(a)
		<-second
		third, beside := d.begin(a), d.begin(a)
		expect(t, w.said(t), "65280: "+askJobs, "65281: unsubscribe jobs", "65282: "+askJobs, "65283: unsubscribe jobs", "65284: "+askJobs)
		d.reply(65282, 1)
		select {
		case f := <-third:
			t.Errorf("it is granted before its answer: %v", f)
		case f := <-beside:
			t.Errorf("it is granted before its answer: %v", f)
		default:
		}
		d.reply(65284, packet.CodeNotAuthorized)
		for _, got := range []chan *core.Fault{third, beside} {
			if f := <-got; f == nil || f.Code != core.FaultDenied {
				t.Errorf("got %v", f)
			}
		}
	})
}

// Who stops waiting is told so; what was asked for can be taken back.
func TestUnsubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := newDesk(t), &wire{}
		a := d.declare(jobs(), &target{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if f := d.subscribe(ctx, a); f == nil || f.Code != core.FaultTimeout || !f.Transient {
			t.Errorf("without a connection: %v", f)
		}
		d.unsubscribe(a) // before it was asked for
		d.up(w, false, all)
		expect(t, w.said(t))
		got := d.begin(a)
		d.unsubscribe(a) // before the answer
		if f := <-got; f == nil {
			t.Error("who waited was told that it is granted")
		}
		expect(t, w.said(t), "65280: "+askJobs, "65281: unsubscribe jobs")
		d.reply(65280, 1) // of what is not wanted any more
		if err := d.acked(packet.TypeUnsuback, &packet.Suback{ID: 65281, Codes: []byte{0}}); err != nil {
			t.Error(err)
		}
		got = d.begin(a)
		expect(t, w.said(t), "65282: "+askJobs)
		d.reply(65282, 1)
		if f := <-got; f != nil {
			t.Error(f)
		}
		d.unsubscribe(a)
		d.unsubscribe(a)
		expect(t, w.said(t), "65283: unsubscribe jobs")
		d.down()
		d.up(w, false, all)
		expect(t, w.said(t))
	})
}

// Answers to nothing that was asked end the connection.
func TestStrangeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := newDesk(t), &wire{}
		d.up(w, false, all)
		a := d.declare(jobs(), &target{})
		got := d.begin(a)
		for _, s := range []struct {
			typ byte
			a   packet.Suback
		}{
			{packet.TypeSuback, packet.Suback{ID: 1, Codes: []byte{0}}},
			{packet.TypeSuback, packet.Suback{ID: a.id, Codes: []byte{0, 0}}},
			{packet.TypeSuback, packet.Suback{ID: a.id}},
			{packet.TypeUnsuback, packet.Suback{ID: a.id, Codes: []byte{0}}},
		} {
			if _, ok := errors.AsType[*packet.ProtocolError](d.acked(s.typ, &s.a)); !ok {
				t.Errorf("%s %+v was taken", packet.Name(s.typ), s.a)
			}
		}
		d.reply(a.id, 1)
		if f := <-got; f != nil {
			t.Error(f)
		}
	})
}

// The end of all is told to who waits, and to who comes later.
func TestSubscriptionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		a := d.declare(jobs(), &target{})
		got := d.begin(a)
		why := &core.Fault{Code: core.FaultDenied, Message: "banned"}
		d.end(why)
		for _, f := range []*core.Fault{<-got, d.subscribe(t.Context(), a)} {
			if f != why {
				t.Error(f)
			}
		}
	})
}

// More filters than there are packet identifiers are asked for as answers come.
func TestManyFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := newDesk(t), &wire{}
		const n = 600
		var answers []chan *core.Fault
		for i := range n {
			answers = append(answers, d.begin(d.declare(Filter{Name: fmt.Sprint("t", i), QoS: 1}, &target{})))
		}
		d.up(w, false, all)
		asked := 0
		for asked < n {
			said := w.said(t)
			if len(said) == 0 || asked == 0 && len(said) != lastID-firstID+1 {
				t.Fatalf("%d asked, %d more", asked, len(said))
			}
			asked += len(said)
			for _, s := range said {
				var id uint16
				if _, err := fmt.Sscanf(s, "%d:", &id); err != nil || id < firstID {
					t.Fatal(s, err)
				}
				d.reply(id, 1)
			}
		}
		for _, a := range answers {
			if f := <-a; f != nil {
				t.Fatal(f)
			}
		}
	})
}
