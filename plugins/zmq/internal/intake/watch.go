// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// Watch reads a peer that is mostly sent to until it ends, and is its only reader:
// PINGs are answered, and a peer that has left is seen at once, not at the next
// write. message is given what comes, such as replies: their first frames, at most
// eight and at least one, valid until it returns; its error ends the connection.
// Watch returns as Serve does.
func Watch(p *peering.Peer, message func(frames [][]byte) error) error {
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
			switch {
			case err != nil || !ok:
			case f.Command == zmtp.CommandPing:
				err = p.Ping(f.Body)
			case f.Command == "":
				err = message(f.List)
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
