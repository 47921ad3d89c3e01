// SPDX-License-Identifier: Apache-2.0

package inproc

import (
	"context"
	"errors"
	"io"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/process"
	"github.com/longshore-go/longshore/internal/transportpb"
	"github.com/longshore-go/longshore/pluginapi"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var _ process.Generation = (*Generation)(nil)

// ticker is a transport whose one subscription delivers numbers.
type ticker struct {
	name string

	mu      sync.Mutex
	closes  int
	flushed bool // Close had time left
	verdict []pluginapi.Verdict
}

func (t *ticker) Describe() pluginapi.Spec {
	return pluginapi.Spec{Name: t.name, Ceilings: []core.Capabilities{{Ack: core.AckSingle}}}
}

func (t *ticker) Configure(pluginapi.Settings) (pluginapi.Endpoint, error) { return endpoint{t}, nil }

type endpoint struct{ t *ticker }

func (e endpoint) Inspect(pluginapi.Usage) pluginapi.Inspection { return pluginapi.Inspection{} }

func (e endpoint) Connect(context.Context, []byte) (pluginapi.Conn, error) { return conn(e), nil }

type conn struct{ t *ticker }

func (c conn) Subscribe(context.Context, pluginapi.Registration) (pluginapi.Subscription, error) {
	return &subscription{t: c.t}, nil
}

func (c conn) Publish(_ context.Context, msgs []pluginapi.Outgoing, done func(int, pluginapi.Receipt)) {
	for i := range msgs {
		done(i, pluginapi.Receipt{Status: pluginapi.ReceiptConfirmed})
	}
}

func (c conn) Close(ctx context.Context) ([]byte, error) {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	c.t.closes++
	c.t.flushed = ctx.Err() == nil
	return []byte("resume"), nil
}

type subscription struct {
	t    *ticker
	next int
}

func (s *subscription) Profiles() []core.Capabilities {
	return []core.Capabilities{{Ack: core.AckSingle}}
}

func (s *subscription) Receive(ctx context.Context, room pluginapi.Room) (pluginapi.Batch, error) {
	if room.Messages == 0 {
		<-ctx.Done()
		return pluginapi.Batch{}, ctx.Err()
	}
	s.next++
	return pluginapi.Batch{Deliveries: []pluginapi.Delivery{{Handle: s.next}}}, nil
}

func (s *subscription) Settle(_ context.Context, vs []pluginapi.Verdict) []pluginapi.Result {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	s.t.verdict = append(s.t.verdict, vs...)
	rs := make([]pluginapi.Result, len(vs))
	for i := range rs {
		rs[i].Status = pluginapi.ResultDone
	}
	return rs
}

func (s *subscription) Close(context.Context) error { return nil }

// start makes a connected generation.
func start(t *testing.T, tr *ticker) *Generation {
	t.Helper()
	g, err := New(tr, Options{Endpoint: "e", Generation: 7})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Crash)
	if r, err := g.Link().Configure(t.Context(), &transportpb.ConfigureRequest{}); err != nil || r.GetFault() != nil {
		t.Fatalf("Configure: %v %v", r, err)
	}
	if _, err := g.Link().Connect(t.Context(), &transportpb.ConnectRequest{}); err != nil {
		t.Fatalf("Connect: %v", err)
	}
	return g
}

// subscribe opens a stream and reads up to its first delivery.
func subscribe(t *testing.T, g *Generation) link.SubscribeStream {
	t.Helper()
	s, err := g.Link().Subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*frame.SubscribeRequest{
		{Start: &transportpb.SubscribeStart{Registration: &transportpb.Registration{Name: "q"}}},
		{Credit: &frame.Credit{Messages: 1, Bytes: 1}},
	} {
		if err := s.Send(r); err != nil {
			t.Fatal(err)
		}
	}
	for {
		var r frame.SubscribeResponse
		if err := s.Recv(&r); err != nil {
			t.Fatal(err)
		}
		if r.Deliveries != nil {
			r.Deliveries.Release()
			return s
		}
	}
}

func TestGeneration(t *testing.T) {
	tr := &ticker{name: "ticker"}
	g := start(t, tr)
	if g.Description().GetName() != "ticker" || g.Generation() != 7 || g.PID() <= 0 || g.Stderr() != nil {
		t.Errorf("generation says %v %d %d", g.Description(), g.Generation(), g.PID())
	}
	s := subscribe(t, g)
	if err := s.Send(&frame.SubscribeRequest{Settle: []frame.VerdictRun{{First: 1, Kind: core.VerdictAck}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for {
		var r frame.SubscribeResponse
		if err := s.Recv(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if r.Deliveries != nil {
			r.Deliveries.Release()
		}
	}
	r, err := g.Link().Close(t.Context(), &transportpb.CloseRequest{})
	if err != nil || string(r.GetResume()) != "resume" {
		t.Errorf("Close: %v %v", r, err)
	}
	if err := g.End(t.Context()); err != nil {
		t.Error(err)
	}
	<-g.Done()
	if e := g.Exit(); e != (process.Exit{}) || tr.closes != 1 || len(tr.verdict) != 1 {
		t.Errorf("exit %v, closed %d times, verdicts %v", e, tr.closes, tr.verdict)
	}
}

// A killed generation breaks like a killed process: streams and calls end with
// *link.LostError, nothing is flushed, and nothing of it is left.
func TestCrash(t *testing.T) {
	tr := &ticker{name: "ticker"}
	g := start(t, tr)
	s := subscribe(t, g)
	p, err := g.Link().Publish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g.Crash()
	select {
	case <-g.Done():
	default:
		t.Error("not done after Crash")
	}
	var lost *link.LostError
	var r frame.SubscribeResponse
	if err := s.Recv(&r); !errors.As(err, &lost) {
		t.Errorf("subscription ended with %v", err)
	}
	if _, err := p.Recv(nil); !errors.As(err, &lost) {
		t.Errorf("publish stream ended with %v", err)
	}
	if _, err := g.Link().Inspect(t.Context(), &transportpb.InspectRequest{}); !errors.As(err, &lost) {
		t.Errorf("call ended with %v", err)
	}
	if e := g.Exit(); e.Signal != syscall.SIGKILL || e.Code != -1 || e.Hung {
		t.Errorf("exit %+v", e)
	}
	if tr.closes != 1 || tr.flushed || len(tr.verdict) != 0 {
		t.Errorf("closed %d times, with time left: %v, verdicts %v", tr.closes, tr.flushed, tr.verdict)
	}
	g.Kill() // and once more
	if err := g.End(t.Context()); err != nil {
		t.Error(err)
	}
}

// End without Close flushes and closes the transport.
func TestEndWithoutClose(t *testing.T) {
	tr := &ticker{name: "ticker"}
	g := start(t, tr)
	subscribe(t, g)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := g.End(ctx); err != nil {
		t.Error(err)
	}
	if tr.closes != 1 || !tr.flushed {
		t.Errorf("closed %d times, with time left: %v", tr.closes, tr.flushed)
	}
}

func TestNewRefusesABrokenTransport(t *testing.T) {
	_, err := New(&ticker{}, Options{Endpoint: "e"})
	var f *core.Fault
	if !errors.As(err, &f) || f.Code != core.FaultInternal {
		t.Errorf("error %v, want a fault", err)
	}
}
