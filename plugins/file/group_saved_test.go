// SPDX-License-Identifier: Apache-2.0

package file

import (
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/internal/position"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// A position that cannot be written is told of once, and verdicts are taken all
// the same.
func TestGroupThatCannotBeSaved(t *testing.T) {
	tracker, err := position.Open(t.TempDir(), "billing", "orders", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := tracker.Begin(position.Place{Created: 1, Offset: 128}); err != nil {
		t.Fatal(err)
	}
	if err := tracker.Close(); err != nil { // no write works any more
		t.Fatal(err)
	}
	g := &group{name: "orders", settings: settings.Subscription{Group: "billing"}, tracker: tracker, wake: make(chan struct{}, 1)}
	marks := []position.Mark{{Place: position.Place{Created: 1, Offset: 128}}, {Place: position.Place{Created: 1, Offset: 200}}}
	es := tracker.Deliver(nil, marks, position.Place{Created: 1, Offset: 300})
	g.saved(tracker.Save())
	for _, e := range es {
		if r := g.Settle(t.Context(), []pluginapi.Verdict{{Handle: e, Kind: core.VerdictAck}}); r[0].Status != pluginapi.ResultDone {
			t.Errorf("ack: %+v", r)
		}
	}
	got, err := g.Receive(t.Context(), pluginapi.Room{})
	if err != nil || len(got.Reports) != 1 || got.Reports[0].Position != tracker.Path() {
		t.Fatalf("received %+v, %v", got, err)
	}
	g.saved(nil)
	g.saved(tracker.Save())
	if rs := g.told(); len(rs) != 1 {
		t.Errorf("%d reports of the second time", len(rs))
	}
	if r := g.Settle(t.Context(), []pluginapi.Verdict{{Handle: es[0], Kind: core.VerdictReject}, {Handle: 7, Kind: core.VerdictAck}}); r[0].Status != pluginapi.ResultUnsupported || r[1].Status != pluginapi.ResultUnsupported {
		t.Errorf("a reject, and a handle of somebody else: %+v", r)
	}
}

// That a position was removed is told, and no reason for it to be said that
// something comes again.
func TestGroupWhosePositionIsRemoved(t *testing.T) {
	tracker, err := position.Open(t.TempDir(), "billing", "orders", "")
	if err != nil {
		t.Fatal(err)
	}
	g := &group{name: "orders", settings: settings.Subscription{Group: "billing"}, tracker: tracker, wake: make(chan struct{}, 1)}
	for range 2 {
		g.saved(&position.RenewedError{Path: tracker.Path()})
	}
	rs := g.told()
	if len(rs) != 2 || g.broken || strings.Contains(rs[0].Fault.Error(), "comes again") || !strings.Contains(rs[0].Fault.Error(), "written anew") {
		t.Errorf("reports %+v", rs)
	}
	if err := tracker.Close(); err != nil {
		t.Fatal(err)
	}
}
