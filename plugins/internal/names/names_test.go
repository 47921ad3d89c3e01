// SPDX-License-Identifier: Apache-2.0

package names_test

import (
	"strings"
	"testing"

	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/plugins/internal/names"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A name is what it was, whatever was remembered in its place, and one that comes
// again takes no memory.
func TestIntern(t *testing.T) {
	var table names.Table
	long := strings.Repeat("n", names.Longest+1)
	for range 2 {
		for _, name := range []string{"", "a", "orders", "oxders", "order.s", long[1:], long} {
			if got := table.Intern([]byte(name)); got != name {
				t.Errorf("%q became %q", name, got)
			}
		}
	}
	b := []byte("traceparent")
	if got := testing.AllocsPerRun(100, func() { table.Intern(b) }); got > 0 {
		t.Errorf("%v allocations for a name that is known", got)
	}
	if first := table.Intern(b); first != "traceparent" {
		t.Errorf("got %q", first)
	} else if clear(b); first != "traceparent" {
		t.Error("a name changes with the bytes it came in")
	}
}
