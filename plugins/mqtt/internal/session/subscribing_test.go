// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/client"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wire is a connection that keeps what is written to it.
type wire struct {
	mu      sync.Mutex
	written bytes.Buffer
	waiting []byte
	over    bool
}

func (w *wire) Append(f func([]byte) []byte) (uint64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return 0, false
	}
	w.waiting = f(w.waiting)
	return 0, true
}

func (w *wire) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written.Write(w.waiting)
	w.waiting = nil
}

// said are the packets since the last call, in words.
func (w *wire) said(t *testing.T) []string {
	t.Helper()
	w.Flush()
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for w.written.Len() > 0 {
		p, err := packets.ReadPacket(&w.written)
		if err != nil {
			t.Fatal(err)
		}
		switch c := p.Content.(type) {
		case *packets.Subscribe:
			for _, s := range c.Subscriptions {
				id := 0
				if c.Properties.SubscriptionIdentifier != nil {
					id = *c.Properties.SubscriptionIdentifier
				}
				out = append(out, fmt.Sprintf("%d: subscribe %s as %d, QoS %d, handling %d, no local %v, as published %v",
					c.PacketID, s.Topic, id, s.QoS, s.RetainHandling, s.NoLocal, s.RetainAsPublished))
			}
		case *packets.Unsubscribe:
			out = append(out, fmt.Sprintf("%d: unsubscribe %s", c.PacketID, strings.Join(c.Topics, " ")))
		default:
			t.Fatalf("%v", p)
		}
	}
	return out
}

// target is where messages of a filter would go.
type target struct {
	mu      sync.Mutex
	granted []byte
	failed  *core.Fault
}

func (r *target) Grant(qos byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.granted = append(r.granted, qos)
}

func (r *target) Fail(f *core.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = f
}

// all is a server that can do everything.
var all = client.Limits{Wildcards: true, Shared: true, Identifiers: true}

// desk is subscriptions with a log.
type desk struct {
	*subscriptions
	t   *testing.T
	log bytes.Buffer
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t}
	d.subscriptions = newSubscriptions(slog.New(slog.NewTextHandler(&d.log, nil)))
	t.Cleanup(func() { d.end(fault.Closed("subscribe")) })
	return d
}

// begin starts to subscribe and returns what gets the answer.
func (d *desk) begin(u *sub) chan *core.Fault {
	got := make(chan *core.Fault, 1)
	go func() { got <- d.subscribe(d.t.Context(), u) }()
	synctest.Wait()
	return got
}

// reply answers what was asked under an identifier.
func (d *desk) reply(id uint16, code byte) {
	d.t.Helper()
	if err := d.acked(packet.TypeSuback, &packet.Suback{ID: id, Codes: []byte{code}}); err != nil {
		d.t.Error(err)
	}
	synctest.Wait()
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

const (
	askJobs  = "subscribe jobs as 81088002, QoS 1, handling 1, no local false, as published false"
	askGroup = "subscribe $share/workers/jobs as 238245131, QoS 2, handling 0, no local false, as published true"
)

func jobs() Filter { return Filter{Name: "jobs", QoS: 1, RetainHandling: 1} }
func group() Filter {
	return Filter{Name: "jobs", Group: "workers", QoS: 2, RetainAsPublished: true}
}

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

// A refusal names filter and code in words. Later on, one that may pass is tried
// again with growing pauses, and any other ends what the filter is for.
func TestSubscribeRefused_M_06(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w, r := newDesk(t), &wire{}, &target{}
		d.up(w, false, all)
		a := d.declare(jobs(), r)
		for code, want := range map[byte]core.FaultCode{
			0x80: core.FaultUnavailable, 0x83: core.FaultUnavailable, 0x87: core.FaultDenied, 0x8F: core.FaultInvalid, 0x91: core.FaultConflict,
			0x97: core.FaultExhausted, 0x9E: core.FaultUnsupported, 0xA1: core.FaultUnsupported, 0xA2: core.FaultUnsupported, 0xB0: core.FaultInternal,
		} {
			got := d.begin(a)
			d.reply(a.id, code)
			f := <-got
			if f == nil || f.Code != want || !strings.Contains(f.Message, `"jobs"`) || !strings.Contains(f.Message, fmt.Sprintf("0x%02X", code)) {
				t.Errorf("code 0x%02X: %+v", code, f)
			}
		}
		got := d.begin(a)
		d.reply(a.id, 1)
		if f := <-got; f != nil {
			t.Fatal(f)
		}
		w.said(t)
		d.down()
		d.up(w, false, all)
		for range 8 {
			d.reply(a.id, packet.CodeQuota)
			asked := a.id
			began := time.Now()
			for len(w.said(t)) == 0 || a.id == asked {
				time.Sleep(time.Millisecond)
			}
			if pause := time.Since(began); pause > lastPause+2*time.Millisecond {
				t.Errorf("asked again after %v", pause)
			}
		}
		if n := strings.Count(d.log.String(), "asked again"); n != 1 {
			t.Errorf("told %d times: %s", n, &d.log)
		}
		if r.failed != nil {
			t.Error(r.failed)
		}
		d.reply(a.id, packet.CodeNotAuthorized)
		if r.failed == nil || r.failed.Code != core.FaultDenied || r.failed.Transient {
			t.Errorf("%+v", r.failed)
		}
		time.Sleep(time.Minute)
		expect(t, w.said(t))
	})
}

// A pause ends with its connection: the next one is asked at once.
func TestPauseEndsWithItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := newDesk(t), &wire{}
		d.up(w, false, all)
		a := d.declare(jobs(), &target{})
		got := d.begin(a)
		d.reply(a.id, 1)
		<-got
		d.down()
		d.up(w, false, all)
		w.said(t)
		d.reply(a.id, packet.CodeQuota)
		expect(t, w.said(t))
		d.down()
		d.up(w, true, all)
		expect(t, w.said(t), "65282: "+askJobs)
		d.reply(65282, 2) // more than was asked for, which is not there
		if qos := d.qos(a); qos != 1 {
			t.Errorf("QoS %d", qos)
		}
		d.down()
		d.up(w, false, all)
		expect(t, w.said(t), "65283: "+askJobs)
		d.reply(65283, packet.CodeQuota) // pauses begin anew, and are told of anew
		time.Sleep(firstPause)
		synctest.Wait()
		expect(t, w.said(t), "65284: "+askJobs)
		if n := strings.Count(d.log.String(), "asked again"); n != 2 {
			t.Errorf("told %d times: %s", n, &d.log)
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

// What is granted less is said, and is all that is asked for from then on.
func TestSubscribeGrantedLess_M_06(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w, r := newDesk(t), &wire{}, &target{}
		d.up(w, false, all)
		a := d.declare(group(), r)
		got := d.begin(a)
		d.reply(a.id, 0)
		if f := <-got; f != nil || d.qos(a) != 0 || !bytes.Equal(r.granted, []byte{0}) {
			t.Errorf("%v %v", f, r.granted)
		}
		if log := d.log.String(); !strings.Contains(log, "level=WARN") || !strings.Contains(log, "$share/workers/jobs") || !strings.Contains(log, "asked=2 granted=0") {
			t.Errorf("log %s", log)
		}
		w.said(t)
		d.down()
		d.up(w, false, all)
		if said := w.said(t); len(said) != 1 || !strings.Contains(said[0], "QoS 0") {
			t.Error(said)
		}
	})
}

// Filters that overlap cannot be told apart without identifiers: the refusal names
// both. What a server lacks is not asked for.
func TestSubscribeOverlapping_S_MQT_27(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits client.Limits
		other  Filter
		f      Filter
		words  string // of the refusal, "" = none
	}{
		{"overlapping", client.Limits{Wildcards: true, Shared: true}, Filter{Name: "a/b"}, Filter{Name: "a/+", QoS: 1}, `"a/+"; "a/b"; subscription identifiers; connection`},
		{"with a group", client.Limits{Wildcards: true, Shared: true}, Filter{Name: "a", Group: "g"}, Filter{Name: "a", QoS: 1}, `"a"; "$share/g/a"`},
		{"apart", client.Limits{Wildcards: true, Shared: true}, Filter{Name: "a/b"}, Filter{Name: "b/+", QoS: 1}, ""},
		{"with identifiers", all, Filter{Name: "a/b"}, Filter{Name: "a/+", QoS: 1}, ""},
		{"no groups", client.Limits{Wildcards: true, Identifiers: true}, Filter{Name: "b"}, Filter{Name: "a", Group: "g", QoS: 1}, `"$share/g/a"; shared subscriptions not supported; group`},
		{"no wildcards", client.Limits{Shared: true, Identifiers: true}, Filter{Name: "b"}, Filter{Name: "a/#", QoS: 1}, `"a/#"; wildcard subscriptions not supported`},
		{"no wildcards needed", client.Limits{}, Filter{Name: "b"}, Filter{Name: "a", QoS: 1}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, w := newDesk(t), &wire{}
				d.up(w, false, tt.limits)
				d.declare(tt.other, &target{})
				u := d.declare(tt.f, &target{})
				got := d.begin(u)
				if tt.words == "" {
					said := w.said(t)
					if len(said) != 1 {
						t.Fatal("it was not asked for")
					}
					if without := strings.Contains(said[0], " as 0,"); without == tt.limits.Identifiers {
						t.Error(said)
					}
					d.reply(u.id, 1)
					if f := <-got; f != nil {
						t.Error(f)
					}
					return
				}
				f := <-got
				expect(t, w.said(t))
				for word := range strings.SplitSeq(tt.words, "; ") {
					if f == nil || f.Code != core.FaultUnsupported || !strings.Contains(f.Message+f.Diagnostics[0].Fix, word) {
						t.Errorf("got %+v, which lacks %q", f, word)
					}
				}
			})
		})
	}
}

// A server that takes the place of another one and has no identifiers ends what
// overlaps.
func TestSubscribeLosesIdentifiers_S_MQT_27(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w, r := newDesk(t), &wire{}, &target{}
		d.up(w, false, all)
		a := d.declare(Filter{Name: "a/b"}, r)
		b := d.declare(Filter{Name: "a/+"}, &target{})
		for _, u := range []*sub{a, b} {
			got := d.begin(u)
			d.reply(u.id, 0)
			<-got
		}
		w.said(t)
		d.down()
		d.up(w, false, client.Limits{Wildcards: true, Shared: true})
		expect(t, w.said(t))
		if r.failed == nil || r.failed.Code != core.FaultUnsupported {
			t.Errorf("%+v", r.failed)
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
