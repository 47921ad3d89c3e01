// SPDX-License-Identifier: Apache-2.0

package link

import (
	"slices"
	"sync"

	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// localRequest is a request of the host in memory of its own, which is used
// again once the server asks for the next.
type localRequest struct {
	frame.SubscribeRequest
	runs   []frame.VerdictRun
	credit frame.Credit
}

// localRequests are those not in use.
var localRequests sync.Pool

// keep copies r.
func (k *localRequest) keep(r *frame.SubscribeRequest) {
	k.SubscribeRequest = *r
	if r.Settle != nil {
		k.runs = append(k.runs[:0], r.Settle...)
		k.Settle = k.runs
	}
	if r.Credit != nil {
		k.credit = *r.Credit
		k.Credit = &k.credit
	}
	k.Start, k.Seek = clone(r.Start), clone(r.Seek)
}

// localSubscribe is the host's side of a subscription.
type localSubscribe struct {
	*localStream[*localRequest, frame.SubscribeResponse]
}

func (s *localSubscribe) Send(r *frame.SubscribeRequest) error {
	k, ok := localRequests.Get().(*localRequest)
	if !ok {
		k = &localRequest{}
	}
	k.keep(r)
	return s.hostSend(k)
}

func (s *localSubscribe) Recv(r *frame.SubscribeResponse) (err error) {
	*r, err = s.hostRecv()
	return err
}

// localServerSubscribe is the server's side of a subscription.
type localServerSubscribe struct {
	*localStream[*localRequest, frame.SubscribeResponse]
	last *localRequest // what the server holds
}

func (s *localServerSubscribe) Send(r *frame.SubscribeResponse) error {
	d := r.Deliveries
	if d == nil {
		if f := r.Fits(); f != nil {
			return f
		}
		out := *r
		out.Settled = slices.Clone(r.Settled)
		return s.serverSend(out)
	}
	for i := range d.Items {
		if f := d.Items[i].Fits(); f != nil {
			d.Release()
			return f
		}
	}
	if n := len(d.Items); 0 < n && n <= frame.MaxItems {
		return s.sendFrame(d)
	}
	var err error
	for _, f := range d.Cut() {
		if err == nil {
			err = s.sendFrame(f)
		} else {
			f.Release()
		}
	}
	return err
}

// sendFrame sends a frame, whose holder is the host's unless it fails.
func (s *localServerSubscribe) sendFrame(d *frame.Deliveries) error {
	err := s.serverSend(frame.SubscribeResponse{Deliveries: d})
	if err != nil {
		d.Release()
	}
	return err
}

func (s *localServerSubscribe) Recv(r *frame.SubscribeRequest) error {
	if s.last != nil {
		localRequests.Put(s.last)
		s.last = nil
	}
	k, err := s.serverRecv()
	if err != nil {
		*r = frame.SubscribeRequest{}
		return err
	}
	s.last = k
	*r = k.SubscribeRequest
	return nil
}

// localPublish is the host's side of the publish stream.
type localPublish struct {
	*localStream[*frame.Publishes, []frame.Receipt]
}

func (s *localPublish) Send(p *frame.Publishes) error {
	for i := range p.Items {
		if f := p.Items[i].Fits(); f != nil {
			p.Release()
			return f
		}
	}
	if n := len(p.Items); 0 < n && n <= frame.MaxItems {
		return s.sendFrame(p)
	}
	var err error
	for _, f := range p.Cut() {
		if err == nil {
			err = s.sendFrame(f)
		} else {
			f.Release()
		}
	}
	return err
}

// sendFrame sends a frame, whose holder is the server's unless it fails.
func (s *localPublish) sendFrame(p *frame.Publishes) error {
	err := s.hostSend(p)
	if err != nil {
		p.Release()
	}
	return err
}

func (s *localPublish) Recv(rs []frame.Receipt) ([]frame.Receipt, error) {
	more, err := s.hostRecv()
	return append(rs, more...), err
}

// localServerPublish is the server's side of the publish stream.
type localServerPublish struct {
	*localStream[*frame.Publishes, []frame.Receipt]
}

func (s *localServerPublish) Send(rs []frame.Receipt) error {
	if len(rs) == 0 {
		return nil
	}
	return s.serverSend(slices.Clone(rs))
}

func (s *localServerPublish) Recv() (*frame.Publishes, error) { return s.serverRecv() }

// localSupervise is the host's side of supervision.
type localSupervise struct {
	*localStream[*transportpb.SuperviseRequest, *transportpb.SuperviseResponse]
}

func (s *localSupervise) Send(r *transportpb.SuperviseRequest) error {
	if err := checkSize(r); err != nil {
		return err
	}
	return s.hostSend(clone(r))
}

func (s *localSupervise) Recv() (*transportpb.SuperviseResponse, error) { return s.hostRecv() }

// localServerSupervise is the server's side of supervision.
type localServerSupervise struct {
	*localStream[*transportpb.SuperviseRequest, *transportpb.SuperviseResponse]
}

func (s *localServerSupervise) Send(r *transportpb.SuperviseResponse) error {
	if err := checkAnswer(r); err != nil {
		return err
	}
	return s.serverSend(clone(r))
}

func (s *localServerSupervise) Recv() (*transportpb.SuperviseRequest, error) { return s.serverRecv() }
