// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"testing"
	"testing/synctest"

	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// A plugin that does not read its stream and delivers on, as if it had been
// given its credit back, is broken off before its verdicts fill the host.
func TestVerdictsThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window = 16
		deaf := make(chan struct{})
		b := newBench(t, kindA, acks, func(s *setup) {
			s.blind = true
			s.o.Window = frame.Credit{Messages: window, Bytes: 1 << 20}
			s.plugin = func(p *plugin) { p.deaf = deaf }
		})
		synctest.Wait()
		delivered := 0
		for range 100 * window {
			b.p.mu.Lock()
			clear(b.p.owed) // it takes its credit by itself
			b.p.mu.Unlock()
			b.p.deliver(message("x"))
			synctest.Wait()
			b.mu.Lock()
			broken := len(b.broken)
			b.mu.Unlock()
			if broken > 0 {
				break
			}
			delivered++
		}
		close(deaf)
		if most := 3 * unansweredMost * window; delivered > most {
			t.Errorf("%d deliveries were taken whose verdicts nobody reads, want at most %d", delivered, most)
		}
		if delivered < unansweredMost*window {
			t.Errorf("broken off after %d deliveries, a plugin that is only slow would be too", delivered)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.broken) != 1 {
			t.Fatalf("broken %v", b.broken)
		}
	})
}

// A plugin that reads late, while scopes of it come and go, is not broken off.
func TestVerdictsThatAreReadLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window = 16
		deaf := make(chan struct{})
		b := newBench(t, kindA, acks, func(s *setup) {
			s.blind = true
			s.o.Window = frame.Credit{Messages: window, Bytes: 1 << 20}
			s.plugin = func(p *plugin) { p.deaf = deaf }
		})
		synctest.Wait()
		for range 3 {
			for range window {
				b.p.deliver(message("x"))
				synctest.Wait()
			}
			b.p.void(&transportpb.Void{All: true, Returns: true})
			synctest.Wait()
		}
		for range window {
			b.p.deliver(message("x"))
			synctest.Wait()
		}
		close(deaf)
		synctest.Wait()
		b.p.deliver(message("x"))
		synctest.Wait()
		if c := b.lane.Counters(); c.Received != 4*window+1 || c.InWork != 0 {
			t.Errorf("counters %+v", c)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.broken) > 0 {
			t.Errorf("broken %v", b.broken)
		}
	})
}
