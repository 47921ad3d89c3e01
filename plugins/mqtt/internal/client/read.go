// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// ErrLost is why a link has ended that the server closed without saying why.
var ErrLost = errors.New("the server closed the connection")

// segment is less than a segment of TCP holds, on any line. Behind a read of less a
// server that leaves Nagle's algorithm on, as Mosquitto does, may hold the next small
// packet back until the system acknowledges this one, which has 40 ms for it.
const segment = 1200

// reading passes on what comes until the link has ended. r may hold packets that
// came with the CONNACK.
func (l *Link) reading(r *packet.Reader, h Handler) {
	var (
		p    packet.Packet
		pace pace
	)
	queued := l.out.queued.Load()
	for size := segment; ; {
		l.cork()
		n, err := l.pass(r, h, &p)
		l.uncork()
		if size < segment && l.socket != nil && l.out.queued.Load() == queued { // else that takes the acknowledgement along
			l.times.acknowledge(l.socket)
		}
		if bad, ok := errors.AsType[*packet.ProtocolError](err); ok {
			l.End(err, bad.Code)
		} else if err != nil {
			l.lose(err)
			return
		}
		if l.deaf.Load() {
			l.discard()
			return
		}
		if wait := pace.next(l.since(), n); wait > 0 {
			time.Sleep(wait)
		}
		part := r.Buffered()
		if err := r.Fill(); err != nil {
			l.lose(lost(err))
			return
		}
		size, queued = r.Buffered()-part, l.out.queued.Load()
		l.lastRead.Store(l.since())
	}
}

// pass passes on the packets that have been read, each in p, and says how many
// those were.
func (l *Link) pass(r *packet.Reader, h Handler, p *packet.Packet) (n int, _ error) {
	passed := false
	defer func() {
		if passed {
			h.Handled(l, r)
		} else {
			r.Spent()
		}
	}()
	for !l.deaf.Load() {
		switch there, err := r.Next(p); {
		case err != nil:
			return n, err
		case !there:
			return n, nil
		}
		n++
		switch p.Type {
		case packet.TypePublish, packet.TypePuback, packet.TypePubrec, packet.TypePubrel, packet.TypePubcomp,
			packet.TypeSuback, packet.TypeUnsuback:
			passed = true
			h.Packet(l, p)
		case packet.TypePingresp: // that something came is all that counts
		case packet.TypeDisconnect:
			return n, disconnected(p)
		default: // [MQTT-4.13.1-1]
			return n, &packet.ProtocolError{Code: packet.CodeProtocolError, Type: p.Type, Reason: "a server does not send it here"}
		}
	}
	return n, nil
}

// disconnected is the error of a server's DISCONNECT.
func disconnected(p *packet.Packet) error {
	d, err := packet.ParseDisconnect(p)
	if err != nil {
		return err
	}
	return &ReasonError{Packet: packet.TypeDisconnect, Code: d.Code, Reason: d.Reason, ServerReference: d.ServerReference}
}

// discard reads and forgets until the connection ends, so that the server can send
// what it is sending and reads our DISCONNECT: closing with bytes unread would
// take it away.
func (l *Link) discard() {
	_, _ = io.Copy(io.Discard, l.nc)
	l.cut()
}

// lost is why nothing more can be read.
func lost(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the server closed the connection within a packet: %w", err)
	case errors.Is(err, io.EOF):
		return ErrLost
	}
	return err
}
