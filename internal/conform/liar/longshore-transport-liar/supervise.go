// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"

	"google.golang.org/grpc"

	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// link is the state of the connection and everything else that Supervise sends.
type link struct {
	mu      sync.Mutex
	changed *sync.Cond
	states  []*pb.LinkState // all so far
}

func newLink() *link {
	l := &link{}
	l.changed = sync.NewCond(&l.mu)
	return l
}

func (l *link) set(s *pb.LinkState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.states = append(l.states, s)
	l.changed.Broadcast()
}

// supervision is one stream; the link's lock guards it.
type supervision struct {
	beat     uint64 // newest that is to be answered
	due      bool
	told     int // states that the host knows
	finished bool
	err      error
}

func (p *plugin) supervise(stream grpc.ServerStream) error {
	p.mu.Lock()
	again := p.supervised && !p.conduct.Load().Repeatable
	p.supervised = true
	p.mu.Unlock()
	if again {
		return refuse(fault(conflict, "supervise: there is a stream already"))
	}
	defer func() {
		p.mu.Lock()
		p.supervised = false
		p.mu.Unlock()
	}()
	l := p.link
	v := &supervision{}
	l.mu.Lock()
	v.told = max(0, len(l.states)-1)
	l.mu.Unlock()
	go p.hearHost(stream, v)
	for {
		out, err := p.news(v)
		if err != nil || out == nil {
			return err
		}
		if err := stream.SendMsg(out); err != nil {
			return err
		}
	}
}

// hearHost takes beats and the log level.
func (p *plugin) hearHost(stream grpc.ServerStream, v *supervision) {
	for {
		r := &pb.SuperviseRequest{}
		err := stream.RecvMsg(r)
		p.link.mu.Lock()
		switch part := r.GetPart().(type) {
		case *pb.SuperviseRequest_Beat:
			v.beat, v.due = part.Beat, true
		case *pb.SuperviseRequest_LogLevel:
			setLevel(part.LogLevel)
		}
		if err != nil {
			v.finished, v.err = true, orderly(err)
		}
		p.link.changed.Broadcast()
		p.link.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// news waits for something to tell; nil is the end.
func (p *plugin) news(v *supervision) (*pb.SuperviseResponse, error) {
	l := p.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		conduct := p.conduct.Load()
		if waits := conduct.MissesBeats && p.waiting.Load() > 0; v.due && !waits {
			v.due = false
			beat := v.beat
			if conduct.Beat != nil {
				beat = conduct.Beat(beat)
			}
			return &pb.SuperviseResponse{Part: &pb.SuperviseResponse_Beat{Beat: beat}}, nil
		}
		if v.told < len(l.states) && !conduct.NoLink {
			v.told++
			return &pb.SuperviseResponse{Part: &pb.SuperviseResponse_Link{Link: l.states[v.told-1]}}, nil
		}
		if v.finished {
			return nil, v.err
		}
		l.changed.Wait()
	}
}
