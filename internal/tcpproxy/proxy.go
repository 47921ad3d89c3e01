// SPDX-License-Identifier: Apache-2.0

// Package tcpproxy stands between a client and its broker in tests: it counts
// the packets that pass, and disturbs the connection where a test says so. What a
// packet is says a protocol's own package.
package tcpproxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// limit is how long a test waits for anything, on a busy machine.
const limit = 2 * time.Minute

// Direction is where a packet goes.
type Direction int

// The directions.
const (
	ToServer Direction = iota
	ToClient
)

// Protocol reads one packet, and says of what type it is. It may change it; own is
// the proxy's host and port.
type Protocol func(from *bufio.Reader, own string) (packet []byte, kind int, err error)

// Place says where in the packet that a cut waits for the connection is cut.
type Place int

// The places.
const (
	Behind  Place = iota // the packet has passed
	Before               // nothing of it has passed
	Inside               // half of it has passed
	nowhere              // it does not pass, and the connection stays
)

// Proxy is a proxy, which ends with the test. All methods may be called by any
// goroutine; Await fails the test, by the test's own.
type Proxy struct {
	tb     testing.TB
	l      net.Listener
	target string
	read   Protocol
	done   sync.WaitGroup

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced when anything below was changed
	counts   [2]map[int]int
	accepted int
	pairs    map[*pair]bool
	cuts     []*cut
	stalled  [2]bool
	refusing bool
	closed   bool
	recorded map[int]bool // types that are noted; nil = none
	record   []Passed
}

// Passed is a packet that has passed, or was cut.
type Passed struct {
	Direction Direction
	Kind      int
}

// cut is one that waits for packets.
type cut struct {
	direction Direction
	kind      int
	left      int // packets that are to come yet
	place     Place
}

// Start starts a proxy for a broker at a host and port.
func Start(tb testing.TB, target string, read Protocol) *Proxy {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{tb: tb, l: l, target: target, read: read, changed: make(chan struct{}), pairs: make(map[*pair]bool)}
	p.counts = [2]map[int]int{{}, {}}
	p.done.Go(p.accept)
	tb.Cleanup(p.end)
	return p
}

// Address returns host and port where it listens.
func (p *Proxy) Address() string { return p.l.Addr().String() }

// end ends the proxy.
func (p *Proxy) end() {
	p.change(func() { p.closed = true })
	_ = p.l.Close()
	p.Cut()
	p.done.Wait()
}

// change changes the state, which wakes all who wait for it.
func (p *Proxy) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

// accept takes connections until the end.
func (p *Proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		p.done.Go(func() { p.serve(client) })
	}
}

// serve passes on what one connection brings.
func (p *Proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	var refusing bool
	p.change(func() {
		p.accepted++
		refusing = p.refusing || p.closed
	})
	if refusing {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	server, err := new(net.Dialer).DialContext(ctx, "tcp4", p.target)
	cancel()
	if err != nil {
		return // the client sees that the broker is away
	}
	c := &pair{p: p, ends: [2]net.Conn{server, client}, gone: make(chan struct{})}
	p.change(func() {
		p.pairs[c] = true
		if p.closed {
			c.close()
		}
	})
	var both sync.WaitGroup
	both.Go(func() { c.pass(ToServer) })
	both.Go(func() { c.pass(ToClient) })
	both.Wait()
	p.change(func() { delete(p.pairs, c) })
}

// Count returns how many packets of a type have passed in a direction, over all
// connections.
func (p *Proxy) Count(d Direction, kind int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[d][kind]
}

// Record notes packets of these types from now on, as they come.
func (p *Proxy) Record(kinds ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recorded, p.record = make(map[int]bool), nil
	for _, k := range kinds {
		p.recorded[k] = true
	}
}

// Recorded returns what Record has noted so far, in order.
func (p *Proxy) Recorded() []Passed {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.record)
}

// Accepted returns how many connections were made, those that were refused too.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Open returns how many connections there are.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pairs)
}

// Await waits until n packets of a type have passed in a direction.
func (p *Proxy) Await(d Direction, kind, n int) {
	p.tb.Helper()
	p.AwaitThat("packets have passed", func() bool { return p.Count(d, kind) >= n })
}

// AwaitThat waits until ok says so, which is asked whenever anything happens
// here.
func (p *Proxy) AwaitThat(what string, ok func() bool) {
	p.tb.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		p.mu.Lock()
		changed := p.changed
		p.mu.Unlock()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			p.tb.Fatalf("never: %s", what)
		}
	}
}

// Cut closes all connections. New ones are served.
func (p *Proxy) Cut() {
	p.change(func() {
		for c := range p.pairs {
			c.close()
		}
	})
}

// CutAt cuts the connection that brings the n-th packet of a type in a direction,
// counted from now, at that place of the packet.
func (p *Proxy) CutAt(d Direction, kind, n int, at Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cuts = append(p.cuts, &cut{d, kind, n, at})
}

// Drop has the n-th packet of a type in a direction, counted from now, not pass. The
// connection stays.
func (p *Proxy) Drop(d Direction, kind, n int) { p.CutAt(d, kind, n, nowhere) }

// Refuse has new connections closed at once; those that there are stay.
func (p *Proxy) Refuse() { p.change(func() { p.refusing = true }) }

// Stall has no packets pass in the given directions, both where none are given.
// What is written waits, until Resume.
func (p *Proxy) Stall(ds ...Direction) {
	if len(ds) == 0 {
		ds = []Direction{ToServer, ToClient}
	}
	p.change(func() {
		for _, d := range ds {
			p.stalled[d] = true
		}
	})
}

// HalfOpen ends all connections for the broker only: the client's ends stay open,
// and what they bring goes nowhere, as where a machine has vanished.
func (p *Proxy) HalfOpen() {
	p.change(func() {
		for c := range p.pairs {
			c.vanish()
		}
	})
}

// Resume ends Stall and Refuse.
func (p *Proxy) Resume() {
	p.change(func() { p.stalled, p.refusing = [2]bool{}, false })
}

// passing counts a packet that is about to pass, and says where it is cut.
func (p *Proxy) passing(d Direction, kind int) (at Place, ends bool) {
	p.change(func() {
		if p.recorded[kind] {
			p.record = append(p.record, Passed{d, kind})
		}
		for i, c := range p.cuts {
			if c.direction != d || c.kind != kind {
				continue
			}
			if c.left--; c.left == 0 {
				at, ends = c.place, true
				p.cuts = append(p.cuts[:i:i], p.cuts[i+1:]...)
				break
			}
		}
	})
	return at, ends
}

// passed counts a packet that has passed.
func (p *Proxy) passed(d Direction, kind int) { p.change(func() { p.counts[d][kind]++ }) }

// waits waits for as long as a direction is stalled, or until the connection is
// gone.
func (p *Proxy) waits(d Direction, gone <-chan struct{}) {
	for {
		p.mu.Lock()
		stalled, changed := p.stalled[d], p.changed
		p.mu.Unlock()
		if !stalled {
			return
		}
		select {
		case <-changed:
		case <-gone:
			return
		}
	}
}

// discard reads what goes nowhere.
func discard(from net.Conn) { _, _ = io.Copy(io.Discard, from) }
