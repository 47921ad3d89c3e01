// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"encoding/hex"
	"sync/atomic"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// feed is one peer. Its reader belongs to the goroutine of Serve, to Receive
// while the feed is ready or has its turn, and to the former again when Receive
// or Stop sends it its turn back.
type feed struct {
	in     *Intake
	own    bool // the own queue, which has none of the rest but next
	next   *feed
	peer   *peering.Peer
	reader *zmtp.Reader

	replyTo   core.Header // with Source.ReplyTo
	delimited bool        // an empty frame stands before the name

	turn   chan struct{}
	err    error       // why the connection must go
	pinged atomic.Bool // the peer wants signs of life
}

// ReplyScheme is what the address of a reply begins with; the peer's identity in
// lower-case hexadecimal digits follows (reference 3.1).
const ReplyScheme = "zmq-reply:"

// headerReplyTo is the header with that address.
const headerReplyTo = "reply-to"

func newFeed(in *Intake, p *peering.Peer, identity []byte) *feed {
	f := &feed{in: in, peer: p, reader: p.Conn.Reader(), turn: make(chan struct{}, 1)}
	if in.o.Source.ReplyTo {
		address := hex.AppendEncode([]byte(ReplyScheme), identity)
		f.replyTo = core.Header{Name: headerReplyTo, Value: address[:len(address):len(address)]}
		f.delimited = p.Conn.PeerType() == zmq4.Req
	}
	f.share(in.stopping)
	return f
}

// share makes the reader share the memory for large messages, until stop.
func (f *feed) share(stop <-chan struct{}) {
	f.reader.Share(zmtp.Sharing{
		Budget: f.in.budget, Done: f.peer.Context().Done(), Stop: stop, End: f.peer.Close, Held: f.sign,
	})
}

// serve reads until the peer or the intake ends, which is nil.
func (f *feed) serve() error {
	if s := &f.in.o.Source; s.Subscribe {
		if !f.peer.Out.Control(zmtp.AppendSubscribe(nil, s.Prefix, true)) {
			return errControl
		}
	}
	for {
		if err := f.fill(); err != nil {
			if f.in.isStopping() {
				return nil
			}
			return err
		}
		if !f.in.offer(f) {
			return nil
		}
		f.await()
		if f.err != nil || f.in.isStopping() {
			return f.err
		}
	}
}

// fill reads once.
func (f *feed) fill() error {
	if f.in.peers.Load() > fewPeers {
		f.reader.Most(crowdRead)
	} else {
		f.reader.Most(fewRead)
	}
	if err := f.reader.Fill(); err != nil {
		return err
	}
	f.peer.Seen()
	return nil
}

// heldSign is how often a peer that is not read is shown that we live: its PING
// lies behind messages for which there is no room. A quarter of the shortest
// heartbeat in use.
const heldSign = 250 * time.Millisecond

// await waits until Receive has taken what was read, or Stop does not want it.
func (f *feed) await() {
	select {
	case <-f.turn:
		return
	default:
	}
	if !f.pinged.Load() {
		<-f.turn
		return
	}
	sign := time.NewTicker(heldSign)
	defer sign.Stop()
	for {
		select {
		case <-f.turn:
			return
		case <-sign.C:
			f.sign()
		}
	}
}

// sign shows a peer that wants it that we live. Any PONG counts as a sign of life,
// asked for or not. A peer that does not read it will not read the answer to its
// next PING either.
func (f *feed) sign() {
	if f.pinged.Load() {
		_ = f.peer.Out.Control(zmtp.AppendPong(nil, nil))
	}
}

// command carries out what the peer says beside its messages. Anything but a
// PING means nothing to a reader.
func (f *feed) command(fr *zmtp.Frames) error {
	if fr.Command != zmtp.CommandPing {
		return nil
	}
	f.pinged.Store(true)
	return f.peer.Ping(fr.Body)
}
