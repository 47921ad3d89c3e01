// SPDX-License-Identifier: Apache-2.0

package liar_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/conform/liar/liartest"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/process"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

const plenty = 1 << 20

func ack(first, count uint64) frame.VerdictRun {
	return frame.VerdictRun{First: first, Count: count, Kind: core.VerdictAck, WantResult: true}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	b := start(t, t.TempDir(), nil)
	b.stored("a", "b", "c", "d", "e", "f")
	s := b.sub(100, plenty)
	s.want(1, "a", "b", "c", "d", "e", "f")
	s.settle(
		ack(1, 1),
		frame.VerdictRun{First: 2, Kind: core.VerdictRequeue, WantResult: true},
		frame.VerdictRun{First: 3, Kind: core.VerdictRequeue, Delay: 200 * time.Millisecond},
		frame.VerdictRun{First: 4, Kind: core.VerdictReject},
		frame.VerdictRun{First: 5, Kind: core.VerdictRelease},
		frame.VerdictRun{First: 6, Kind: core.VerdictExtend, Hold: time.Minute},
		ack(1, 1), ack(4, 1), ack(5, 1), ack(100, 3),
	)
	var got []frame.SettleStatus
	for _, r := range s.barrier() {
		for range r.Count {
			got = append(got, r.Status)
		}
	}
	want := []frame.SettleStatus{
		frame.SettleDone, frame.SettleDone, frame.SettleUnsupported,
		frame.SettleStale, frame.SettleStale, frame.SettleStale, frame.SettleStale, frame.SettleStale, frame.SettleStale,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	s.want(2, "b")
	s.want(2, "c")
	s.settle(ack(7, 2), frame.VerdictRun{First: 6, Kind: core.VerdictRequeue, Delay: time.Hour})
	if rs := s.barrier(); len(rs) != 2 || rs[1].Status != frame.SettleUnsupported {
		t.Errorf("a delay at the limit: %+v", rs)
	}
	s.finish()
	// What was released or refused comes with the next connection.
	s = b.sub(100, plenty)
	s.want(2, "e", "f")
	s.settle(ack(1, 2))
	s.finish()
	b.end()
}

func TestCredit(t *testing.T) {
	t.Parallel()
	b := start(t, t.TempDir(), nil)
	b.stored("1111", "2222", "3333", "4444", "5555")
	s := b.sub(2, plenty)
	s.want(1, "1111", "2222")
	s.settle(frame.VerdictRun{First: 1, Kind: core.VerdictRelease})
	s.want(1, "3333")
	s.send(&frame.SubscribeRequest{Credit: &frame.Credit{Messages: 10, Bytes: 9}})
	s.want(1, "4444") // 8 bytes are below 9
	if s.barrier(); len(s.waiting) != 0 {
		t.Errorf("beyond the window: %+v", s.waiting)
	}
	s.send(&frame.SubscribeRequest{Credit: &frame.Credit{}})
	s.settle(ack(2, 3))
	if s.barrier(); len(s.waiting) != 0 {
		t.Errorf("in a pause: %+v", s.waiting)
	}
	s.finish()
	b.end()
}

func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, dir, nil)
	b.stored("a", "b", "c")
	s := b.sub(100, plenty)
	s.want(1, "a", "b", "c")
	s.settle(ack(2, 1), frame.VerdictRun{First: 3, Kind: core.VerdictRequeue})
	s.want(2, "c")
	b.p.Kill()
	<-b.p.Done()

	b = start(t, dir, nil)
	s = b.sub(100, plenty)
	s.want(2, "a")
	s.want(3, "c")
	s.cut()
	s = b.sub(100, plenty) // silence is not a verdict
	s.want(3, "a")
	s.want(4, "c")
	s.settle(ack(1, 1))
	s.barrier()
	s.finish()
	b.end()

	b = start(t, dir, nil)
	s = b.sub(100, plenty)
	s.want(5, "c")
	b.end()
}

// TestEndsWithoutClose drops the leash alone: what was confirmed is there, what
// was unsettled too.
func TestEndsWithoutClose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, dir, nil)
	b.stored("a")
	b.sub(100, plenty).want(1, "a")
	b.must(b.p.End(b.ctx))
	if exit := b.p.Exit(); exit.Code != 0 || exit.Signal != nil {
		t.Errorf("ended with %v", exit)
	}
	b = start(t, dir, nil)
	b.sub(100, plenty).want(2, "a")
	b.end()
}

func TestPublishing(t *testing.T) {
	t.Parallel()
	b := start(t, t.TempDir(), nil)
	message := func(size int) core.Message { return core.Message{Name: "q", Payload: make([]byte, size)} }
	many := message(0)
	many.Headers = make(core.Headers, 65)
	for _, tt := range []struct {
		name   string
		item   frame.Outgoing
		status frame.ReceiptStatus
		code   core.FaultCode
	}{
		{"the largest", frame.Outgoing{Message: message(8 << 20)}, frame.ReceiptConfirmed, 0},
		{"too large", frame.Outgoing{Message: message(8<<20 + 1)}, frame.ReceiptRefused, core.FaultTooLarge},
		{"too many headers", frame.Outgoing{Message: many}, frame.ReceiptRefused, core.FaultTooLarge},
		{"too late", frame.Outgoing{Message: message(0), DeliverAfter: time.Hour}, frame.ReceiptRefused, core.FaultUnsupported},
		{"no name", frame.Outgoing{}, frame.ReceiptRefused, core.FaultInvalid},
		{"options", frame.Outgoing{Message: message(0), Options: []byte(`{"a":1}`)}, frame.ReceiptRefused, core.FaultInvalid},
	} {
		r := b.publish(tt.item)[1]
		if r.Status != tt.status || r.Status == frame.ReceiptRefused && (r.Fault == nil || r.Fault.Code != tt.code) {
			t.Errorf("%s: %+v", tt.name, r)
		}
	}
	b.end()
}

func TestDelaysAndRepeats(t *testing.T) {
	t.Parallel()
	b := start(t, t.TempDir(), nil)
	text := func(text string) frame.Outgoing {
		return frame.Outgoing{Message: core.Message{Name: "q", Payload: []byte(text)}}
	}
	late, twice, now := text("late"), text("twice"), text("now")
	late.DeliverAfter = 300 * time.Millisecond
	twice.DedupID = "one"
	began := time.Now()
	b.publish(late, twice, twice, now)
	b.publish(twice)
	s := b.sub(100, plenty)
	s.want(1, "twice", "now", "late")
	if took := time.Since(began); took < late.DeliverAfter {
		t.Errorf("it came after %v", took)
	}
	b.end()
}

// TestStalled has a destination that is answered at Close alone.
func TestStalled(t *testing.T) {
	t.Parallel()
	b := start(t, t.TempDir(), map[string]any{"stalled": "wall"})
	s, err := b.Publish(b.ctx)
	b.must(err)
	out := frame.PublishesOf(2)
	out.Items = append(out.Items, frame.Outgoing{ID: 1, Message: core.Message{Name: "wall"}}, frame.Outgoing{ID: 2, Message: core.Message{Name: "q"}})
	b.must(s.Send(out))
	rs, err := s.Recv(nil)
	b.must(err)
	if len(rs) != 1 || rs[0].ID != 2 || rs[0].Status != frame.ReceiptConfirmed {
		t.Fatalf("got %+v", rs)
	}
	_, err = b.Close(b.ctx, &pb.CloseRequest{Limit: int64(300 * time.Millisecond)})
	b.must(err)
	rs, err = s.Recv(nil)
	b.must(err)
	if len(rs) != 1 || rs[0].ID != 1 || rs[0].Status != frame.ReceiptUnknown {
		t.Errorf("got %+v", rs)
	}
}

// TestCut cuts the connection: what was unsettled is void and comes again.
func TestCut(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cut")
	b := start(t, t.TempDir(), map[string]any{"cut": file})
	b.stored("a")
	s := b.sub(100, plenty)
	s.want(1, "a")
	b.must(os.WriteFile(file, []byte("."), 0o600))
	s.want(2, "a")
	if s.voids != 1 {
		t.Errorf("%d voids", s.voids)
	}
	s.settle(ack(1, 1))
	if rs := s.barrier(); len(rs) != 1 || rs[0].Status != frame.SettleStale {
		t.Errorf("an ack of what is void: %+v", rs)
	}
	b.end()
}

func TestSettings(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := process.Start(ctx, 1, process.Options{Name: "liar", Path: liartest.Binary(t, ""), Endpoint: "queues"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Link().Configure(ctx, &pb.ConfigureRequest{Settings: []byte(`{"lie":"none such","token":1,"colour":"red"}`)})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, d := range r.GetFault().GetDiagnostics() {
		paths = append(paths, d.GetPath())
	}
	if got, want := strings.Join(paths, " "), "colour token dir lie"; got != want {
		t.Errorf("got diagnostics of %s, want %s", got, want)
	}
	if err := p.End(ctx); err != nil {
		t.Fatal(err)
	}
}
