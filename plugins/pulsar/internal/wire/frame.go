// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

// MaxFrame is the largest frame that is read, in bytes. Brokers themselves take no
// command beyond their message size, 5 MiB unless they are told otherwise; a
// namespace of 100,000 topics with names of 100 bytes fits.
const MaxFrame = 16 << 20

// sizes are the bytes of a frame's two lengths, and of one.
const (
	sizeBytes   = 4
	headerBytes = 2 * sizeBytes
)

// chunk is how much memory a frame is given ahead of its bytes: what a peer only
// announces costs nothing.
const chunk = 64 << 10

// A FrameError is a frame or a command that is none of the protocol. The connection
// is of no use behind it.
type FrameError struct{ Reason string }

// Error says what is wrong with it.
func (e *FrameError) Error() string { return "bad frame: " + e.Reason }

func bad(format string, args ...any) error { return &FrameError{fmt.Sprintf(format, args...)} }

// ReadFrame reads the next frame and returns its command, as ParseCommand takes it,
// in buf's memory where that suffices. Errors are those of r, io.ErrUnexpectedEOF
// within a frame, or a *FrameError: a frame over MaxFrame, or one with a payload,
// which none of the commands here has.
func ReadFrame(r io.Reader, buf []byte) ([]byte, error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	total, command := binary.BigEndian.Uint32(header[:]), binary.BigEndian.Uint32(header[sizeBytes:])
	switch {
	case string(header[:sizeBytes]) == "HTTP":
		return nil, bad("it begins with HTTP")
	case total > MaxFrame:
		return nil, bad("it is to have %d bytes, over the limit of %d", total, MaxFrame)
	case total < sizeBytes || command > total-sizeBytes:
		return nil, bad("a command of %d bytes is to be in %d", command, total)
	case command < total-sizeBytes:
		return nil, bad("%d bytes follow the command, which is to have none", total-sizeBytes-command)
	}
	return readBody(r, buf[:0], int(command))
}

// readBody reads n bytes, in memory that grows as they come.
func readBody(r io.Reader, buf []byte, n int) ([]byte, error) {
	for len(buf) < n {
		from := len(buf)
		step := min(n-from, max(chunk, cap(buf)-from, from))
		buf = append(buf, make([]byte, step)...)
		if _, err := io.ReadFull(r, buf[from:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return buf, nil
}
