// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"fmt"
	"runtime"
)

// held is what this process holds.
type held struct {
	heap, stacks int64 // bytes in use
	goroutines   int
}

// hold returns what is held after a collection.
func hold() held {
	runtime.GC()
	runtime.GC() // what pools have let go in the first one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return held{int64(m.HeapAlloc), int64(m.StackInuse), runtime.NumGoroutine()}
}

// since returns what is held more than before.
func (h held) since(before held) held {
	return held{h.heap - before.heap, h.stacks - before.stacks, h.goroutines - before.goroutines}
}

// measureMemory measures what needs no rounds.
func measureMemory(ctx context.Context, p Plan, rep *Report) (err error) {
	if p.Copies > 0 {
		if rep.Waiting, err = measureWaiting(ctx, p.Plugin, p.Copies); err != nil {
			return fmt.Errorf("measure waiting copies: %w", err)
		}
	}
	if p.Idle > 0 {
		if rep.Idle, err = measureIdle(ctx, p.Plugin, p.Idle); err != nil {
			return fmt.Errorf("measure idle subscriptions: %w", err)
		}
	}
	return nil
}
