// SPDX-License-Identifier: Apache-2.0

package index

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/longshore-go/longshore/plugins/file/internal/format"
)

// budget is how many bytes of payloads are checksummed at most in the search for
// whole records within a torn one.
const budget = 1 << 30

// Torn judges the last bytes of a file, from the boundary off on, where no whole
// record could be read. It is nil where they are what a write that was cut off
// leaves, or what remains of an end mark (format.EndRest); otherwise they are
// damaged: whole records stand behind off, or something that no writer wrote.
func Torn(from io.ReaderAt, size int64, h format.Header, off int64) (*format.DamageError, error) {
	f := open(from, size, h)
	begin, err := f.behindBeacon(off)
	if err != nil || begin >= size {
		return nil, err
	}
	_, met := f.next(begin, new(format.Record))
	if met == nil {
		return nil, nil
	}
	if !unreadable(met) {
		return nil, met
	}
	return f.judge(begin, met)
}

// judge says what stands from begin on to the end of the file, where met was
// met: nil for a torn tail.
func (f *file) judge(begin int64, met error) (*format.DamageError, error) {
	if rest, err := f.rest(begin); rest || err != nil {
		return nil, err
	}
	written, err := f.beforeZeros(begin)
	if err != nil || written == begin {
		return nil, err
	}
	// What was written may be the beginning of a record although there is damage, if
	// zeros stand behind it: the file had its new length before it had the bytes.
	size := f.size
	f.size = written
	_, agreed, err := f.skim(begin, new(format.Record))
	f.size = size
	if err != nil && !unreadable(err) {
		return nil, err
	}
	damaged, _ := errors.AsType[*format.DamageError](met)
	if damaged != nil && !errors.As(err, new(*format.ShortError)) {
		return damaged, nil
	}
	if agreed > 0 {
		return nil, nil // a beacon within the record says the same of its length
	}
	whole, err := f.wholeBehind(begin, written)
	if err != nil || whole == 0 {
		return nil, err
	}
	if damaged == nil {
		damaged = &format.DamageError{Offset: begin}
	}
	damaged.Reason = fmt.Sprintf("no whole record, and a whole one stands behind it at offset %d", whole)
	return damaged, nil
}

var zeros [ahead]byte

// beforeZeros is where the zeros begin that end the file, begin at the least.
func (f *file) beforeZeros(begin int64) (int64, error) {
	for end := f.size; end > begin; {
		from := max(begin, end-ahead)
		b, err := f.bytes(from, int(end-from), 0)
		if err != nil {
			return 0, err
		}
		if b = b[:end-from]; !bytes.Equal(b, zeros[:len(b)]) {
			return from + int64(len(bytes.TrimRight(b, "\x00"))), nil
		}
		end = from
	}
	return begin, nil
}

// wholeBehind is the offset of the first whole record that begins behind begin
// and ends before end; 0 = there is none. It gives up at a budget, as if there
// was one.
func (f *file) wholeBehind(begin, end int64) (int64, error) {
	region, err := f.bytes(begin, int(end-begin), 0)
	if err != nil {
		return 0, err
	}
	region = region[:min(int64(len(region)), end-begin)]
	checked := 0
	for i := 1; i < len(region); i++ {
		payload, ok := f.mayBegin(region[i:], begin+int64(i))
		if !ok {
			continue
		}
		if checked += payload; checked > budget {
			return begin + int64(i), nil
		}
		f.parser.Spill = f.parser.Spill[:0]
		if _, err := f.parser.Next(region[i:], begin+int64(i), new(format.Record)); err == nil {
			return begin + int64(i), nil
		}
	}
	return 0, nil
}

// mayBegin reports cheaply whether a record that b holds whole may begin at off,
// with the length of its payload, 0 where a beacon cuts its head.
func (f *file) mayBegin(b []byte, off int64) (payload int, ok bool) {
	k := int(b[0])
	if k == 0 || k > format.MaxKey || len(b) < format.RecordOverhead+k || off%f.interval() == 0 {
		return 0, false
	}
	length := 1 + k + 8 + 8 + 8
	if int64(length+4) > f.interval()-off%f.interval() {
		return 0, true
	}
	n := int64(b[length])<<24 | int64(b[length+1])<<16 | int64(b[length+2])<<8 | int64(b[length+3])
	return int(n), n <= int64(len(b)-length-4-format.TailLen) && format.ValidKey(b[1:1+k])
}
