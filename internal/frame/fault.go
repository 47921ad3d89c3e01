// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"time"

	"github.com/longshore-go/longshore/core"
)

// maxDiagnostics is the most diagnostics that are read of one fault; further
// ones are passed over, so that their memory is bounded.
const maxDiagnostics = 64

// sizeFault is the size of a Fault's content.
func sizeFault(f *core.Fault) int {
	n := sizeUint(uint64(f.Code)) + sizeBytes(len(f.Message)) + sizeBool(f.Transient) + sizeUint(uint64(f.RetryAfter))
	for i := range f.Diagnostics {
		n += sizeMessage(sizeDiagnostic(&f.Diagnostics[i]))
	}
	return n
}

func sizeDiagnostic(d *core.Diagnostic) int {
	return sizeBytes(len(d.Path)) + sizeBytes(len(d.Message)) + sizeBytes(len(d.Fix))
}

// sizeFaultField is the size of a field that holds a fault, absent when nil.
func sizeFaultField(f *core.Fault) int {
	if f == nil {
		return 0
	}
	return sizeMessage(sizeFault(f))
}

// appendFault appends a field that holds a fault, absent when nil.
func appendFault(b []byte, field byte, f *core.Fault) []byte {
	if f == nil {
		return b
	}
	b = appendLength(b, field, sizeFault(f))
	b = appendUint(b, 1, uint64(f.Code))
	b = appendString(b, 2, f.Message)
	b = appendBool(b, 3, f.Transient)
	b = appendUint(b, 4, uint64(f.RetryAfter))
	for i := range f.Diagnostics {
		d := &f.Diagnostics[i]
		b = appendLength(b, 5, sizeDiagnostic(d))
		b = appendString(b, 1, d.Path)
		b = appendString(b, 2, d.Message)
		b = appendString(b, 3, d.Fix)
	}
	return b
}

// fault reads an embedded Fault onto f, or a new one, with memory of its own.
func (r *reader) fault(f *core.Fault) (*core.Fault, error) {
	b, err := r.bytes()
	if err != nil {
		return f, err
	}
	if f == nil {
		f = &core.Fault{}
	}
	for m := (reader{b: b}); m.more(); {
		tag, err := m.tag()
		if err != nil {
			return f, err
		}
		var v uint64
		switch tag {
		case 1<<3 | wireVarint:
			v8, e := m.enum(uint8(core.FaultInternal))
			f.Code, err = core.FaultCode(v8), e
		case 2<<3 | wireBytes:
			f.Message, err = m.ownString()
		case 3<<3 | wireVarint:
			v, err = m.varint()
			f.Transient = v != 0
		case 4<<3 | wireVarint:
			v, err = m.varint()
			f.RetryAfter = time.Duration(v)
		case 5<<3 | wireBytes:
			err = m.diagnostic(f)
		default:
			err = m.skip(tag)
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

// diagnostic reads an embedded Diagnostic onto the end of f's.
func (r *reader) diagnostic(f *core.Fault) error {
	b, err := r.bytes()
	if err != nil {
		return err
	}
	var d core.Diagnostic
	for m := (reader{b: b}); m.more(); {
		tag, err := m.tag()
		if err != nil {
			return err
		}
		switch tag {
		case 1<<3 | wireBytes:
			d.Path, err = m.ownString()
		case 2<<3 | wireBytes:
			d.Message, err = m.ownString()
		case 3<<3 | wireBytes:
			d.Fix, err = m.ownString()
		default:
			err = m.skip(tag)
		}
		if err != nil {
			return err
		}
	}
	if len(f.Diagnostics) < maxDiagnostics {
		f.Diagnostics = append(f.Diagnostics, d)
	}
	return nil
}

// ownString reads a field of bytes as a string with memory of its own.
func (r *reader) ownString() (string, error) {
	v, err := r.bytes()
	return string(v), err
}
