// SPDX-License-Identifier: Apache-2.0

// Package intake reads what peers send. For a subscription, [Intake] gathers it
// from all of them into batches, in turns and only as far as there is room.
package intake

import (
	"sync"
	"sync/atomic"

	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// Source says how the messages of a subscription are read.
type Source struct {
	// ReplyTo puts the header reply-to, "zmq-reply:" and the peer's identity in
	// hexadecimal, before the others, in place of any the peer sent itself: none
	// can speak for another. A REQ peer's empty frame before the name is left
	// out. Peers stay connected after Stop, so that their replies can leave.
	ReplyTo bool
	// Subscribe subscribes to Prefix at each peer. Names that do not begin with
	// it are left out here as well: not every publisher filters.
	Subscribe bool
	Prefix    string
}

// Options of an intake.
type Options struct {
	Source Source
	// Name is the subscription's, for faults.
	Name string
	// Most is how many bytes of payload and headers a message may have; of one with
	// more the name alone is delivered, as undecodable. 0 = no limit.
	Most int64
}

// Intake is what one subscription reads: its peers, and its own queue of
// messages that this process has published to it. It goes through two phases:
// peers are served and Receive is called, by one goroutine at a time; after Stop
// what peers send is counted and nothing is delivered any more. All other methods may be called from any
// goroutine.
type Intake struct {
	o      Options
	peers  atomic.Int32 // of feeds
	budget *zmtp.Budget // of their large messages

	// Of the goroutine in Receive.
	batch batch

	mu       sync.Mutex
	feeds    map[*feed]struct{}
	ready    ready
	own      own
	since    int // own deliveries since the last one that is none
	stopped  bool
	left     Left
	stopping chan struct{}
	wake     chan struct{} // something is ready

	counters counters
}

// Where there are more than few peers, each reads no more than a turn at a time,
// so that all together hold 16 MiB of unread messages in memory at most, for a
// thousand as for a few.
const (
	fewPeers  = 64
	fewRead   = 256 << 10
	crowdRead = turnBytes
)

// New returns an intake without peers.
func New(o Options) *Intake {
	in := &Intake{
		o: o, feeds: make(map[*feed]struct{}), budget: zmtp.NewBudget(zmtp.DefaultBudget),
		stopping: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	in.own.feed = &feed{in: in, own: true}
	in.batch.in = in
	return in
}

// Counters are totals since New.
type Counters struct {
	Messages    uint64 // delivered that came from peers
	Own         uint64 // delivered out of the own queue
	Undecodable uint64 // of Messages
	Filtered    uint64 // left out: not under the prefix
}

type counters struct{ messages, own, undecodable, filtered atomic.Uint64 }

// Counters returns the totals.
func (in *Intake) Counters() Counters {
	c := &in.counters
	return Counters{
		Messages: c.messages.Load(), Own: c.own.Load(),
		Undecodable: c.undecodable.Load(), Filtered: c.filtered.Load(),
	}
}

// Serve reads a peer until it ends, and is its only reader. It returns as
// [peering.Config.Serve] wants it: io.EOF and errors of the connection for a peer
// that has left, a *zmtp.ProtocolError for one that must go, nil for one without
// ReplyTo that ends after Stop. What came before the end is delivered first: as
// long as nobody asks for it Serve does not return, so Stop comes before the
// peering is closed. identity is used with ReplyTo alone.
func (in *Intake) Serve(p *peering.Peer, identity []byte) error {
	f := newFeed(in, p, identity)
	defer f.reader.Close()
	if in.enter(f) {
		defer in.leave(f)
		if err := f.serve(); err != nil {
			return err
		}
	}
	return f.drain()
}

// enter registers a peer. It reports false after Stop.
func (in *Intake) enter(f *feed) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped {
		return false
	}
	in.feeds[f] = struct{}{}
	in.peers.Add(1)
	return true
}

// offer makes a feed ready. It reports false after Stop.
func (in *Intake) offer(f *feed) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped {
		return false
	}
	in.ready.push(f)
	in.signal()
	return true
}

// signal wakes Receive.
func (in *Intake) signal() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}
