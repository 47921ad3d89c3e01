// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// ErrClosed is the cause of peers that Close has ended.
var ErrClosed = errors.New("the endpoint is closed")

// Peering is an endpoint's listener or its dial loops, and its peers. Its
// methods may be called at any time from any goroutine.
type Peering struct {
	config Config
	log    *slog.Logger
	how    workings

	listener *listener // nil where it dials
	links    *links    // nil where it listens
	room     room
	counters counters
	notices  notices

	taking     context.Context // done once no further peers are taken
	stopTaking context.CancelFunc
	living     context.Context // done once the peers are closed
	die        context.CancelFunc
	waiting    context.Context // done once Close does not wait for queues and peers
	hurry      context.CancelFunc
	poke       chan struct{} // wakes the watcher
	goroutines sync.WaitGroup

	mu      sync.Mutex
	peers   map[*Peer]struct{}
	closing bool

	once   sync.Once
	closed chan struct{} // all goroutines have ended
}

// Start listens, or begins to dial; it waits for no peer. ctx bounds the call
// alone. Errors are *core.Fault, those of Bind with its path.
func Start(ctx context.Context, c Config) (*Peering, error) {
	return start(ctx, c, workings{dial: dial, probe: probeEvery, unanswered: unansweredLimit})
}

// workings are what tests do otherwise.
type workings struct {
	dial       func(ctx context.Context, a Address) (net.Conn, error)
	probe      time.Duration // between two looks at what is not acknowledged
	unanswered time.Duration // for how long that may be
}

func start(ctx context.Context, c Config, how workings) (*Peering, error) {
	c = c.withDefaults()
	p := &Peering{
		config: c, log: c.Log, how: how,
		room: room{most: c.MaxPeers, lazy: lazy, arrivals: map[*arrival]struct{}{}},
		poke: make(chan struct{}, 1), peers: map[*Peer]struct{}{}, closed: make(chan struct{}),
	}
	if c.Bind != nil {
		l, f := listen(ctx, *c.Bind, c.Resume, c.Log)
		if f != nil {
			return nil, f
		}
		p.listener = l
	}
	p.taking, p.stopTaking = context.WithCancel(context.Background())
	p.living, p.die = context.WithCancel(context.Background())
	p.waiting, p.hurry = context.WithCancel(context.Background())
	p.goroutines.Go(p.watch)
	if p.listener != nil {
		p.goroutines.Go(p.accept)
		return p, nil
	}
	p.links = newLinks(c)
	for i := range c.Connect {
		p.goroutines.Go(func() { p.keepDialing(i) })
	}
	return p, nil
}

// Addresses returns where the endpoint listens, with the port that was chosen,
// or what it dials.
func (p *Peering) Addresses() []string {
	if p.listener != nil {
		return []string{p.listener.address.String()}
	}
	var all []string
	for _, a := range p.config.Connect {
		all = append(all, a.String())
	}
	return all
}

// Resume returns what lets a later Peering listen on the same port where the
// system chose it, nil where there is nothing to keep.
func (p *Peering) Resume() []byte {
	if p.listener == nil {
		return nil
	}
	return p.listener.resume()
}

// StopListening takes no further peers, neither by listening nor by dialing, and
// ends handshakes. The ipc file is removed, if it is still this endpoint's.
func (p *Peering) StopListening() {
	p.stopTaking()
	if p.listener != nil {
		p.listener.close(p.log)
	}
}

// Peers returns the peers that are there.
func (p *Peering) Peers() []*Peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*Peer, 0, len(p.peers))
	for peer := range p.peers {
		all = append(all, peer)
	}
	return all
}

// add takes a peer in. It reports false behind Close.
func (p *Peering) add(peer *Peer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return false
	}
	p.peers[peer] = struct{}{}
	return true
}

func (p *Peering) remove(peer *Peer) {
	p.mu.Lock()
	delete(p.peers, peer)
	p.mu.Unlock()
}
