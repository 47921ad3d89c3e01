// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/plugins/internal/wait"
)

// An accept that fails does so again at once, most often for want of
// descriptors; the pause doubles from the first to the last.
const (
	acceptPauseFirst = 5 * time.Millisecond
	acceptPauseLast  = time.Second
)

// lazy is how long a handshake may take before it gives way to a new arrival
// where there is no room: living peers need a few round trips, so what is older
// says nothing.
const lazy = time.Second

// errGaveWay is the cause of a handshake that made room for another connection.
var errGaveWay = errors.New("it said nothing, and another connection needed its place")

// accept takes connections until the listener is closed. Nothing that a peer
// does or leaves undone is waited for here.
func (p *Peering) accept() {
	var pause time.Duration
	for {
		nc, err := p.listener.Accept()
		switch {
		case p.taking.Err() != nil:
			if err == nil {
				_ = nc.Close()
			}
			return
		case err != nil:
			p.counters.acceptErrors.Add(1)
			p.acceptFails(err)
			pause = min(max(2*pause, acceptPauseFirst), acceptPauseLast)
			if !wait.For(p.taking, pause) {
				return
			}
		default:
			pause = 0
			p.arrive(nc)
		}
	}
}

func (p *Peering) acceptFails(err error) {
	p.say(&p.notices.accept, func(times int) {
		fix := "look at the reason the system gives"
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			fix = "raise the limit of open files, or lower max_peers"
		}
		p.log.Warn("no connection can be accepted", "address", p.listener.address.String(), "reason", bare(err).Error(), "fix", fix, "times", times)
	})
}

// arrive gives an accepted connection a goroutine, if there is room for it.
func (p *Peering) arrive(nc net.Conn) {
	p.counters.accepted.Add(1)
	remote := p.remote(nc)
	a, ok := p.room.enter(p.taking)
	if !ok {
		_ = nc.Close()
		p.counters.tooMany.Add(1)
		p.say(&p.notices.tooMany, func(times int) {
			p.log.Warn("a connection was closed: no more peers are taken", "peer", remote, "max_peers", p.config.MaxPeers, "times", times)
		})
		return
	}
	p.goroutines.Go(func() {
		defer p.room.leave(a)
		peer, err := p.welcome(a, nc, remote)
		if err != nil {
			p.refuses(remote, err)
			return
		}
		p.dropped(peer, p.serve(peer))
	})
}

// welcome does the handshake of an accepted connection.
func (p *Peering) welcome(a *arrival, nc net.Conn, remote string) (*Peer, error) {
	ctx, cancel := context.WithTimeout(a.ctx, p.config.HandshakeTimeout)
	defer cancel()
	peer, err := p.handshake(ctx, nc, remote, -1)
	if err != nil {
		return nil, err
	}
	if !p.room.stay(a) {
		p.remove(peer)
		p.drop(peer, errGaveWay)
		return nil, errGaveWay
	}
	return peer, nil
}

// arrival is a connection that was accepted.
type arrival struct {
	ctx    context.Context // of its handshake
	cancel context.CancelCauseFunc
	since  time.Time
	stays  bool // its handshake is done
}

// room bounds the accepted connections. Those in their handshake are in arrivals.
type room struct {
	most int

	mu       sync.Mutex
	lazy     time.Duration // see the constant
	taken    int
	arrivals map[*arrival]struct{}
}

// enter takes a place. Where none is left, the oldest connection gives way that
// is lazy in its handshake: silent connections keep no peer out.
func (r *room) enter(ctx context.Context) (*arrival, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken >= r.most {
		oldest := r.oldest()
		if oldest == nil || time.Since(oldest.since) < r.lazy {
			return nil, false
		}
		delete(r.arrivals, oldest)
		r.taken--
		oldest.cancel(errGaveWay)
	}
	r.taken++
	a := &arrival{since: time.Now()}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	r.arrivals[a] = struct{}{}
	return a, true
}

func (r *room) oldest() *arrival {
	var oldest *arrival
	for a := range r.arrivals {
		if oldest == nil || a.since.Before(oldest.since) {
			oldest = a
		}
	}
	return oldest
}

// stay says that the handshake is done. It reports false where the place has
// been given to another.
func (r *room) stay(a *arrival) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.arrivals[a]
	delete(r.arrivals, a)
	a.stays = ok
	return ok
}

// leave gives the place back.
func (r *room) leave(a *arrival) {
	a.cancel(nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	_, arriving := r.arrivals[a]
	delete(r.arrivals, a)
	if arriving || a.stays {
		r.taken--
	}
}

// counts returns how many places are taken, and how many of them by handshakes.
func (r *room) counts() (taken, arriving int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken, len(r.arrivals)
}

// remote is how log lines call the other end of an accepted connection. On ipc
// nobody has an address, so it is the process, where the system knows it.
func (p *Peering) remote(nc net.Conn) string {
	if u, ok := nc.(*net.UnixConn); ok {
		name := p.listener.address.String()
		if pid := peerPID(u); pid > 0 {
			name += fmt.Sprintf(" (process %d)", pid)
		}
		return name
	}
	return TCP + "://" + nc.RemoteAddr().String()
}
