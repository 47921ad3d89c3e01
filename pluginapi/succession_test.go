// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// A host that cut a stream off may open the registration again at once; the
// transport sees the second Subscribe once the first one is closed.
func TestSuccessorOfACancelledStream(t *testing.T) {
	tr := newQueueTransport(everything())
	let := make(chan struct{})
	entered := make(chan struct{}, 1)
	tr.receive = func(ctx context.Context, _ *queue, _ Room) (Batch, error) {
		select {
		case entered <- struct{}{}:
			<-ctx.Done()
			<-let // it takes its time
		default:
			<-ctx.Done()
		}
		return Batch{}, ctx.Err()
	}
	b := serve(t, tr).connect()
	first := b.subscribe("q")
	first.credit(1, 1)
	<-entered
	first.cancel()
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		b.subscribe("q").finish()
	}()
	select {
	case <-opened:
		t.Error("it was opened before the first one was closed")
	default:
	}
	close(let)
	<-opened
	if n := tr.queue("q").closes; n != 2 {
		t.Errorf("closed %d times, want 2", n)
	}
}

// What was read for a window that is gone and cannot be sent before the end is
// lost where the source gives nothing twice, and the host hears of it.
func TestStopTellsWhatIsLost(t *testing.T) {
	caps := core.Capabilities{Order: core.OrderTotal}
	tr := newQueueTransport(caps)
	entered := make(chan struct{}, 1)
	tr.receive = func(ctx context.Context, _ *queue, room Room) (Batch, error) {
		if room.Messages == 0 {
			<-ctx.Done()
			return Batch{}, ctx.Err()
		}
		entered <- struct{}{}
		<-ctx.Done()
		return Batch{Deliveries: []Delivery{{Handle: 1}, {Handle: 2}}}, ctx.Err()
	}
	b := serve(t, tr).connect()
	st := b.subscribe("q")
	st.credit(2, 1<<20)
	<-entered
	st.credit(0, 0)
	st.send(&frame.SubscribeRequest{Stop: true})
	st.wait("Ended", func() bool { return len(st.ended) == 1 })
	if len(st.items) != 0 {
		t.Fatalf("%d deliveries came without credit", len(st.items))
	}
	if len(st.reports) != 1 || !strings.Contains(st.reports[0].GetFault().GetMessage(), "2 messages were read") {
		t.Errorf("reports %v, want one about 2 messages", st.reports)
	}
	st.finish()
}
