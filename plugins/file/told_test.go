// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// A file that was not there and a group without a position are told of once: it
// may be that a path or a name is misspelt.
func TestWhatIsNewIsTold(t *testing.T) {
	path := newPath(t)
	b := open(t, settings.Settings{Path: path}, reads("orders"))
	b.put("orders", "a", "b")
	b.closeSub(b.subscribe("orders", billing))
	b.closeSub(b.subscribe("orders", billing))
	b.closeSub(b.subscribe("orders", settings.Subscription{Group: "biling", Start: settings.Sequence(2)}))
	b.end()
	for text, want := range map[string]int{
		`msg="the file is created" path=` + path: 1,
		`msg="the group is new" group=billing subscription=orders begins_at=beginning position=` + path + `.groups/billing`:   1,
		`msg="the group is new" group=biling subscription=orders begins_at="sequence 2" position=` + path + `.groups/biling/`: 1,
	} {
		if got := strings.Count(b.log.String(), text); got != want {
			t.Errorf("%q is told %d times, want %d:\n%s", text, got, want, b.log)
		}
	}
	b = open(t, settings.Settings{Path: path}, pluginapi.Usage{})
	b.put("orders", "c")
	b.end()
	if strings.Contains(b.log.String(), "is created") {
		t.Errorf("a file that was there is told of:\n%s", b.log)
	}
}

// Who only reads what another process writes, and would write its failures there,
// is told what to do with them.
func TestFailuresOfReadersNeedAnotherPath(t *testing.T) {
	path := newPath(t)
	w := open(t, settings.Settings{Path: path}, writes("orders"))
	defer w.end()
	for name, tt := range map[string]struct {
		purpose pluginapi.Purpose
		want    string
	}{
		"a dead letter":      {pluginapi.PurposeDeadLetter, "another path with DeadLetterTo"},
		"copies":             {pluginapi.PurposeRetry, "with a group retries are no copies"},
		"what is to be said": {pluginapi.PurposeApplication, "let one endpoint write the path"},
	} {
		u := reads("orders")
		u.Destinations = []pluginapi.Target{{Name: "orders", Purpose: tt.purpose}}
		_, err := connect(t, settings.Settings{Path: path}, u)
		f := faulted(err)
		if f == nil || f.Code != core.FaultConflict || len(f.Diagnostics) != 1 || !strings.Contains(f.Diagnostics[0].Fix, tt.want) {
			t.Errorf("%s: connected with %+v, want %q", name, err, tt.want)
		}
	}
}
