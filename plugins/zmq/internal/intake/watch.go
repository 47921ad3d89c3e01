// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// Watching is who is told what comes from a peer that is mostly sent to. Both
// may be nil, are called by the goroutine of Watch, and end the connection with
// their error. What they are given is valid until they return.
type Watching struct {
	// Message is given messages, such as replies: their first frames, at most
	// eight and at least one.
	Message func(frames [][]byte) error
	// Subscribe is told that the peer wants names that begin with prefix, or does
	// not want them any more. Such messages are not given to Message then.
	Subscribe func(prefix []byte, on bool) error
}

// Watch reads a peer until it ends, and is its only reader: PINGs are answered,
// and a peer that has left is seen at once, not at the next write. It returns as
// Serve does.
func Watch(p *peering.Peer, w Watching) error {
	r := p.Conn.Reader()
	defer r.Close()
	var f zmtp.Frames
	for {
		if err := r.Fill(); err != nil {
			return err
		}
		p.Seen()
		for {
			ok, err := r.Next(&f)
			if err == nil && ok {
				err = w.take(p, &f)
			}
			if err != nil {
				return err
			}
			if !ok {
				break
			}
		}
		r.Spent()
	}
}

// take hands on one message or command.
func (w *Watching) take(p *peering.Peer, f *zmtp.Frames) error {
	if f.Command == zmtp.CommandPing {
		return p.Ping(f.Body)
	}
	if w.Subscribe != nil {
		if prefix, on, ok := zmtp.Subscription(f); ok {
			return w.Subscribe(prefix, on)
		}
	}
	if f.Command == "" && w.Message != nil {
		return w.Message(f.List)
	}
	return nil
}
