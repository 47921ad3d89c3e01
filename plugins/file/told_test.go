// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"strings"
	"testing"

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
