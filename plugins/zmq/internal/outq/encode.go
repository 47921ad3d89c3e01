// SPDX-License-Identifier: Apache-2.0

package outq

import (
	"encoding/binary"

	"github.com/longshore-go/longshore/core"
)

// encodedSize returns the bytes of a message on the wire.
func encodedSize(m *core.Message, name string, prefix [][]byte) int {
	n := frameSize(len(name)) + frameSize(linesSize(m.Headers)) + frameSize(len(m.Payload))
	for _, f := range prefix {
		n += frameSize(len(f))
	}
	return n
}

func frameSize(n int) int {
	if n > 255 {
		return 9 + n
	}
	return 2 + n
}

func linesSize(h core.Headers) int {
	if len(h) == 0 {
		return 0
	}
	return h.Size() + 3*len(h) - 1
}

func appendHead(dst []byte, size int, more byte) []byte {
	if size > 255 {
		return binary.BigEndian.AppendUint64(append(dst, 2|more), uint64(size))
	}
	return append(dst, more, byte(size))
}

// appendMessage appends a message, without its payload's bytes unless whole.
func appendMessage(dst []byte, m *core.Message, name string, prefix [][]byte, whole bool) []byte {
	for _, f := range prefix {
		dst = append(appendHead(dst, len(f), 1), f...)
	}
	dst = append(appendHead(dst, len(name), 1), name...)
	dst = appendHead(dst, linesSize(m.Headers), 1)
	for i, h := range m.Headers {
		if i > 0 {
			dst = append(dst, '\n')
		}
		dst = append(append(append(dst, h.Name...), ": "...), h.Value...)
	}
	dst = appendHead(dst, len(m.Payload), 0)
	if whole {
		dst = append(dst, m.Payload...)
	}
	return dst
}
