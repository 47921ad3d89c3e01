// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
)

// Stalled is what a plugin holds that publishes to a subscriber which reads
// nothing, and to one that does.
type Stalled struct {
	Payload   int    `json:"payload"`
	Published uint64 `json:"published"` // messages
	Arrived   uint64 `json:"arrived"`   // at the subscriber that reads
	Peak      int64  `json:"peak"`      // bytes resident of the plugin at most, 0 = not known here
	Without   int64  `json:"without"`   // likewise, of one whose subscribers both read
}

// measureStalled measures the plugin's memory.
func (z *zeroMQ) measureStalled(ctx context.Context) (*Stalled, error) {
	s := &Stalled{Payload: large}
	without, err := z.holdsUp(ctx, s, "sub")
	if err != nil {
		return nil, err
	}
	s.Peak, err = z.holdsUp(ctx, s, "stalled")
	s.Without = without
	return s, err
}

// holdsUp publishes to a subscriber, and to one of the given role.
func (z *zeroMQ) holdsUp(ctx context.Context, s *Stalled, role string) (peak int64, err error) {
	row := ZeroMQRow{Kind: FanOut, Link: "tcp", Payload: s.Payload, Peer: LibZMQ, Readers: 1}
	subject, other, err := z.ends(ctx, ZMQ, row)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, other.close(), subject.close()) }()
	second, err := z.start(ctx, LibZMQ, role, row, false, subject.address())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, second.close()) }()
	m := measured{row: row, subject: subject, peer: other}
	if _, err = m.beyond(ctx, 0); err != nil {
		return 0, err
	}
	if err = sleep(ctx, z.plan.Stalls); err != nil {
		return 0, err
	}
	k, err := m.mark()
	s.Published, s.Arrived = k.subject.Messages, k.peer.Messages
	return statusBytes(subject.plugin(), "VmHWM:"), err
}
