// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/longshore-go/longshore/core"
)

// ErrMalformed says that a frame cannot be read.
var ErrMalformed = errors.New("malformed frame")

// Read reads one frame. Nothing of it is shared with later reads.
func Read(r io.Reader) (*Frame, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > MaxFrame {
		return nil, fmt.Errorf("read frame of %d bytes, the limit is %d: %w", n, MaxFrame, ErrMalformed)
	}
	// The announced length is not trusted: memory grows with what arrives.
	body, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil {
		return nil, err
	}
	if len(body) < int(n) {
		return nil, io.ErrUnexpectedEOF
	}
	return Decode(body)
}

// Decode reads a frame's body, the bytes behind its length. Byte fields of the
// frame lie in b.
func Decode(b []byte) (*Frame, error) {
	d := decoder{b: b}
	f := &Frame{
		Kind:  Kind(d.byte()),
		Req:   d.uint(),
		Sub:   d.uint32(),
		Num:   d.int(),
		Num2:  d.int(),
		Num3:  d.int(),
		Flag:  d.bool(),
		Flag2: d.bool(),
		Text:  d.string(),
		Name:  d.string(),
		Data:  d.bytes(),
		Fault: d.fault(),
	}
	// A capability set takes at least 11 bytes, an item at least 19, so a count
	// cannot ask for much more memory than the frame has.
	if n := d.count(MaxItems, 11); n > 0 {
		f.Profiles = make([]core.Capabilities, n)
		for i := range f.Profiles {
			f.Profiles[i] = d.capabilities()
		}
	}
	if n := d.count(MaxItems, 19); n > 0 {
		f.Items = make([]Item, n)
		for i := range f.Items {
			d.item(&f.Items[i])
		}
	}
	if d.bad || len(d.b) != 0 {
		return nil, ErrMalformed
	}
	return f, nil
}

// decoder takes fields off b; once bad it gives zero values.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) fail() { d.bad, d.b = true, nil }

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) bool() bool {
	v := d.byte()
	if v > 1 {
		d.fail()
	}
	return v == 1
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) uint32() uint32 {
	v := d.uint()
	if v > math.MaxUint32 {
		d.fail()
	}
	return uint32(v)
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count reads a number of elements that take at least size bytes each.
func (d *decoder) count(limit, size int) int {
	v := d.uint()
	if v > uint64(limit) || v*uint64(size) > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(v)
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) string() string { return string(d.take(d.uint())) }

func (d *decoder) bytes() []byte {
	n := d.uint()
	if n == 0 || d.bad {
		return nil
	}
	return d.take(n - 1)
}

func (d *decoder) capabilities() core.Capabilities {
	return core.Capabilities{
		Ack:       core.AckMode(d.byte()),
		Requeue:   core.RequeueMode(d.byte()),
		Reject:    core.RejectMode(d.byte()),
		Counts:    core.CountMode(d.byte()),
		Unsettled: core.Unsettled(d.byte()),
		Order:     core.OrderMode(d.byte()),
		Extend:    d.bool(),
		Durable:   d.bool(),
		MaxDelay:  time.Duration(d.int()),
		MaxHold:   time.Duration(d.int()),
		Address:   d.string(),
	}
}

func (d *decoder) fault() *core.Fault {
	if !d.bool() {
		return nil
	}
	f := &core.Fault{
		Code:       core.FaultCode(d.byte()),
		Message:    d.string(),
		Transient:  d.bool(),
		RetryAfter: time.Duration(d.int()),
	}
	for range d.count(MaxItems, 3) {
		f.Diagnostics = append(f.Diagnostics, core.Diagnostic{Path: d.string(), Message: d.string(), Fix: d.string()})
	}
	return f
}

func (d *decoder) item(it *Item) {
	it.ID = d.uint()
	it.Kind = d.byte()
	it.Attempt = d.uint32()
	it.Profile = d.uint32()
	it.Flag = d.bool()
	it.Retain = d.byte()
	it.Dedup = d.bool()
	it.Name = d.string()
	if n := d.count(MaxHeaders, 2); n > 0 {
		it.Headers = make(core.Headers, n)
		for i := range it.Headers {
			it.Headers[i] = core.Header{Name: d.string(), Value: d.bytes()}
		}
	}
	it.Payload = d.bytes()
	it.Scope = d.string()
	it.Identity = d.bytes()
	it.Position = d.bytes()
	it.Carry = d.bytes()
	it.Options = d.bytes()
	it.Text = d.string()
	it.Dur = time.Duration(d.int())
	it.Time = d.int()
	it.Fault = d.fault()
}
