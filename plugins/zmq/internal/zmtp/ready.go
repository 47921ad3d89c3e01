// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zeromq/zmq4"
)

// The properties of READY that count here, as the library writes them.
const (
	propertyType     = "Socket-Type"
	propertyIdentity = "Identity"
)

// ready is what a READY command says.
type ready struct {
	socket   zmq4.SocketType
	identity []byte
}

// parseReady reads metadata (RFC 23: "metadata = *property", a name of 1 to 255
// bytes, a value whose length takes four). Names ignore case. Everything that
// is not asked for is skipped.
func parseReady(b []byte) (ready, error) {
	var r ready
	typed, named := false, false
	for len(b) > 0 {
		name, rest, ok := cutShort(b)
		if !ok || len(name) == 0 {
			return ready{}, errors.New("metadata with a cut off or empty name")
		}
		value, rest, ok := cutLong(rest)
		if !ok {
			return ready{}, fmt.Errorf("metadata: the value of %q is cut off", name)
		}
		b = rest
		switch {
		case strings.EqualFold(string(name), propertyType):
			if typed {
				return ready{}, fmt.Errorf("metadata with two %s", propertyType)
			}
			typed, r.socket = true, zmq4.SocketType(value)
		case strings.EqualFold(string(name), propertyIdentity):
			if named {
				return ready{}, fmt.Errorf("metadata with two %s", propertyIdentity)
			}
			if len(value) > MaxIdentity {
				return ready{}, fmt.Errorf("an identity of %d bytes: the limit is %d", len(value), MaxIdentity)
			}
			named, r.identity = true, value
		}
	}
	if !typed {
		return ready{}, fmt.Errorf("metadata without %s", propertyType)
	}
	return r, nil
}

// frame is the command frame that says r.
func (r ready) frame() []byte {
	body := append([]byte{byte(len(commandReady))}, commandReady...)
	body = appendProperty(body, propertyType, []byte(r.socket))
	body = appendProperty(body, propertyIdentity, r.identity)
	return append(appendHead(nil, flagCommand, len(body)), body...)
}

func appendProperty(dst []byte, name string, value []byte) []byte {
	dst = append(dst, byte(len(name)))
	dst = append(dst, name...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(value)))
	return append(dst, value...)
}

// cutShort takes a length of one byte and what it counts off b.
func cutShort(b []byte) (part, rest []byte, ok bool) {
	if len(b) == 0 || int(b[0]) > len(b)-1 {
		return nil, nil, false
	}
	n := 1 + int(b[0])
	return b[1:n:n], b[n:], true
}

// cutLong takes a length of four bytes and what it counts off b.
func cutLong(b []byte) (part, rest []byte, ok bool) {
	const size = 4
	if len(b) < size {
		return nil, nil, false
	}
	n := binary.BigEndian.Uint32(b)
	b = b[size:]
	if uint64(n) > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}
