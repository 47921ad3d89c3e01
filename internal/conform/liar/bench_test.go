// SPDX-License-Identifier: Apache-2.0

package liar_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/conform/liar/liartest"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/process"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// bench is one generation of a connected liar.
type bench struct {
	*testing.T
	ctx context.Context
	p   *process.Process
	link.Link
}

// start starts a generation over a folder; more are further settings.
func start(t *testing.T, dir string, more map[string]any) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	p, err := process.Start(ctx, 1, process.Options{Name: "liar", Path: liartest.Binary(t, ""), Endpoint: "queues"})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t, ctx, p, p.Link()}
	t.Cleanup(func() {
		if err := p.End(context.Background()); err != nil {
			t.Error(err)
		}
	})
	set := map[string]any{"dir": dir}
	for k, v := range more {
		set[k] = v
	}
	text, err := json.Marshal(set)
	b.must(err)
	r, err := b.Configure(ctx, &pb.ConfigureRequest{Endpoint: "queues", Generation: 1, Settings: text})
	b.must(err)
	if f := r.GetFault(); f != nil {
		t.Fatalf("Configure: %v", f)
	}
	_, err = b.Connect(ctx, &pb.ConnectRequest{})
	b.must(err)
	return b
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) end() {
	b.Helper()
	_, err := b.Close(b.ctx, &pb.CloseRequest{Limit: int64(2 * time.Second)})
	b.must(err)
	b.must(b.p.End(b.ctx))
	if exit := b.p.Exit(); exit.Code != 0 || exit.Signal != nil {
		b.Errorf("the end of the leash ends it with %v", exit)
	}
}

// publish publishes and returns the receipts by id.
func (b *bench) publish(items ...frame.Outgoing) map[uint64]frame.Receipt {
	b.Helper()
	s, err := b.Publish(b.ctx)
	b.must(err)
	for i := range items {
		items[i].ID = uint64(i + 1)
	}
	out := frame.PublishesOf(len(items))
	out.Items = append(out.Items, items...)
	b.must(s.Send(out))
	b.must(s.CloseSend())
	var rs []frame.Receipt
	for err == nil {
		rs, err = s.Recv(rs)
	}
	if !errors.Is(err, io.EOF) || len(rs) != len(items) {
		b.Fatalf("%d receipts of %d, %v", len(rs), len(items), err)
	}
	byID := map[uint64]frame.Receipt{}
	for _, r := range rs {
		byID[r.ID] = r
	}
	return byID
}

// stored publishes texts to the queue "q" and wants them confirmed.
func (b *bench) stored(texts ...string) {
	b.Helper()
	var items []frame.Outgoing
	for _, text := range texts {
		items = append(items, frame.Outgoing{Message: core.Message{Name: "q", Payload: []byte(text)}})
	}
	for id, r := range b.publish(items...) {
		if r.Status != frame.ReceiptConfirmed {
			b.Fatalf("message %d: %+v", id, r)
		}
	}
}

// sub is a subscription of the queue "q".
type sub struct {
	*bench
	stream  link.SubscribeStream
	cancel  context.CancelFunc
	waiting []delivery
	results []frame.SettleResult
	ended   bool
	voids   int
}

// delivery is what a test looks at.
type delivery struct {
	id      uint64
	text    string
	attempt uint32
}

func (b *bench) sub(messages, bytes uint64) *sub {
	b.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	b.Cleanup(cancel)
	stream, err := b.Subscribe(ctx)
	b.must(err)
	s := &sub{bench: b, stream: stream, cancel: cancel}
	s.send(&frame.SubscribeRequest{Start: &pb.SubscribeStart{Registration: &pb.Registration{Name: "q"}}})
	var r frame.SubscribeResponse
	b.must(stream.Recv(&r))
	if r.Started == nil {
		b.Fatalf("got %+v, want Started", r)
	}
	if messages > 0 {
		s.send(&frame.SubscribeRequest{Credit: &frame.Credit{Messages: messages, Bytes: bytes}})
	}
	return s
}

func (s *sub) send(r *frame.SubscribeRequest) {
	s.Helper()
	s.must(s.stream.Send(r))
}

func (s *sub) settle(runs ...frame.VerdictRun) {
	s.Helper()
	s.send(&frame.SubscribeRequest{Settle: runs})
}

// recv takes one message of the plugin.
func (s *sub) recv() error {
	var r frame.SubscribeResponse
	if err := s.stream.Recv(&r); err != nil {
		return err
	}
	if r.Deliveries != nil {
		for _, d := range r.Deliveries.Items {
			s.waiting = append(s.waiting, delivery{d.ID, string(d.Message.Payload), d.Attempt})
		}
		r.Deliveries.Release()
	}
	s.results = append(s.results, r.Settled...)
	s.ended = s.ended || r.Ended != nil
	if r.Void != nil {
		s.voids++
	}
	return nil
}

// next returns the next delivery.
func (s *sub) next() delivery {
	s.Helper()
	for len(s.waiting) == 0 {
		s.must(s.recv())
	}
	d := s.waiting[0]
	s.waiting = s.waiting[1:]
	return d
}

// want takes deliveries and compares texts and counts.
func (s *sub) want(attempt uint32, texts ...string) (first uint64) {
	s.Helper()
	for i, text := range texts {
		d := s.next()
		if d.text != text || d.attempt != attempt {
			s.Fatalf("got %+v, want %q for the %d. time", d, text, attempt)
		}
		if i == 0 {
			first = d.id
		}
	}
	return first
}

// barrier waits until all that was asked has been answered.
func (s *sub) barrier() []frame.SettleResult {
	s.Helper()
	s.settle(frame.VerdictRun{First: 0, Kind: core.VerdictRelease})
	for {
		for i, r := range s.results {
			if r.First == 0 {
				out := s.results[:i]
				s.results = s.results[i+1:]
				return out
			}
		}
		s.must(s.recv())
	}
}

// cut cancels the stream. The stream's error comes behind its reset, which the
// plugin then reads before a stream that is opened next.
func (s *sub) cut() {
	s.Helper()
	s.cancel()
	for {
		if err := s.recv(); err != nil {
			if errors.Is(err, io.EOF) {
				s.Error("the stream has ended by itself")
			}
			return
		}
	}
}

// finish ends the subscription in order.
func (s *sub) finish() {
	s.Helper()
	s.send(&frame.SubscribeRequest{Stop: true})
	for !s.ended {
		s.must(s.recv())
	}
	s.must(s.stream.CloseSend())
	for {
		if err := s.recv(); err != nil {
			if !errors.Is(err, io.EOF) {
				s.Error(err)
			}
			return
		}
	}
}
