// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"testing"

	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// A seek that has moved some scopes is answered with a fault and a first id; one that has
// moved none without.
func TestSeekThatMovesSome(t *testing.T) {
	tr := newQueueTransport(everything())
	tr.spec.Seeks = true
	b := serve(t, tr).connect()
	q := tr.queue("q")
	q.fill(3, 1)
	st := b.subscribe("q")
	st.credit(3, 1<<20)
	st.got(3)
	for i, tt := range []struct {
		kind transportpb.PositionKind
		next uint64
	}{{transportpb.PositionKind_POSITION_KIND_EXACT, 4}, {transportpb.PositionKind_POSITION_KIND_TIME, 0}} {
		st.send(&frame.SubscribeRequest{Seek: &transportpb.Seek{Kind: tt.kind, Value: []byte("some")}})
		st.wait("Sought", func() bool { return len(st.sought) > i })
		if s := st.sought[i]; s.GetFault() == nil || s.GetNext() != tt.next {
			t.Errorf("answered %v, want a fault and %d", s, tt.next)
		}
	}
	if len(st.voids) != 0 {
		t.Errorf("a failed seek voids %v", st.voids)
	}
}
