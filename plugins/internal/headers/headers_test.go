// SPDX-License-Identifier: Apache-2.0

package headers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/headers"
	"github.com/longshore-go/longshore/plugins/internal/poison"
)

// list takes a list of n headers.
func list(l *headers.Lists, n int) core.Headers {
	h := l.Room(n + 1)
	for i := range n {
		h = append(h, core.Header{Name: fmt.Sprint(i)})
	}
	return l.Take(h)
}

// Lists stay apart when one more is appended to each, whatever they are taken
// from, and however long they are.
func TestListsStayApart(t *testing.T) {
	var memory headers.Memory
	for _, m := range []*headers.Memory{nil, &memory, &memory, &memory} {
		var l headers.Lists
		l.Use(m)
		var all []core.Headers
		for n := range 3000 {
			h := list(&l, n%100)
			if n%500 == 0 {
				h = list(&l, 5*n)
			}
			if cap(h) == len(h) {
				t.Fatal("no room for one more")
			}
			all = append(all, append(h, core.Header{Name: "more"}))
		}
		for _, h := range all {
			for i := range h {
				if want := fmt.Sprint(i); h[i].Name != want && (i != len(h)-1 || h[i].Name != "more") {
					t.Fatalf("header %d of %d has become %q", i, len(h), h[i].Name)
				}
			}
		}
	}
}

// Memory that is spent is overwritten in builds that poison.
func TestMemorySpent(t *testing.T) {
	var memory headers.Memory
	var l headers.Lists
	l.Use(&memory)
	h := list(&l, 3)
	memory.Spent()
	if got := h[0].Name == "spent"; got != poison.On {
		t.Errorf("%v, poison is %v", h, poison.On)
	}
}

// Lists take no memory once there is some.
func TestListsAllocations(t *testing.T) {
	if poison.On {
		t.Skip("the race detector allocates by itself")
	}
	var memory headers.Memory
	var l headers.Lists
	name := strings.Repeat("n", 3)
	got := testing.AllocsPerRun(100, func() {
		l.Use(&memory)
		for range 200 {
			h := l.Room(4)
			_ = l.Take(append(h, core.Header{Name: name}))
		}
	})
	if got > 0 {
		t.Errorf("%v allocations", got)
	}
}
