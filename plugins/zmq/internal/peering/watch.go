// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// silentIntervals is how many heartbeats may go unanswered.
const silentIntervals = 3

// The system is asked every so often whether the other machine still
// acknowledges what was sent to it. TCP_USER_TIMEOUT would do that for us, but
// it also ends connections to peers that are there and merely do not read.
const (
	probeEvery      = 10 * time.Second
	unansweredLimit = 30 * time.Second
)

var (
	errControls = errors.New("it sends PINGs and does not read the answers")
	errNoPing   = errors.New("it sent a PING that is none")
)

// Ping answers a PING, whose body it is given, and obeys its time to live: a
// peer from which nothing comes for that long is closed (RFC 37, "Connection
// Heartbeating"). An error says that the connection must be closed.
func (p *Peer) Ping(body []byte) error {
	ttl, context, ok := zmtp.ParsePing(body)
	if !ok {
		return errNoPing
	}
	if p.ttl.Swap(int64(ttl)) != int64(ttl) && p.poke != nil {
		select {
		case p.poke <- struct{}{}:
		default: // the watcher is about to look anyway
		}
	}
	if !p.Out.Control(zmtp.AppendPong(nil, context)) {
		return errControls
	}
	return nil
}

// HungUp asks the system whether the peer has hung up: closed its connection, or
// at least its sending half, or lost it. What it sent before may be unread. It
// does not see a machine that has gone without a word.
func (p *Peer) HungUp() bool {
	events, err := poll(p.Conn.NetConn(), pollHungUp)
	return err != nil || events&pollHungUp != 0
}

// watched is what the watcher knows of a peer.
type watched struct {
	pinged time.Time // the last time
	unread time.Time // the last time that bytes waited to be read
	probed time.Time // the last time
	stuck  time.Time // since when every probe has found the same bytes not acknowledged; zero = the last one has not
}

// watch sends PINGs, closes peers that are silent, and logs what was held back. It
// wakes when something is due and at new peers.
func (p *Peering) watch() {
	known := map[*Peer]*watched{}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(p.look(known, time.Now()))
		select {
		case <-timer.C:
		case <-p.poke:
		case <-p.living.Done():
			for _, n := range p.notices.all() {
				n.flush(time.Now().Add(noticeEvery)) // the last ones
			}
			return
		}
	}
}

func (p *Peering) wakeWatcher() {
	select {
	case p.poke <- struct{}{}:
	default: // it is about to look anyway
	}
}

// look does what is due and returns when something is due again.
func (p *Peering) look(known map[*Peer]*watched, now time.Time) time.Duration {
	next := now.Add(time.Hour)
	peers := p.Peers()
	there := make(map[*Peer]bool, len(peers))
	for _, peer := range peers {
		there[peer] = true
		w := known[peer]
		if w == nil {
			w = &watched{pinged: now, probed: now}
			known[peer] = w
		}
		due, cause := w.look(peer, p.config.Heartbeat, p.how, now)
		if cause != nil {
			peer.Close(cause)
			continue
		}
		next = earlier(next, due)
	}
	for peer := range known {
		if !there[peer] {
			delete(known, peer)
		}
	}
	for _, n := range p.notices.all() {
		if due := n.flush(now); !due.IsZero() {
			next = earlier(next, due)
		}
	}
	return max(next.Sub(now), time.Millisecond)
}

// look does what is due for one peer and returns when something is due again, or
// why the peer is to be closed.
func (w *watched) look(peer *Peer, heartbeat time.Duration, how workings, now time.Time) (time.Time, error) {
	next := w.probed.Add(how.probe)
	if !now.Before(next) {
		w.probed, next = now, now.Add(how.probe)
		age, outstanding := unanswered(peer.Conn.NetConn())
		if w.isStuck(age, outstanding, how.unanswered, now) {
			return next, fmt.Errorf("the other machine has acknowledged nothing for %v", how.unanswered)
		}
	}
	if heartbeat > 0 {
		if now.Sub(w.pinged) >= heartbeat {
			w.pinged = now
			if !peer.Out.Control(zmtp.AppendPing(nil, silentIntervals*heartbeat, nil)) {
				return next, errControls
			}
		}
		next = earlier(next, w.pinged.Add(heartbeat))
	}
	limit := allowed(heartbeat, time.Duration(peer.ttl.Load()))
	if limit == 0 {
		return next, nil
	}
	seen := w.lastSeen(peer)
	if now.Sub(seen) >= limit {
		// A reader that is held back leaves unread what came in time.
		if events, err := poll(peer.Conn.NetConn(), pollReadable); err != nil || events == 0 {
			return next, fmt.Errorf("nothing came from it for %v", limit)
		}
		w.unread, seen = now, now
	}
	return earlier(next, seen.Add(limit)), nil
}

// lastSeen is when something came in last, or was there unread.
func (w *watched) lastSeen(peer *Peer) time.Time {
	seen := peer.since.Add(time.Duration(peer.seen.Load()))
	if w.unread.After(seen) {
		return w.unread
	}
	return seen
}

// isStuck judges one probe: age is the time since the last acknowledgement. One
// probe alone says little, as something may have been sent a moment ago, after a
// long pause.
func (w *watched) isStuck(age time.Duration, outstanding bool, limit time.Duration, now time.Time) bool {
	switch {
	case !outstanding:
		w.stuck = time.Time{}
	case w.stuck.IsZero() || age < now.Sub(w.stuck):
		w.stuck = now
	}
	return !w.stuck.IsZero() && now.Sub(w.stuck) >= limit
}

// allowed is how long nothing may come from a peer, 0 = for ever.
func allowed(heartbeat, ttl time.Duration) time.Duration {
	limit := silentIntervals * heartbeat
	if limit == 0 || ttl > 0 && ttl < limit {
		return ttl
	}
	return limit
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
