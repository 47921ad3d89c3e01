// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"encoding/binary"
	"fmt"
)

// The frames of a message whose bytes are kept.
const keptFrames = 8

// Frames is one message or one command, in memory of its Reader. It is not
// copied, for it refers to itself; one is used again and again.
type Frames struct {
	Command string   // PING, PONG, SUBSCRIBE, CANCEL, ERROR or another; "" = a message
	Body    []byte   // of the command
	List    [][]byte // the message's first frames, at most eight
	Count   int      // all frames of the message
	Bytes   int      // of all frames of the message

	kept [keptFrames][]byte
}

// maxCommand bounds a command: the longest prefix that a peer subscribes to by
// one; and all commands between the frames of one message, which stay in memory
// with them. A message is bounded by the reader's limit.
const maxCommand = 64 << 10

// part is what is known of the message at the start of what was read.
type part struct {
	at       int // of the next frame, from the start
	count    int // of frames before it
	bytes    int // of their bodies
	commands int // bytes of the commands among them
}

// frame is the head of a frame.
type frame struct {
	flags byte
	head  int
	size  int
}

// Next takes a whole message or command into f and reports true, or false where
// none has arrived whole. It neither waits nor takes memory, but for the names
// of unknown commands. The error is a *ProtocolError: the connection must go.
//
// A command between the frames of a message, where RFC 23 has none, comes
// first: libzmq puts its heartbeats there.
func (r *Reader) Next(f *Frames) (bool, error) {
	for {
		data := r.buf.Bytes()
		fr, ok, err := r.head(data[r.part.at:])
		if err != nil || !ok {
			return false, err
		}
		end := r.part.at + fr.head + fr.size
		if r.buf.Need(end); len(data) < end {
			return false, nil
		}
		if fr.flags&flagCommand != 0 {
			err := r.command(f, data, fr)
			return err == nil, err
		}
		r.part.at = end
		r.part.count++
		r.part.bytes += fr.size
		if fr.flags&flagMore == 0 {
			r.message(f, data)
			return true, nil
		}
	}
}

// head reads the head of a frame, which is checked before anything else of the
// frame has arrived.
func (r *Reader) head(b []byte) (frame, bool, error) {
	if len(b) < shortHead {
		return frame{}, false, nil
	}
	fr := frame{flags: b[0], head: shortHead, size: int(b[1])}
	if fr.flags&^flagsKnown != 0 {
		return frame{}, false, &ProtocolError{Reason: fmt.Sprintf("a frame with reserved flags (%#02x)", fr.flags)}
	}
	if fr.flags&(flagCommand|flagMore) == flagCommand|flagMore {
		return frame{}, false, &ProtocolError{Reason: "a command that more frames are to follow"}
	}
	size := uint64(fr.size)
	if fr.flags&flagLong != 0 {
		if len(b) < longHead {
			return frame{}, false, nil
		}
		fr.head, size = longHead, binary.BigEndian.Uint64(b[1:])
	}
	switch {
	case fr.flags&flagCommand != 0:
		if size > maxCommand {
			return frame{}, false, &ProtocolError{Reason: fmt.Sprintf("a command of %d bytes", size), Limit: maxCommand}
		}
	case size > uint64(r.maxMessage)-uint64(r.part.bytes):
		return frame{}, false, &ProtocolError{Reason: fmt.Sprintf("a message with a frame of %d bytes behind %d bytes", size, r.part.bytes), Limit: r.maxMessage}
	case r.part.count == MaxFrames:
		return frame{}, false, &ProtocolError{Reason: "a message of too many frames", Limit: MaxFrames}
	}
	fr.size = int(size)
	return fr, true, nil
}

// message takes the message that ends where part does.
func (r *Reader) message(f *Frames, data []byte) {
	f.Command, f.Body = "", nil
	f.Count, f.Bytes = r.part.count, r.part.bytes
	n := min(f.Count, keptFrames)
	for i, at := 0, 0; i < n; {
		size := uint64(data[at+1])
		head := shortHead
		if data[at]&flagLong != 0 {
			head, size = longHead, binary.BigEndian.Uint64(data[at+1:])
		}
		from, end := at+head, at+head+int(size)
		if data[at]&flagCommand == 0 {
			f.kept[i] = data[from:end:end]
			i++
		}
		at = end
	}
	f.List = f.kept[:n]
	r.buf.Take(r.part.at)
	r.part = part{}
}

// command takes the command at part. One between the frames of a message stays
// where it is: to close the gap could cost far more than a command does.
func (r *Reader) command(f *Frames, data []byte, fr frame) error {
	at, end := r.part.at, r.part.at+fr.head+fr.size
	name, rest, ok := cutShort(data[at+fr.head : end : end])
	if !ok || len(name) == 0 {
		return &ProtocolError{Reason: "a command without a name"}
	}
	if at == 0 {
		r.buf.Take(end)
	} else {
		if r.part.commands += end - at; r.part.commands > maxCommand {
			return &ProtocolError{Reason: fmt.Sprintf("%d bytes of commands within a message", r.part.commands), Limit: maxCommand}
		}
		r.part.at = end
	}
	f.Command, f.Body = commandName(name), rest
	f.List, f.Count, f.Bytes = nil, 0, 0
	return nil
}
