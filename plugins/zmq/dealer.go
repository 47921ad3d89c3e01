// SPDX-License-Identifier: Apache-2.0

package zmq

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/internal/sending"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// headerCorrelation is the header that tells replies apart.
const headerCorrelation = "correlation-id"

// maxRequests is how many requests wait for their replies at a time, which is as
// many as a host has under way.
const maxRequests = 1024

// dealer sends requests to its peers in turn, and hands their replies to those
// that wait for them.
type dealer struct {
	push  *sending.Push
	log   *slog.Logger
	place func() string // where the responders are
	mint  string        // what an id that is minted begins with

	budget *zmtp.Budget // of large replies

	minted  atomic.Uint64
	skipped atomic.Uint64 // replies that nobody waits for, or that cannot be read

	unreadable peering.Notice

	mu      sync.Mutex
	waiting map[string]*request // by correlation id
	peers   map[*peering.Peer]struct{}
	closed  bool
}

// request is one that waits for its reply.
type request struct {
	id    string
	reply chan core.Message              // has room for one
	ended chan *core.Fault               // why there will be none; has room for one
	peer  *peering.Peer                  // who has it, nil: nobody yet
	early map[*peering.Peer]core.Message // what came before it was noted who has it
}

func newDealer(log *slog.Logger, place func() string, push *sending.Push) *dealer {
	return &dealer{
		push: push, log: log, budget: zmtp.NewBudget(zmtp.DefaultBudget), place: place, mint: fmt.Sprintf("req-%d-", os.Getpid()),
		waiting: make(map[string]*request), peers: make(map[*peering.Peer]struct{}),
	}
}

// serve has a peer from its handshake to its end. Behind it requests that the
// peer had fail.
func (d *dealer) serve(p *peering.Peer) error {
	d.mu.Lock()
	d.peers[p] = struct{}{}
	d.mu.Unlock()
	d.push.Attach(p)
	p.Conn.Reader().Share(zmtp.Sharing{Budget: d.budget, Done: p.Context().Done(), End: p.Close})
	var decoder message.Decoder
	err := p.Read(func(f *zmtp.Frames) error {
		if f.Command == "" {
			d.take(p, &decoder, f.List)
		}
		return nil
	}, func() {})
	d.push.Detach(p, err)
	d.lose(p)
	return err
}

// take hands a reply to who waits for it. One with another id is somebody else's,
// or too late, and is skipped; so is one of a peer that was not asked, which can
// answer for nobody else.
func (d *dealer) take(p *peering.Peer, decoder *message.Decoder, frames [][]byte) {
	if p.Conn.PeerType() == zmq4.Rep && len(frames) > 1 && len(frames[0]) == 0 {
		frames = frames[1:] // what it put before its reply, as it came before the request
	}
	var m core.Message
	f := decoder.Decode(frames, &m)
	id, _ := m.Headers.Get(headerCorrelation)
	if f == nil && len(id) == 0 {
		f = &core.Fault{Message: "it has no " + headerCorrelation + ": the one that answers gives back that of the request, among the headers"}
	}
	if f != nil {
		d.skipped.Add(1)
		if n, due := d.unreadable.Due(); due {
			d.log.Warn("a reply cannot be read, and is left out", "peer", p.Remote, "reason", f.Error(), "times", n)
		}
		return
	}
	if !d.hand(p, string(id), &m) {
		d.log.Debug("reply skipped: nobody waits for it", "peer", p.Remote, "correlation_id", string(id), "skipped", d.skipped.Add(1))
	}
}

// hand gives a reply to who waits for it. It reports false where nobody does.
func (d *dealer) hand(p *peering.Peer, id string, m *core.Message) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.waiting[id]
	switch {
	case r == nil || r.peer != nil && r.peer != p:
		return false
	case r.peer == p:
		d.answer(r, m.Clone()) // what it lies in is used again
	case r.early == nil:
		r.early = map[*peering.Peer]core.Message{p: m.Clone()}
	default:
		r.early[p] = m.Clone()
	}
	return true
}

// answer gives a request its reply; d.mu is held.
func (d *dealer) answer(r *request, m core.Message) {
	delete(d.waiting, r.id)
	r.reply <- m
}

// lose ends the requests that a lost peer has.
func (d *dealer) lose(p *peering.Peer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.peers, p)
	for _, r := range d.waiting {
		if r.peer == p {
			r.end(lost(p))
		}
	}
}

// lost is the fault of a request whose peer is gone.
func lost(p *peering.Peer) *core.Fault {
	return fault.Passing(core.FaultUnavailable, "ask again if the request may be handled twice",
		"the connection to %s was lost before the reply; the request may have been handled", p.Remote)
}

// end says why there will be no reply. What was said first stays.
func (r *request) end(f *core.Fault) {
	select {
	case r.ended <- f:
	default:
	}
}

// register makes a request one that waits under an id.
func (d *dealer) register(id string) (*request, *core.Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, fault.Closed("request")
	case d.waiting[id] != nil:
		return nil, fault.Refusal(core.FaultConflict, "another request with the correlation id %s waits for its reply: give each its own", shown(id))
	case len(d.waiting) >= maxRequests:
		return nil, fault.Passing(core.FaultExhausted, "ask when one of them has its reply",
			"%d requests wait for their replies, which is the limit", maxRequests)
	}
	r := &request{id: id, reply: make(chan core.Message, 1), ended: make(chan *core.Fault, 1)}
	d.waiting[id] = r
	return r, nil
}

// forget lets go of a request that does not wait any more.
func (d *dealer) forget(id string, r *request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[id] == r {
		delete(d.waiting, id)
	}
}

// given takes note of who has a request.
func (d *dealer) given(r *request, p *peering.Peer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.peer = p
	m, answered := r.early[p]
	r.early = nil
	if answered {
		d.answer(r, m)
		return
	}
	if _, there := d.peers[p]; !there {
		r.end(lost(p))
	}
}

// takeBack takes note that nobody has a request: the peer that was given it is
// gone, and was not sent all of it.
func (d *dealer) takeBack(r *request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.peer = nil; !d.closed {
		r.ended = make(chan *core.Fault, 1)
	}
}

// close sends what waits, as long as linger and ctx allow, and ends all requests.
func (d *dealer) close(ctx context.Context) {
	d.push.Close(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, r := range d.waiting {
		r.end(fault.Closed("request"))
	}
}
