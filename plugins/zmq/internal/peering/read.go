// SPDX-License-Identifier: Apache-2.0

package peering

import "github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"

// Read reads a peer that is mostly sent to until it ends, and is its only reader:
// PINGs are answered, and a peer that has left is seen at once, not at the next
// write. handle is given everything else: commands, and the first frames of
// messages, valid until it returns; its error ends Read. filled is called when all
// that came at once was handled. The error says why there is no more, as that of
// Config.Serve.
func (p *Peer) Read(handle func(f *zmtp.Frames) error, filled func()) error {
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
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if f.Command == zmtp.CommandPing {
				err = p.Ping(f.Body)
			} else {
				err = handle(&f)
			}
			if err != nil {
				return err
			}
		}
		r.Spent()
		filled()
	}
}
