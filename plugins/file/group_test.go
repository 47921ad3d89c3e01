// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// billing reads with a group.
var billing = settings.Subscription{Group: "billing"}

// settle settles deliveries, which is accepted.
func (b *bench) settle(s pluginapi.Subscription, kind core.VerdictKind, ds ...pluginapi.Delivery) {
	b.t.Helper()
	var vs []pluginapi.Verdict
	for _, d := range ds {
		vs = append(vs, pluginapi.Verdict{Handle: d.Handle, Kind: kind})
	}
	for i, r := range s.Settle(b.ctx, vs) {
		if r.Status != pluginapi.ResultDone {
			b.t.Errorf("%v of %s: %v, %v", kind, ds[i].Message.Payload, r.Status, r.Fault)
		}
	}
}

func (b *bench) closeSub(s pluginapi.Subscription) {
	b.t.Helper()
	if err := s.Close(b.ctx); err != nil {
		b.t.Error(err)
	}
}

// counted shows deliveries as "payload attempt".
func counted(ds []pluginapi.Delivery) []string {
	var out []string
	for _, d := range ds {
		out = append(out, fmt.Sprintf("%s %d", d.Message.Payload, d.Attempt))
	}
	return out
}

func (b *bench) wants(s pluginapi.Subscription, want ...string) []pluginapi.Delivery {
	b.t.Helper()
	ds, rs := b.take(s, len(want))
	if d := cmp.Diff(want, counted(ds)); d != "" {
		b.t.Errorf("deliveries (-want +got):\n%s", d)
	}
	if len(rs) > 0 {
		b.t.Errorf("reports %v", rs)
	}
	return ds
}

// What is acked is done with, what is not comes again, and is counted, over
// requeues and lives.
func TestGroup(t *testing.T) {
	path := newPath(t)
	b := open(t, settings.Settings{Path: path}, writes("orders"))
	b.put("orders", "1", "2", "3", "4", "5")
	s := b.subscribe("orders", billing)
	ds := b.wants(s, "1 1", "2 1", "3 1", "4 1", "5 1")
	if h := ds[2].Message.Headers; len(h) != 1 || h[0].Name != "stream-sequence" || string(h[0].Value) != "3" {
		t.Errorf("headers %v", h)
	}
	b.settle(s, core.VerdictAck, ds[3], ds[0])
	b.settle(s, core.VerdictRequeue, ds[4], ds[1])
	again := b.wants(s, "5 2", "2 2")
	if d := cmp.Diff(ds[4].Identity, again[0].Identity); d != "" || again[0].Handle == ds[4].Handle {
		t.Errorf("identity (-want +got):\n%s", d)
	}
	s.(pluginapi.Releaser).Release([]any{again[1].Handle})
	b.quiet(s)
	b.put("orders", "6")
	b.wants(s, "6 1")
	b.closeSub(s)

	s = b.subscribe("orders", billing)
	ds = b.wants(s, "2 3", "3 2", "5 3", "6 2")
	b.settle(s, core.VerdictAck, ds...)
	for _, r := range s.Settle(b.ctx, []pluginapi.Verdict{{Handle: ds[0].Handle, Kind: core.VerdictAck}, {Handle: ds[1].Handle, Kind: core.VerdictRequeue}}) {
		if r.Status != pluginapi.ResultStale {
			t.Errorf("a second verdict: %v", r.Status)
		}
	}
	b.quiet(s)
	b.closeSub(s)
	b.end()

	b = open(t, settings.Settings{Path: path}, writes("orders"))
	b.put("orders", "7")
	b.wants(b.subscribe("orders", billing), "7 1")
	b.wants(b.subscribe("orders", settings.Subscription{Group: "audit"}), "1 1", "2 1", "3 1")
	b.wants(b.subscribe("*", billing), "1 1", "2 1", "3 1")
}

// A start holds as long as the group has no position.
func TestGroupStart(t *testing.T) {
	b := open(t, settings.Settings{Path: newPath(t)}, writes("orders"))
	b.put("orders", "1", "2", "3")
	for name, tt := range map[string]struct {
		start settings.Start
		first []string
	}{
		"default":   {settings.Start{}, []string{"1 1", "2 1", "3 1"}},
		"beginning": {settings.Beginning(), []string{"1 1", "2 1", "3 1"}},
		"end":       {settings.End(), nil},
		"sequence":  {settings.Sequence(3), []string{"3 1"}},
		"later":     {settings.After(time.Now().Add(-time.Hour)), []string{"1 1", "2 1", "3 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := *b
			b.t = t
			o := settings.Subscription{Group: "g-" + name, Start: tt.start}
			s := b.subscribe("orders", o)
			b.settle(s, core.VerdictAck, b.wants(s, tt.first...)...)
			b.closeSub(s)
			o.Start = settings.Beginning()
			s = b.subscribe("orders", o)
			b.quiet(s)
			b.closeSub(s)
		})
	}
	// A position at the end holds for a group that has read nothing yet.
	s := b.subscribe("orders", settings.Subscription{Group: "late", Start: settings.End()})
	b.closeSub(s)
	b.put("orders", "4")
	b.wants(b.subscribe("orders", settings.Subscription{Group: "late", Start: settings.End()}), "4 1")
}

// A time in the future holds until there is something behind it.
func TestGroupStartsLater(t *testing.T) {
	b := open(t, settings.Settings{Path: newPath(t)}, writes("orders"))
	o := settings.Subscription{Group: "later", Start: settings.After(time.Now().Add(time.Hour))}
	for range 2 {
		b.put("orders", "1")
		s := b.subscribe("orders", o)
		b.quiet(s)
		b.closeSub(s)
	}
}

// A replay has caught up when all it handed out is settled, and what is handed
// back until then comes in this run.
func TestGroupCatchesUp(t *testing.T) {
	b := open(t, settings.Settings{Path: newPath(t)}, writes("orders"))
	b.put("orders", "1", "2", "3")
	o := billing
	o.Replay = true
	s := b.subscribe("orders", o)
	ds := b.wants(s, "1 1", "2 1", "3 1")
	b.quiet(s)
	b.settle(s, core.VerdictAck, ds[0])
	b.settle(s, core.VerdictRequeue, ds[1])
	again := b.wants(s, "2 2")
	b.quiet(s)
	b.settle(s, core.VerdictAck, again...)
	delayed := pluginapi.Verdict{Handle: ds[2].Handle, Kind: core.VerdictRequeue, Delay: 200 * time.Millisecond}
	began := time.Now()
	if r := s.Settle(b.ctx, []pluginapi.Verdict{delayed}); r[0].Status != pluginapi.ResultDone {
		t.Fatalf("delayed requeue: %v", r)
	}
	last, err := s.Receive(b.ctx, servicetest.Plenty)
	if took := time.Since(began); err != nil || last.CaughtUp || took < delayed.Delay || strings.Join(counted(last.Deliveries), " ") != "3 2" {
		t.Fatalf("received %+v, %v, after %v", last, err, took)
	}
	handle := last.Deliveries[0].Handle
	go func() { s.Settle(b.ctx, []pluginapi.Verdict{{Handle: handle, Kind: core.VerdictAck}}) }()
	if got, err := s.Receive(b.ctx, servicetest.Plenty); err != nil || !got.CaughtUp || len(got.Deliveries) > 0 {
		t.Errorf("received %+v, %v", got, err)
	}
	b.put("orders", "4")
	b.quiet(s)
	b.closeSub(s)
	s = b.subscribe("orders", o)
	ds = b.wants(s, "4 1")
	s.(pluginapi.Releaser).Release([]any{ds[0].Handle})
	if got, err := s.Receive(b.ctx, servicetest.Plenty); err != nil || !got.CaughtUp {
		t.Errorf("received %+v, %v", got, err)
	}
}

// A stream that has ended ends when what was handed out is settled, and goes on
// when somebody writes behind the mark.
func TestGroupEnds(t *testing.T) {
	path := newPath(t)
	b := open(t, settings.Settings{Path: path, EndWithEOS: true}, writes("orders"))
	s := b.subscribe("orders", billing)
	b.put("orders", "1", "2")
	b.wants(s, "1 1", "2 1")
	b.closeSub(s)
	b.end()

	b = open(t, settings.Settings{Path: path}, pluginapi.Usage{})
	s = b.subscribe("orders", billing)
	ds := b.wants(s, "1 2", "2 2")
	b.quiet(s)
	b.settle(s, core.VerdictRequeue, ds[1])
	b.settle(s, core.VerdictAck, ds[0])
	ds = b.wants(s, "2 3")
	other := open(t, settings.Settings{Path: path, EndWithEOS: true}, writes("orders"))
	other.put("orders", "3")
	ds = append(ds, b.wants(s, "3 1")...)
	other.end()
	b.settle(s, core.VerdictAck, ds...)
	if got, err := s.Receive(b.ctx, servicetest.Plenty); !errors.Is(err, io.EOF) || len(got.Deliveries) > 0 {
		t.Errorf("received %+v, %v", got, err)
	}
}

// After a seek nothing from before is there any more, in the next life neither.
func TestGroupSeeks(t *testing.T) {
	b := open(t, settings.Settings{Path: newPath(t)}, writes("orders"))
	b.put("orders", "1", "2", "3", "4")
	s := b.subscribe("orders", billing)
	old := b.wants(s, "1 1", "2 1", "3 1", "4 1")
	b.settle(s, core.VerdictRequeue, old[0])
	if err := s.(pluginapi.Seeker).Seek(b.ctx, pluginapi.Position{Kind: pluginapi.PositionExact, Value: old[2].Position}); err != nil {
		t.Fatal(err)
	}
	if r := s.Settle(b.ctx, []pluginapi.Verdict{{Handle: old[1].Handle, Kind: core.VerdictAck}}); r[0].Status != pluginapi.ResultStale {
		t.Errorf("a verdict from before the seek: %v", r)
	}
	ds := b.wants(s, "3 1", "4 1")
	b.settle(s, core.VerdictAck, ds[0])
	b.closeSub(s)
	s = b.subscribe("orders", billing)
	b.settle(s, core.VerdictAck, b.wants(s, "4 2")...)
	if err := s.(pluginapi.Seeker).Seek(b.ctx, pluginapi.Position{Kind: pluginapi.PositionExact, Value: []byte("sequence 99")}); err == nil {
		t.Error("a seek beyond the end works")
	}
	if _, err := s.Receive(b.ctx, servicetest.Plenty); !isFault(err, core.FaultInvalid, "beyond the end") {
		t.Errorf("received behind a bad seek: %v", err)
	}
}

// A copy that a run without a group has written counts on.
func TestGroupCountsCopies(t *testing.T) {
	b := open(t, settings.Settings{Path: newPath(t)}, writes("orders"))
	b.publish(servicetest.Message("orders", "a", core.CountHeader, "2"), servicetest.Message("orders", "b", core.CountHeader, "99999999999"), servicetest.Message("orders", "c", core.CountHeader, "x"))
	s := b.subscribe("orders", billing)
	ds := b.wants(s, "a 3", "b 4294967295", "c 1")
	b.settle(s, core.VerdictRequeue, ds[0])
	b.wants(s, "a 4")
}

// A record whose header tells of as many deliveries as the cap allows, or more,
// is handled once all the same.
func TestGroupCountsCopiesToItsCap(t *testing.T) {
	b := open(t, settings.Settings{Path: newPath(t)}, writes("dead"))
	b.publish(servicetest.Message("dead", "a", core.CountHeader, "1"), servicetest.Message("dead", "b", core.CountHeader, "3"), servicetest.Message("dead", "c", core.CountHeader, "99999999999"))
	r := registration(t, 0, "dead", billing)
	r.Attempts = 3
	s, err := b.conn.Subscribe(b.ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	ds := b.wants(s, "a 2", "b 3", "c 3")
	b.settle(s, core.VerdictRequeue, ds...)
	b.wants(s, "a 3", "b 4", "c 4")
	b.closeSub(s)
}

func isFault(err error, code core.FaultCode, text string) bool {
	f, ok := errors.AsType[*core.Fault](err)
	return ok && f.Code == code && strings.Contains(f.Error(), text)
}

// Without room nothing is handed out, and without credit a Receive ends with its
// context.
func TestGroupKeepsToItsRoom(t *testing.T) {
	b := open(t, settings.Settings{Path: newPath(t)}, writes("orders"))
	b.put("orders", "1", "2", "3")
	s := b.subscribe("orders", billing)
	got, err := s.Receive(b.ctx, pluginapi.Room{Messages: 2, Bytes: 100})
	if err != nil || len(got.Deliveries) != 2 {
		t.Fatalf("received %+v, %v", got, err)
	}
	ds := append([]pluginapi.Delivery(nil), got.Deliveries...)
	b.settle(s, core.VerdictRequeue, ds...)
	for _, room := range []pluginapi.Room{{}, {Messages: 1}, {Bytes: 1}} {
		ctx, cancel := context.WithTimeout(b.ctx, 20*time.Millisecond)
		got, err := s.Receive(ctx, room)
		if len(got.Deliveries) > 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("room %v: received %+v, %v", room, got, err)
		}
		cancel()
	}
	got, err = s.Receive(b.ctx, pluginapi.Room{Messages: 5, Bytes: 1})
	if err != nil || len(got.Deliveries) != 1 || got.Deliveries[0].Attempt != 2 {
		t.Errorf("received %+v, %v", got, err)
	}
	b.wants(s, "2 2", "3 1")
}
