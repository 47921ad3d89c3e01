// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/longshore-go/longshore/core"
)

// Append appends the frame with its length.
func (f *Frame) Append(b []byte) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0, byte(f.Kind))
	b = binary.AppendUvarint(b, f.Req)
	b = binary.AppendUvarint(b, uint64(f.Sub))
	b = binary.AppendVarint(b, f.Num)
	b = binary.AppendVarint(b, f.Num2)
	b = binary.AppendVarint(b, f.Num3)
	b = appendBool(b, f.Flag)
	b = appendBool(b, f.Flag2)
	b = appendString(b, f.Text)
	b = appendString(b, f.Name)
	b = appendBytes(b, f.Data)
	b = appendFault(b, f.Fault)
	b = binary.AppendUvarint(b, uint64(len(f.Profiles)))
	for i := range f.Profiles {
		b = appendCapabilities(b, &f.Profiles[i])
	}
	b = binary.AppendUvarint(b, uint64(len(f.Items)))
	for i := range f.Items {
		b = f.Items[i].append(b)
	}
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

// Write sends the frame.
func (f *Frame) Write(w io.Writer) error {
	b := f.Append(nil)
	if len(b)-4 > MaxFrame {
		return fmt.Errorf("write frame: %d bytes, the limit is %d", len(b)-4, MaxFrame)
	}
	_, err := w.Write(b)
	return err
}

// Size is about what the item takes in a frame.
func (it *Item) Size() int {
	n := 64 + len(it.Name) + len(it.Payload) + len(it.Scope) + len(it.Identity) + len(it.Position) +
		len(it.Carry) + len(it.Options) + len(it.Text)
	for _, h := range it.Headers {
		n += 8 + len(h.Name) + len(h.Value)
	}
	return n
}

func (it *Item) append(b []byte) []byte {
	b = binary.AppendUvarint(b, it.ID)
	b = append(b, it.Kind)
	b = binary.AppendUvarint(b, uint64(it.Attempt))
	b = binary.AppendUvarint(b, uint64(it.Profile))
	b = appendBool(b, it.Flag)
	b = append(b, it.Retain)
	b = appendBool(b, it.Dedup)
	b = appendString(b, it.Name)
	b = binary.AppendUvarint(b, uint64(len(it.Headers)))
	for _, h := range it.Headers {
		b = appendString(b, h.Name)
		b = appendBytes(b, h.Value)
	}
	b = appendBytes(b, it.Payload)
	b = appendString(b, it.Scope)
	b = appendBytes(b, it.Identity)
	b = appendBytes(b, it.Position)
	b = appendBytes(b, it.Carry)
	b = appendBytes(b, it.Options)
	b = appendString(b, it.Text)
	b = binary.AppendVarint(b, int64(it.Dur))
	b = binary.AppendVarint(b, it.Time)
	return appendFault(b, it.Fault)
}

func appendCapabilities(b []byte, c *core.Capabilities) []byte {
	b = append(b, byte(c.Ack), byte(c.Requeue), byte(c.Reject), byte(c.Counts), byte(c.Unsettled), byte(c.Order))
	b = appendBool(b, c.Extend)
	b = appendBool(b, c.Durable)
	b = binary.AppendVarint(b, int64(c.MaxDelay))
	b = binary.AppendVarint(b, int64(c.MaxHold))
	return appendString(b, c.Address)
}

func appendFault(b []byte, f *core.Fault) []byte {
	if f == nil {
		return append(b, 0)
	}
	b = append(b, 1, byte(f.Code))
	b = appendString(b, f.Message)
	b = appendBool(b, f.Transient)
	b = binary.AppendVarint(b, int64(f.RetryAfter))
	b = binary.AppendUvarint(b, uint64(len(f.Diagnostics)))
	for _, d := range f.Diagnostics {
		b = appendString(b, d.Path)
		b = appendString(b, d.Message)
		b = appendString(b, d.Fix)
	}
	return b
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// appendBytes keeps nil apart from empty: the length is one more, 0 is nil.
func appendBytes(b, v []byte) []byte {
	if v == nil {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(v))+1)
	return append(b, v...)
}
