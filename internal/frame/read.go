// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/longshore-go/longshore/core"
)

// The ways in which bytes are no frame.
var (
	errTruncated = errors.New("truncated field")
	errTag       = errors.New("field number out of range")
	errTooMany   = errors.New("more entries than a frame may have")
	errControl   = fmt.Errorf("over the limit of %d bytes for what is neither messages nor results", MaxControl)
)

// reader walks over the fields of one message.
type reader struct {
	b []byte
	i int
}

// more reports whether there is another field.
func (r *reader) more() bool { return r.i < len(r.b) }

// varint reads a varint. Most have one byte.
func (r *reader) varint() (uint64, error) {
	if i := r.i; i < len(r.b) && r.b[i] < 0x80 {
		r.i = i + 1
		return uint64(r.b[i]), nil
	}
	return r.longVarint()
}

func (r *reader) longVarint() (uint64, error) {
	v, n := protowire.ConsumeVarint(r.b[r.i:])
	if n < 0 {
		return 0, errTruncated
	}
	r.i += n
	return v, nil
}

// tag reads a field's number and wire type as one number: number << 3 | type.
func (r *reader) tag() (uint64, error) {
	if i := r.i; i < len(r.b) && r.b[i]-1<<3 < 0x80-1<<3 { // one byte, and not field 0
		r.i = i + 1
		return uint64(r.b[i]), nil
	}
	return r.longTag()
}

func (r *reader) longTag() (uint64, error) {
	t, err := r.varint()
	if err != nil {
		return 0, err
	}
	if n := t >> 3; n < uint64(protowire.MinValidNumber) || n > uint64(protowire.MaxValidNumber) {
		return 0, errTag
	}
	return t, nil
}

// bytes reads a field of bytes, which stays a part of the message's memory. An
// empty one is nil.
func (r *reader) bytes() ([]byte, error) {
	n, err := r.varint()
	if err != nil {
		return nil, err
	}
	if n > uint64(len(r.b)-r.i) {
		return nil, errTruncated
	}
	if n == 0 {
		return nil, nil
	}
	end := r.i + int(n)
	v := r.b[r.i:end:end]
	r.i = end
	return v, nil
}

// word reads a field of bytes as a string with memory of its own.
func (r *reader) word(w *words) (string, error) {
	v, err := r.bytes()
	return w.of(v), err
}

// skip passes over a field that is not known.
func (r *reader) skip(tag uint64) error {
	n := protowire.ConsumeFieldValue(protowire.Number(tag>>3), protowire.Type(tag&7), r.b[r.i:])
	if n < 0 {
		return fmt.Errorf("skip field %d: %w", tag>>3, protowire.ParseError(n))
	}
	r.i += n
	return nil
}

// enum reads an enum whose highest known value is last. What a newer side
// means by a higher one is not known here, so it reads as unspecified.
func (r *reader) enum(last uint8) (uint8, error) {
	v, err := r.varint()
	if n := uint32(v); n <= uint32(last) { // an enum has 32 bits, whatever its varint has
		return uint8(n), err
	}
	return 0, err
}

// header reads an embedded Header, whose value stays a part of the message's
// memory.
func (r *reader) header(h *core.Header, w *words) error {
	b, err := r.bytes()
	if err != nil {
		return err
	}
	for m := (reader{b: b}); m.more(); {
		tag, err := m.tag()
		if err != nil {
			return err
		}
		switch tag {
		case 1<<3 | wireBytes:
			h.Name, err = m.word(w)
		case 2<<3 | wireBytes:
			h.Value, err = m.bytes()
		default:
			err = m.skip(tag)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readEntries appends what read makes of each embedded message of field 1, at
// most MaxEntries.
func readEntries[T any](b []byte, list []T, read func(b []byte, entry *T) error) ([]T, error) {
	for m := (reader{b: b}); m.more(); {
		tag, err := m.tag()
		if err != nil {
			return list, err
		}
		if tag != 1<<3|wireBytes {
			if err := m.skip(tag); err != nil {
				return list, err
			}
			continue
		}
		if len(list) == MaxEntries {
			return list, errTooMany
		}
		v, err := m.bytes()
		if err != nil {
			return list, err
		}
		var entry T
		list = append(list, entry)
		if err := read(v, &list[len(list)-1]); err != nil {
			return list, err
		}
	}
	return list, nil
}

// count counts the embedded messages of a field, without looking into them.
// Broken bytes end the count; the reading itself finds them again.
func count(b []byte, field uint64) int {
	n := 0
	for r := (reader{b: b}); r.more(); {
		tag, err := r.tag()
		if err != nil {
			return n
		}
		if tag != field<<3|wireBytes {
			if r.skip(tag) != nil {
				return n
			}
			continue
		}
		if _, err := r.bytes(); err != nil {
			return n
		}
		n++
	}
	return n
}
