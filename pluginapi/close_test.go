// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// Close lets given verdicts through and answers with the resume bytes; verdicts
// that come later fail.
func TestCloseCarriesOutGivenVerdicts(t *testing.T) {
	tr := newQueueTransport(everything())
	in, gate := make(chan struct{}, 9), make(chan struct{})
	tr.settle = func(_ context.Context, q *queue, vs []Verdict) []Result {
		in <- struct{}{}
		<-gate
		return q.carryOut(vs)
	}
	left := -1
	tr.closed = func(context.Context) ([]byte, error) {
		left = tr.queue("q").left()
		return []byte("r"), nil
	}
	b := serve(t, tr).connect()
	tr.queue("q").fill(4, 1)
	st := b.subscribe("q")
	st.credit(10, 1<<20)
	st.got(4)
	st.settle(ack(1))
	<-in
	st.settle(ack(2), ack(3))
	eventually(t, "the verdicts to be read", func() bool {
		b.server.mu.Lock()
		x := b.server.subs[0]
		b.server.mu.Unlock()
		x.mu.Lock()
		defer x.mu.Unlock()
		return len(x.runs) == 2
	})
	type answer struct {
		r   *transportpb.CloseResponse
		err error
	}
	closed := make(chan answer)
	go func() {
		r, err := b.link.Close(b.ctx, &transportpb.CloseRequest{})
		closed <- answer{r, err}
	}()
	st.wait("Ended", func() bool { return len(st.ended) == 1 })
	close(gate)
	a := <-closed
	if a.err != nil || string(a.r.GetResume()) != "r" || left != 1 {
		t.Errorf("Close: %v %v, with %d unsettled, want 1", a.r, a.err, left)
	}
	st.settle(ack(4))
	if got := st.results(4)[4]; got != frame.SettleFailed {
		t.Errorf("verdict after Close: %d", got)
	}
	st.finish()
}

// A Close that hangs is given up at its limit.
func TestCloseThatHangs(t *testing.T) {
	tr := newQueueTransport(everything())
	free := make(chan struct{})
	tr.closed = func(context.Context) ([]byte, error) { <-free; return nil, nil }
	b := serve(t, tr).connect()
	_, err := b.link.Close(b.ctx, &transportpb.CloseRequest{Limit: int64(20 * time.Millisecond)})
	if faultOf("", err).Code != core.FaultTimeout {
		t.Errorf("Close: %v", err)
	}
	close(free)
}

// A host that dies during Close does not cut the flush short.
func TestHostDiesDuringClose(t *testing.T) {
	tr := newQueueTransport(everything())
	in, free := make(chan struct{}), make(chan struct{})
	var cut error
	tr.closed = func(ctx context.Context) ([]byte, error) {
		close(in)
		select {
		case <-free:
		case <-ctx.Done():
			cut = ctx.Err()
		}
		return nil, nil
	}
	b := serve(t, tr).connect()
	go func() { _, _ = b.link.Close(b.ctx, &transportpb.CloseRequest{}) }()
	<-in
	b.link.Break(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		b.server.abandon(ctx)
	}()
	close(free)
	<-done
	if cut != nil {
		t.Errorf("the flush was cut: %v", cut)
	}
}

// The transport is told whether a host has closed the endpoint, or is gone.
func TestHostGone(t *testing.T) {
	for name, end := range map[string]func(b *bench){
		"closed": func(b *bench) { _, _ = b.link.Close(b.ctx, &transportpb.CloseRequest{}) },
		"gone":   func(b *bench) { b.server.abandon(b.ctx) },
	} {
		tr := newQueueTransport(everything())
		told := make(chan bool, 1)
		tr.closed = func(ctx context.Context) ([]byte, error) {
			told <- HostGone(ctx)
			return nil, nil
		}
		end(serve(t, tr).connect())
		if got := <-told; got != (name == "gone") {
			t.Errorf("%s: HostGone is %v", name, got)
		}
	}
}

// A Close that is cut by its own limit still hands over what the next life needs.
func TestCloseAtItsLimit(t *testing.T) {
	tr := newQueueTransport(everything())
	tr.closed = func(ctx context.Context) ([]byte, error) {
		<-ctx.Done()
		return []byte("resume"), fmt.Errorf("flush: %w", ctx.Err())
	}
	b := serve(t, tr).connect()
	r, err := b.link.Close(b.ctx, &transportpb.CloseRequest{Limit: int64(20 * time.Millisecond)})
	if err != nil || string(r.GetResume()) != "resume" {
		t.Errorf("Close: %q, %v", r.GetResume(), err)
	}
}
