// SPDX-License-Identifier: Apache-2.0

package wire

import "fmt"

// MaxFrame is the largest frame that is read unless a broker takes larger messages,
// in bytes. Brokers take no message beyond 5 MiB unless they are told otherwise; a
// namespace of 100,000 topics with names of 100 bytes fits.
const MaxFrame = 16 << 20

// sizes are the bytes of a frame's two lengths, and of one.
const (
	sizeBytes   = 4
	headerBytes = 2 * sizeBytes
)

// A FrameError is a frame or a command that is none of the protocol. The connection
// is of no use behind it.
type FrameError struct{ Reason string }

// Error says what is wrong with it.
func (e *FrameError) Error() string { return "bad frame: " + e.Reason }

func bad(format string, args ...any) error { return &FrameError{fmt.Sprintf(format, args...)} }
