// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/core"
)

// SocketSize is the size of a message on the bare socket: that of the usual
// delivery on the wire.
const SocketSize = 640

// ServeSocket writes messages to every connection, one each time, with the time
// of writing in front: the least that any hop between two processes takes.
func ServeSocket(ctx context.Context, l net.Listener, every time.Duration) error {
	for {
		c, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		if err := writeStamps(ctx, c, every); err != nil {
			return err
		}
	}
}

func writeStamps(ctx context.Context, c net.Conn, every time.Duration) error {
	defer func() { _ = c.Close() }() // nothing is left to be read or written
	p := newPace(Options{Every: core.Duration(every)})
	defer p.stop()
	b := make([]byte, SocketSize)
	for {
		at, ok := p.wait(ctx)
		if !ok {
			return nil
		}
		binary.LittleEndian.PutUint64(b, uint64(at))
		if _, err := c.Write(b); err != nil {
			if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
				return nil
			}
			return err
		}
	}
}

// ReadStamp reads one message of the bare socket and returns its age.
func ReadStamp(c io.Reader, b []byte) (time.Duration, error) {
	if _, err := io.ReadFull(c, b[:SocketSize]); err != nil {
		return 0, err
	}
	return time.Duration(time.Now().UnixNano() - int64(binary.LittleEndian.Uint64(b))), nil
}
