// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/client"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

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
		d.reply(65284, packet.CodeQuota)
		d.unsubscribe(a) // which the server does not have
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, w.said(t))
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
