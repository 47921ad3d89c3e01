// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"io"
	"math"

	"github.com/longshore-go/longshore/plugins/internal/slab"
)

// MaxFrames is the most frames of one message: three are read, two more may
// stand before them, and the rest is skipped.
const MaxFrames = 1024

// A Loan is memory of a Reader that is lent out.
type Loan = slab.Loan

// A Reader reads messages and commands of one connection into pooled memory.
// One goroutine uses it at a time.
//
// Fill reads what is there, Next takes messages off it until it reports false.
// What Next handed out is good until Spent, or belongs to the loan of Lend.
type Reader struct {
	buf        *slab.Buffer
	maxMessage int64
	part       part // of the message at the start of buf
}

// NewReader returns a reader of nc behind its handshake. Messages of more than
// maxMessage bytes are refused. Where nc is a TCP or Unix connection, nothing
// is held while it waits.
func NewReader(nc io.Reader, maxMessage int64) *Reader {
	return &Reader{buf: slab.NewBuffer(nc), maxMessage: min(maxMessage, math.MaxInt-1<<20)}
}

// Most bounds the memory that is read into from now on, by default 256 KiB. At
// least 4 KiB are used, and what a message needs.
func (r *Reader) Most(n int) { r.buf.Most(n) }

// Share makes the reader take the memory of large messages out of a budget that it
// shares, from now on. It is called where nothing is read yet, or no large
// message.
func (r *Reader) Share(s Sharing) { r.buf.Share(&claim{Sharing: s}) }

// Buffered returns how many bytes were read and not taken yet.
func (r *Reader) Buffered() int { return r.buf.Buffered() }

// Wait waits until something can be read or the connection has ended, without
// holding memory unless a part of a message is in it. Deadlines of the
// connection count, and the reader is as before after one. Where the source
// cannot be waited for, it returns at once.
func (r *Reader) Wait() error { return r.buf.Wait() }

// Fill waits until something can be read, and reads it. It is called after Next
// has reported false. The error is io.EOF where the peer ended behind a whole
// message, io.ErrUnexpectedEOF within one, net.ErrClosed, or what the
// connection says; deadlines of the connection count. Where the budget of Share is
// used up it waits for that first.
func (r *Reader) Fill() error { return r.buf.Fill() }

// Lend makes l keep the memory of everything that Next handed out since the
// last Lend or Spent. What l has kept already stays with it.
func (r *Reader) Lend(l *Loan) { r.buf.Lend(l) }

// Spent says that nothing that Next handed out since the last Lend is used any
// more.
func (r *Reader) Spent() { r.buf.Spent() }

// Close gives the memory back that the reader itself holds, also what was
// handed out and not lent. The connection is not closed.
func (r *Reader) Close() {
	r.buf.Close()
	r.part = part{}
}
