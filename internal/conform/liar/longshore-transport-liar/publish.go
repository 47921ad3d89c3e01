// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/longshore-go/longshore/internal/conform/liar"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

const (
	// maxItems and maxFrameHeaders are limits of a frame that is received.
	maxItems        = 256
	maxFrameHeaders = 1 << 16
	// maxStalled bounds the messages that are never answered.
	maxStalled = 1024
)

// publisher is the publish stream: a goroutine reads and stores, the stream's
// own one sends receipts.
type publisher struct {
	p       *plugin
	stream  grpc.ServerStream
	conduct *liar.Conduct
	queues  map[string]*queue // that it uses; the reader's alone

	mu      sync.Mutex
	changed *sync.Cond
	outbox  []*pb.Receipt
	sending bool
	stalled []uint64 // ids without an answer
	pending []late   // of the lies that store later
	closed  bool
	read    bool // the host says no more
	broken  error
	active  time.Time
}

func (p *plugin) publish(stream grpc.ServerStream) error {
	s := &publisher{p: p, stream: stream, conduct: p.conduct.Load(), queues: map[string]*queue{}, active: time.Now()}
	s.changed = sync.NewCond(&s.mu)
	p.mu.Lock()
	err := p.check("publish", isConnected)
	if err == nil && p.publishing != nil && !s.conduct.Repeatable {
		err = refuse(fault(conflict, "publish: there is a stream already"))
	}
	if err == nil {
		p.publishing = s
	}
	p.mu.Unlock()
	if err != nil {
		return err
	}
	go s.listen()
	err = s.send()
	p.mu.Lock()
	if p.publishing == s {
		p.publishing = nil
	}
	p.mu.Unlock()
	return err
}

// listen takes messages until the host has no more.
func (s *publisher) listen() {
	defer func() {
		s.flush() // what was accepted is stored whatever becomes of the stream
		for _, q := range s.queues {
			s.p.store.release(q)
		}
	}()
	for {
		r := &pb.PublishRequest{}
		err := s.stream.RecvMsg(r)
		if err == nil {
			err = s.check(r)
		}
		var receipts []*pb.Receipt
		if err == nil {
			receipts = s.frame(r.GetItems())
		}
		s.mu.Lock()
		s.active = time.Now()
		s.outbox = append(s.outbox, receipts...)
		if errors.Is(err, io.EOF) {
			s.read = true
		} else {
			s.broken = err
		}
		s.changed.Broadcast()
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// check refuses frames that are over the protocol's limits.
func (s *publisher) check(r *pb.PublishRequest) error {
	if n := len(r.GetItems()); n > maxItems {
		return refuse(fault(invalid, "publish: %d messages in a frame, the limit is %d", n, maxItems))
	}
	headers := 0
	for _, o := range r.GetItems() {
		headers += len(o.GetHeaders())
	}
	if headers > maxFrameHeaders {
		return refuse(fault(invalid, "publish: %d headers in a frame, the limit is %d", headers, maxFrameHeaders))
	}
	return nil
}

// send sends receipts until there are no more to come.
func (s *publisher) send() error {
	for {
		s.mu.Lock()
		s.sending = false
		s.changed.Broadcast()
		for s.broken == nil && len(s.outbox) == 0 && (!s.read || len(s.stalled) > 0 || s.conduct.HangsHalf) {
			s.changed.Wait()
		}
		out, err := s.outbox, s.broken
		if len(out) > maxEntries {
			out = out[:maxEntries]
		}
		s.outbox = s.outbox[len(out):]
		s.sending = len(out) > 0
		s.mu.Unlock()
		if err != nil || len(out) == 0 {
			return err
		}
		if err := s.stream.SendMsg(&pb.PublishResponse{Receipts: out}); err != nil {
			s.mu.Lock()
			s.sending, s.broken = false, err
			s.mu.Unlock()
			return err
		}
	}
}

// close answers all that is accepted until end; what is then without an answer
// is unknown.
func (s *publisher) close(end time.Time) {
	s.still(end)
	s.flush()
	s.mu.Lock()
	s.closed = true
	waits := len(s.stalled) > 0 && s.broken == nil
	s.mu.Unlock()
	if waits {
		select {
		case <-s.stream.Context().Done():
		case <-deadline(end):
		}
	}
	s.mu.Lock()
	for _, id := range s.stalled {
		s.outbox = append(s.outbox, &pb.Receipt{Id: id, Status: pb.ReceiptStatus_RECEIPT_STATUS_UNKNOWN,
			Fault: passing(timedOut, "publish: the destination does not answer")})
	}
	s.stalled = nil
	s.changed.Broadcast()
	s.mu.Unlock()
	quiet(end.Add(stillness), func() time.Time {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.broken != nil || len(s.outbox) == 0 && !s.sending {
			return time.Time{}
		}
		return time.Now()
	})
}

// still waits until what was sent before has been read.
func (s *publisher) still(end time.Time) {
	quiet(end, func() time.Time {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.read || s.broken != nil {
			return time.Time{}
		}
		return s.active
	})
}

func deadline(end time.Time) <-chan time.Time { return time.NewTimer(time.Until(end)).C }
