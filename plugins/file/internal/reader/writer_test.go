// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/plugins/file/internal/writer"
)

// TestFollowsTheWriter has cursors follow the writer of the transport, which
// rotates and removes nothing.
func TestFollowsTheWriter(t *testing.T) {
	const n = 3000
	path := pathOf(t)
	var r *Reader
	poke := func() {
		if r != nil {
			r.Poke()
		}
	}
	w, err := writer.Open(t.Context(), path, writer.Options{Interval: 4096, EndMark: true, RotateBytes: 64 << 10, Written: poke})
	if err != nil {
		t.Fatal(err)
	}
	r = open(t, path, Options{Poll: time.Hour, Chunk: 8 << 10})
	var wg sync.WaitGroup
	for _, start := range []Start{{}, {Kind: End}} {
		for range 3 {
			c := cursor(t, r, "orders", start, false)
			wg.Go(func() {
				g := until(t, c, func(g *got) bool { return g.ended })
				healthy(t, g)
				check(t, g, 200, numbers(1, n))
			})
		}
	}
	for i := uint64(1); i <= n; i += 10 {
		var entries []writer.Entry
		for j := range uint64(10) {
			entries = append(entries, writer.Entry{Key: "orders", Payload: payload("orders", i+j, 200)})
		}
		w.Append(entries, func(_ int, _ uint64, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := w.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	g := replayed(t, cursor(t, r, "*", Start{}, true))
	healthy(t, g)
	check(t, g, 200, numbers(1, n))
}
