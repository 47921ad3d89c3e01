// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/eclipse/paho.golang/packets"
)

// maxControl is the largest body of a control packet that is read: the library
// copies each string on its own, and for a packet of the shortest user properties
// makes 260 times its size.
const maxControl = 64 << 10

// unpack lets the library read the body of a packet into out. Before that the
// size is checked, and the block of properties which begins at a given place: the
// library takes blocks that are cut off, repeats, and values that are not allowed.
func unpack(p *Packet, properties int, out packets.Packet) (reason string, err error) {
	if len(p.Body) > maxControl {
		return "", &ProtocolError{Code: CodeTooLarge, Type: p.Type,
			Reason: fmt.Sprintf("%d bytes, and the limit is %d", len(p.Body), maxControl)}
	}
	if len(p.Body) < properties {
		return "", malformed(p.Type, "cut off")
	}
	block, rest, ok := cutProperties(p.Body[properties:])
	if !ok {
		return "", malformed(p.Type, "properties longer than the packet, or of no length")
	}
	switch p.Type {
	case TypeConnack, TypeDisconnect:
		if len(rest) > 0 {
			return "", malformed(p.Type, "%d bytes behind its end", len(rest))
		}
	case TypeSuback, TypeUnsuback:
		if len(rest) == 0 {
			return "", violation(p.Type, "no reason code")
		}
	}
	if reason, err = checkProperties(p.Type, block); err != nil {
		return "", err
	}
	return reason, guarded(p.Type, func() error { return out.Unpack(bytes.NewBuffer(slices.Clone(p.Body))) })
}

// guarded turns what the library makes of a packet into a *ProtocolError, a panic
// as well: what foreign bytes do to it must not end the process.
func guarded(typ byte, read func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = malformed(typ, "the library cannot read it: %v", r)
		}
	}()
	if err := read(); err != nil {
		return malformed(typ, "the library cannot read it: %v", err)
	}
	return nil
}

// sink is memory that the library writes to.
type sink struct{ b []byte }

func (s *sink) Write(p []byte) (int, error) {
	s.b = append(s.b, p...)
	return len(p), nil
}

// appendPacket appends what the library writes.
func appendPacket(dst []byte, p io.WriterTo) []byte {
	s := sink{b: dst}
	_, _ = p.WriteTo(&s) // memory takes everything
	return s.b
}
