// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"time"

	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// cutEvery is how often the file is looked at.
const cutEvery = 10 * time.Millisecond

// watchCut cuts the connection whenever the size of a file changes, as a broker
// that closes it would.
func (p *plugin) watchCut(path string) {
	size := func() int64 {
		if info, err := os.Stat(path); err == nil {
			return info.Size()
		}
		return 0
	}
	last := size()
	look := time.NewTicker(cutEvery)
	defer look.Stop()
	for range look.C {
		if now := size(); now != last {
			last = now
			p.cut()
		}
	}
}

// cut ends the connection of every subscription and makes it anew: all that is
// unsettled comes again.
func (p *plugin) cut() {
	p.link.set(&pb.LinkState{Reason: "the connection was cut"})
	p.mu.Lock()
	subs := make([]*subscription, 0, len(p.subs))
	for _, s := range p.subs {
		subs = append(subs, s)
	}
	p.mu.Unlock()
	for _, s := range subs {
		s.cut()
	}
	p.link.set(&pb.LinkState{Up: true})
}

func (s *subscription) cut() {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if s.over {
		return
	}
	void := &pb.Void{All: true, Returns: true}
	if s.conduct.Void != nil {
		void = s.conduct.Void(void)
	}
	s.giveBack(s.conduct.LosesVoid)
	if void != nil && s.conduct.VoidsLate == 0 {
		s.void(void)
	}
	if s.conduct.VoidsLate > 0 {
		time.AfterFunc(s.conduct.VoidsLate, func() {
			s.q.mu.Lock()
			defer s.q.mu.Unlock()
			s.void(void)
		})
	}
}

// void is sent behind all deliveries that it concerns, since those were taken
// before; the lock is held.
func (s *subscription) void(v *pb.Void) {
	s.outbox = append(s.outbox, &pb.SubscribeResponse{Part: &pb.SubscribeResponse_Void{Void: v}})
	s.q.changed.Broadcast()
}
