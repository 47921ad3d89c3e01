// SPDX-License-Identifier: Apache-2.0

package outq

import (
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// encodedSize returns the bytes of a message on the wire.
func encodedSize(m *core.Message, name string, prefix [][]byte) int {
	n := message.Size(m, name)
	for _, f := range prefix {
		n += zmtp.HeadSize(len(f)) + len(f)
	}
	return n
}

// appendMessage appends a message, without its payload's bytes unless whole.
func appendMessage(dst []byte, m *core.Message, name string, prefix [][]byte, whole bool) []byte {
	for _, f := range prefix {
		dst = zmtp.AppendFrame(dst, f, true)
	}
	if whole {
		return message.Append(dst, m, name)
	}
	return message.AppendHead(dst, m, name)
}
