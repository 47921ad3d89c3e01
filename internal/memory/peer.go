// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory/wire"
)

// maxUnsent is how many frames wait for a plugin that does not read. Credit
// keeps a healthy one far below.
const maxUnsent = 1 << 16

// peer is one connection of a plugin.
type peer struct {
	b    *Broker
	conn net.Conn
	more chan struct{} // something to write
	gone chan struct{} // the connection has ended

	// Under the broker's lock.
	pid        int
	endpoint   string
	generation uint64
	session    string
	attached   bool // past Connect
	left       bool
	out        []*wire.Frame
	pause      time.Duration // before each frame written
	asked      map[uint64]chan *core.Fault
}

// serve runs a connection until it ends.
func (b *Broker) serve(conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.down {
		_ = conn.Close()
		return
	}
	p := &peer{
		b: b, conn: conn, more: make(chan struct{}, 1), gone: make(chan struct{}),
		asked: map[uint64]chan *core.Fault{},
	}
	b.peers = append(b.peers, p)
	b.wg.Go(p.read)
	b.wg.Go(p.write)
}

func (p *peer) read() {
	for {
		f, err := wire.Read(p.conn)
		p.b.mu.Lock()
		if err != nil {
			p.b.leave(p)
			p.b.mu.Unlock()
			return
		}
		if !p.left {
			p.b.handle(p, f)
		}
		p.b.mu.Unlock()
	}
}

func (p *peer) write() {
	for {
		select {
		case <-p.more:
		case <-p.gone:
			return
		}
		p.b.mu.Lock()
		out, pause := p.out, p.pause
		p.out = nil
		p.b.mu.Unlock()
		for _, f := range out {
			if pause > 0 {
				t := time.NewTimer(pause)
				select {
				case <-t.C:
				case <-p.gone:
					t.Stop()
					return
				}
			}
			if err := f.Write(p.conn); err != nil {
				_ = p.conn.Close() // the reader notices
				return
			}
		}
	}
}

// send queues a frame. The broker's lock is held.
func (p *peer) send(f *wire.Frame) {
	if p.left {
		return
	}
	if p.out = append(p.out, f); len(p.out) > maxUnsent {
		_ = p.conn.Close()
	}
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// close ends the connection; leave follows from the reader.
func (p *peer) close() { _ = p.conn.Close() }

// leave takes a connection out. What it had unsettled goes as its profiles say.
// The broker's lock is held.
func (b *Broker) leave(p *peer) {
	if p.left {
		return
	}
	p.left = true
	p.close()
	close(p.gone)
	b.peers = slices.DeleteFunc(b.peers, func(o *peer) bool { return o == p })
	for _, c := range slices.Clone(b.consumers) {
		if c.peer == p {
			b.detach(c)
		}
	}
	b.forget(p)
	for _, name := range b.names {
		for _, r := range b.queues[name].records {
			if r.by == p && (r.state == Queued || r.state == Outstanding) {
				b.lose(r, "the process that kept it is gone")
			}
		}
	}
	b.notify()
	b.pump()
}

// handle carries out what a plugin sent. The broker's lock is held.
func (b *Broker) handle(p *peer, f *wire.Frame) {
	switch f.Kind {
	case wire.Hello:
		b.hello(p, f)
	case wire.At:
		b.at(p, f)
	case wire.Subscribe:
		p.send(reply(f.Req, b.subscribe(p, f)))
		b.pump()
	case wire.Unsubscribe:
		b.unsubscribe(p, f)
		p.send(reply(f.Req, nil))
		b.pump()
	case wire.Want:
		if c := b.consumer(p, f.Sub); c != nil {
			c.want(uint64(f.Num), uint64(f.Num2), uint64(f.Num3))
			b.pump()
		}
	case wire.Settle:
		b.settle(p, f)
		b.pump()
	case wire.Publish:
		b.take(p, f)
	case wire.Request:
		b.ask(p, f)
	case wire.Seek:
		p.send(reply(f.Req, b.seekFrom(p, f)))
		b.pump()
	case wire.Handed:
		if c := b.consumer(p, f.Sub); c != nil {
			c.deaf = f.Flag
			c.handed(uint64(f.Num))
		}
	case wire.Released:
		b.released(p, f)
		b.pump()
	case wire.Bye:
		p.send(reply(f.Req, nil))
	case wire.Done:
		if c := p.asked[f.Req]; c != nil {
			delete(p.asked, f.Req)
			c <- f.Fault
		}
	default:
		p.close()
	}
}

// hello names the plugin. A second one, on attaching, settles its session.
func (b *Broker) hello(p *peer, f *wire.Frame) {
	p.pid, p.endpoint, p.generation = int(f.Num), f.Text, uint64(f.Num2)
	if !f.Flag {
		p.send(reply(f.Req, nil))
		return
	}
	p.session = string(f.Data)
	resumed := false
	if p.session == "" {
		b.sessions++
		p.session = "session-" + strconv.FormatUint(b.sessions, 10)
	} else {
		resumed = b.resume(p.session)
	}
	p.attached = true
	p.send(&wire.Frame{Kind: wire.Welcome, Req: f.Req, Data: []byte(p.session), Flag: resumed})
	b.notify()
	b.pump()
}

// resume gives back what a kept session holds.
func (b *Broker) resume(session string) bool {
	found := false
	for _, name := range b.names {
		for _, r := range b.queues[name].records {
			if r.state == Outstanding && r.session == session {
				found = true
				b.back(r, core.OrderTotal, 0)
			}
		}
	}
	return found
}

// ExpireSession ends a kept session: what it holds is lost.
func (b *Broker) ExpireSession(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range b.names {
		for _, r := range b.queues[name].records {
			if r.state == Outstanding && r.session == session {
				b.lose(r, "its session expired")
			}
		}
	}
}
