// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"fmt"
	"io"

	"github.com/longshore-go/longshore/plugins/internal/slab"
)

// A Loan is memory of a Reader that is lent out.
type Loan = slab.Loan

// A Reader reads packets of one connection into pooled memory. One goroutine uses
// it at a time.
//
// Fill reads what is there, Next takes packets off it until it reports false.
// What Next handed out is good until Spent, or belongs to the loan of Lend.
type Reader struct {
	buf *slab.Buffer
	max int
}

// NewReader returns a reader of nc. Packets of more than max bytes, the fixed
// header included, end the connection: the Maximum Packet Size that CONNECT told
// the peer (3.1.2.11.4). 0 = what the protocol has room for.
func NewReader(nc io.Reader, max uint32) *Reader {
	if max == 0 || max > MaxSize {
		max = MaxSize
	}
	return &Reader{buf: slab.NewBuffer(nc), max: int(max)}
}

// Fill waits until something can be read, and reads it, once. It is called after
// Next has reported false. The error is io.EOF where the peer ended behind a
// whole packet, io.ErrUnexpectedEOF within one, net.ErrClosed, or what the
// connection says; deadlines of the connection count.
func (r *Reader) Fill() error { return r.buf.Fill() }

// Buffered returns how many bytes were read and not taken yet.
func (r *Reader) Buffered() int { return r.buf.Buffered() }

// Lend makes l keep the memory of every packet that Next handed out since the
// last Lend or Spent. What l has kept already stays with it.
func (r *Reader) Lend(l *Loan) { r.buf.Lend(l) }

// Spent says that no packet that Next handed out since the last Lend is used any
// more.
func (r *Reader) Spent() { r.buf.Spent() }

// Close gives the memory back that the reader itself holds, also what was handed
// out and not lent. The connection is not closed.
func (r *Reader) Close() { r.buf.Close() }

// Next takes a whole packet into p and reports true, or false where none has
// arrived whole. It neither waits nor takes memory. The error is a
// *ProtocolError: type, flags and length of a packet are checked before anything
// else of it has arrived.
func (r *Reader) Next(p *Packet) (bool, error) {
	data := r.buf.Bytes()
	if len(data) < 2 {
		return false, nil
	}
	typ, flags := data[0]>>4, data[0]&0x0F
	if err := checkHead(typ, flags); err != nil {
		return false, err
	}
	size, n := vbi(data[1:])
	switch {
	case n < 0:
		return false, malformed(typ, "a remaining length of no or of more than four bytes")
	case n == 0:
		return false, nil
	case size > 0 && (typ == TypePingreq || typ == TypePingresp):
		return false, malformed(typ, "%d bytes behind its head", size)
	}
	whole := 1 + n + int(size)
	if whole > r.max {
		return false, &ProtocolError{Code: CodeTooLarge, Type: typ,
			Reason: fmt.Sprintf("%d bytes, and the limit is %d", whole, r.max)}
	}
	if len(data) < whole {
		r.buf.Need(whole)
		return false, nil
	}
	p.Type, p.Flags, p.Body = typ, flags, data[1+n:whole:whole]
	r.buf.Take(whole)
	return true, nil
}

// flagsRequired are the flags of PUBREL, SUBSCRIBE and UNSUBSCRIBE (2.1.3).
const flagsRequired = 2

// checkHead checks the type of a packet, and the flags that a type other than
// PUBLISH must have.
func checkHead(typ, flags byte) error {
	want := byte(0)
	switch typ {
	case 0:
		return malformed(0, "a packet of the reserved type 0")
	case TypePublish:
		return nil
	case TypePubrel, TypeSubscribe, TypeUnsubscribe:
		want = flagsRequired
	}
	if flags != want {
		return malformed(typ, "flags 0x%X", flags) // [MQTT-2.1.3-1]
	}
	return nil
}
