// SPDX-License-Identifier: Apache-2.0

// Package testplugin shows that a plugin which follows docs/protocol.md and
// knows nothing else works with this host.
package testplugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/process"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPluginFromScratch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "longshore-transport-scratch")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./longshore-transport-scratch")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	p, err := process.Start(ctx, 1, process.Options{Name: "scratch", Path: path, Endpoint: "numbers"})
	if err != nil {
		t.Fatal(err)
	}
	l := p.Link()

	beats, err := l.Supervise(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for beat := range uint64(3) {
		if err := beats.Send(&pb.SuperviseRequest{Part: &pb.SuperviseRequest_Beat{Beat: beat + 1}}); err != nil {
			t.Fatal(err)
		}
		if r, err := beats.Recv(); err != nil || r.GetBeat() != beat+1 {
			t.Fatalf("beat %d is answered %v, %v", beat+1, r, err)
		}
	}
	wrong, err := l.Configure(ctx, &pb.ConfigureRequest{Endpoint: "numbers", Settings: []byte(`{"a":1}`)})
	if err != nil || len(wrong.GetFault().GetDiagnostics()) != 1 {
		t.Errorf("wrong settings: %v, %v", wrong, err)
	}
	if r, err := l.Configure(ctx, &pb.ConfigureRequest{Endpoint: "numbers", Generation: 1, Settings: []byte(`{}`)}); err != nil || r.GetFault() != nil {
		t.Fatalf("Configure: %v, %v", r, err)
	}
	registration := &pb.Registration{Name: "numbers"}
	in, err := l.Inspect(ctx, &pb.InspectRequest{Registrations: []*pb.Registration{registration}, Destinations: []*pb.Target{{Name: "x"}}})
	if err != nil || len(in.GetRegistrations()) != 1 || len(in.GetDestinations()) != 1 {
		t.Fatalf("Inspect: %v, %v", in, err)
	}
	if _, err := l.Connect(ctx, &pb.ConnectRequest{}); err != nil {
		t.Fatal(err)
	}

	count(ctx, t, p, registration)
	publish(ctx, t, p)

	var fault *core.Fault
	if _, err := l.Request(ctx, &pb.RequestRequest{}); !errors.As(err, &fault) || fault.Code != core.FaultUnsupported {
		t.Errorf("Request, which it does not serve: %v", err)
	}
	s, err := l.Subscribe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&frame.SubscribeRequest{Stop: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.Recv(&frame.SubscribeResponse{}); !errors.As(err, &fault) || fault.Code != core.FaultConflict {
		t.Errorf("no start: %v", err)
	}
	if err := beats.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := beats.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("end of supervision: %v", err)
	}
	if _, err := l.Close(ctx, &pb.CloseRequest{Limit: int64(time.Second)}); err != nil {
		t.Fatal(err)
	}
	if err := p.End(ctx); err != nil {
		t.Fatal(err)
	}
	if exit := p.Exit(); exit.Code != 0 || exit.Signal != nil {
		t.Errorf("the end of the leash ends it with %v", exit)
	}
}

// count reads a subscription from start to EOF.
func count(ctx context.Context, t *testing.T, p *process.Process, registration *pb.Registration) {
	t.Helper()
	s, err := p.Link().Subscribe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	send := func(r *frame.SubscribeRequest) {
		t.Helper()
		if err := s.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	var r frame.SubscribeResponse
	recv := func() {
		t.Helper()
		if err := s.Recv(&r); err != nil {
			t.Fatal(err)
		}
	}
	send(&frame.SubscribeRequest{Start: &pb.SubscribeStart{Registration: registration}})
	if recv(); len(r.Started.GetProfiles()) != 1 {
		t.Fatalf("got %+v, want Started", r)
	}
	const window, total = 10, 1000
	send(&frame.SubscribeRequest{Credit: &frame.Credit{Messages: window, Bytes: 1 << 20}})
	settled := uint64(0)
	for next := uint64(1); next <= total; {
		recv()
		for _, d := range r.Deliveries.Items {
			if d.ID != next || string(d.Message.Payload) != fmt.Sprint(next) {
				t.Fatalf("delivery %d is %+v", next, d)
			}
			if d.ID > settled+window {
				t.Fatalf("delivery %d is beyond the window behind %d", d.ID, settled)
			}
			next++
		}
		r.Deliveries.Release()
		if n := next - settled - 1; n == window/2 && next <= total { // the last five stay unsettled
			send(&frame.SubscribeRequest{Settle: []frame.VerdictRun{{First: settled + 1, Count: n, Kind: core.VerdictAck}}})
			settled += n
		}
	}
	send(&frame.SubscribeRequest{Stop: true})
	for recv(); r.Ended == nil; recv() {
		r.Deliveries.Release()
	}
	// Behind Ended verdicts are still taken: late, unknown and impossible ones.
	send(&frame.SubscribeRequest{Settle: []frame.VerdictRun{
		{First: 0, Kind: core.VerdictRelease, WantResult: true},
		{First: 1, Kind: core.VerdictAck},
		{First: settled + 1, Kind: core.VerdictReject},
		{First: settled + 2, Kind: core.VerdictAck, WantResult: true},
	}})
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	recv()
	want := []frame.SettleStatus{frame.SettleStale, frame.SettleStale, frame.SettleUnsupported, frame.SettleDone}
	for i, result := range r.Settled {
		if i >= len(want) || result.Status != want[i] {
			t.Errorf("result %d is %+v", i, result)
		}
	}
	if len(r.Settled) != len(want) {
		t.Errorf("got %d results, want %d", len(r.Settled), len(want))
	}
	if err := s.Recv(&r); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want io.EOF", err)
	}
}

// publish sends a frame and takes its receipts.
func publish(ctx context.Context, t *testing.T, p *process.Process) {
	t.Helper()
	s, err := p.Link().Publish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	out := frame.PublishesOf(2)
	out.Items = append(out.Items, frame.Outgoing{ID: 1, Message: core.Message{Name: "x"}}, frame.Outgoing{ID: 2})
	if err := s.Send(out); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	var rs []frame.Receipt
	for err == nil {
		rs, err = s.Recv(rs)
	}
	if !errors.Is(err, io.EOF) || len(rs) != 2 || rs[1].Status != frame.ReceiptConfirmed {
		t.Errorf("got %+v, %v", rs, err)
	}
}
