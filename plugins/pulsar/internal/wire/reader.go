// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"io"
)

const (
	// chunkSize is the memory in which frames lie side by side, in bytes. A payload
	// that is held keeps all of its chunk.
	chunkSize = 64 << 10
	// aloneSize is the size from which a frame has memory of its own, in bytes.
	aloneSize = chunkSize / 2
	// leastRead is the room below which a chunk is not read into any more, in bytes.
	leastRead = 4 << 10
	// growth is by how much the memory of a frame grows when it is full.
	growth = 4
)

const (
	// MaxMessage is the largest message that a connection can be made to take, in bytes.
	MaxMessage = 128 << 20
	// frameRoom is what a frame may have beyond a message of a broker's largest size, in
	// bytes: the command, with a bit for each message of a batch, and what the broker
	// puts before the message.
	frameRoom = 64 << 10
)

// Frame is a command, with the payload that MESSAGE has.
type Frame struct {
	Type    Type
	Command []byte // the BaseCommand, valid until the next call of Next
	Payload []byte // what follows the command, nil = nothing; its memory is not used again
}

// Parse reads the command, as ParseCommand does.
func (f *Frame) Parse() (Command, error) { return ParseCommand(f.Command) }

// Reader reads frames from a connection. What it reads is not copied: payloads lie in
// memory of 64 KiB, large ones in memory of their own, which is given up to them. A
// size that is only announced costs 64 KiB, and then four times what has come. A Reader
// is for one goroutine.
type Reader struct {
	src        io.Reader
	limit      int
	chunk      []byte
	start, end int  // chunk[start:end] has come and was not returned
	given      bool // a payload within chunk was returned
}

// NewReader returns a Reader of src that takes frames up to MaxFrame.
func NewReader(src io.Reader) *Reader { return &Reader{src: src, limit: MaxFrame} }

// Allow has frames taken with messages of a broker's largest size, in bytes: above
// MaxFrame where need be, up to MaxMessage.
func (r *Reader) Allow(message int) {
	r.limit = max(MaxFrame, min(message, MaxMessage)+frameRoom)
}

// Next returns the next frame, for which it waits. Errors are those of the connection,
// io.EOF at an end between frames, io.ErrUnexpectedEOF within one, or a *FrameError:
// then nothing more can be read.
func (r *Reader) Next() (Frame, error) {
	if err := r.fill(headerBytes); err != nil {
		return Frame{}, err
	}
	total, command, err := r.sizes()
	if err != nil {
		return Frame{}, err
	}
	var b []byte
	alone := total > aloneSize && total > r.end-r.start
	if alone {
		if b, err = r.own(total); err != nil {
			return Frame{}, err
		}
	} else {
		if err := r.fill(total); err != nil {
			return Frame{}, err
		}
		b = r.chunk[r.start : r.start+total]
		r.start += total
	}
	f := Frame{Command: b[headerBytes : headerBytes+command]}
	if payload := b[headerBytes+command : total : total]; len(payload) > 0 {
		f.Payload = payload
		r.given = r.given || !alone
	}
	f.Type, err = typeOf(f.Command)
	return f, err
}

// Buffered reports whether Next would return without waiting.
func (r *Reader) Buffered() bool {
	if r.end-r.start < headerBytes {
		return false
	}
	total, _, err := r.sizes()
	return err != nil || total <= r.end-r.start
}

// sizes are the bytes of the frame that begins, and of its command.
func (r *Reader) sizes() (total, command int, err error) {
	header := r.chunk[r.start : r.start+headerBytes]
	size, of := binary.BigEndian.Uint32(header), binary.BigEndian.Uint32(header[sizeBytes:])
	switch {
	case string(header[:sizeBytes]) == "HTTP":
		return 0, 0, bad("it begins with HTTP")
	case uint64(size) > uint64(r.limit): //nolint:gosec // not negative
		return 0, 0, bad("it is to have %d bytes, over the limit of %d", size, r.limit)
	case size < sizeBytes || of > size-sizeBytes:
		return 0, 0, bad("a command of %d bytes is to be in %d", of, size)
	}
	return int(size) + sizeBytes, int(of), nil
}

// fill waits until n bytes, at most aloneSize, are in the chunk.
func (r *Reader) fill(n int) error {
	have := r.end - r.start
	if have >= n {
		return nil
	}
	switch {
	case r.chunk == nil || r.given && (len(r.chunk)-r.end < leastRead || len(r.chunk)-r.start < n):
		fresh := make([]byte, chunkSize)
		copy(fresh, r.chunk[r.start:r.end])
		r.chunk, r.start, r.end, r.given = fresh, 0, have, false
	case !r.given && r.start > 0:
		copy(r.chunk, r.chunk[r.start:r.end])
		r.start, r.end = 0, have
	}
	came, err := io.ReadAtLeast(r.src, r.chunk[r.end:], n-have)
	r.end += came
	if err == io.EOF && have > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// own reads a frame of n bytes into memory of its own, which grows as they come.
func (r *Reader) own(n int) ([]byte, error) {
	b := make([]byte, min(n, max(chunkSize, growth*(r.end-r.start))))
	have := copy(b, r.chunk[r.start:r.end])
	r.start = r.end
	for {
		if _, err := io.ReadFull(r.src, b[have:]); err == io.EOF {
			return nil, io.ErrUnexpectedEOF
		} else if err != nil {
			return nil, err
		}
		if have = len(b); have == n {
			return b, nil
		}
		b = append(make([]byte, 0, min(n, growth*have)), b...)
		b = b[:cap(b)]
	}
}

// typeOf is the type of a command.
func typeOf(b []byte) (Type, error) {
	if len(b) >= 2 && b[0] == 1<<3 && b[1] > 0 && b[1] < 0x80 {
		return Type(b[1]), nil
	}
	t := Type(0)
	s := scan{b: b}
	for s.next() {
		if s.number == 1 && s.kind == varintKind {
			t = Type(s.int32())
		}
	}
	switch {
	case s.broken:
		return 0, bad("the command is broken")
	case t <= 0:
		return 0, bad("the command has no type")
	}
	return t, nil
}
