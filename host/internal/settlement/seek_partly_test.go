// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"testing"
	"testing/synctest"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// A refusal with a first id says that some scopes may have moved, one without that none
// has.
func TestSeekThatMovesSome(t *testing.T) {
	for name, tt := range map[string]struct {
		next  uint64
		maybe bool
	}{"some": {1, true}, "none": {0, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got seen
				b := newBench(t, kindA, got.slow(ack), func(s *setup) { s.plugin = func(p *plugin) { p.sought = func(*plugin, *transportpb.Seek) {} } })
				synctest.Wait()
				done := make(chan bool, 1)
				go func() {
					maybe, err := b.lane.Seek(t.Context(), &transportpb.Seek{Kind: beginning})
					if err == nil {
						t.Error("it was not refused")
					}
					done <- maybe
				}()
				synctest.Wait()
				b.p.answerSeek(&transportpb.Sought{Next: tt.next, Fault: convert.FromFault(&core.Fault{Code: core.FaultUnavailable, Message: "1 of 2"})})
				if maybe := <-done; maybe != tt.maybe {
					t.Errorf("it may have moved: %t, want %t", maybe, tt.maybe)
				}
			})
		})
	}
}
