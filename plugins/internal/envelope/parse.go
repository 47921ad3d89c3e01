// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
)

// TooManyError says that an envelope holds more than MaxHeaders headers.
type TooManyError struct{ Headers int }

// Error names the number and the limit.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("envelope with %d headers: the limit is %d", e.Headers, MaxHeaders)
}

// parse reads the header block of data. It reports false for one that is not
// decodable.
func (d *Decoder) parse(data, block []byte) (core.Headers, bool, error) {
	if bytes.HasPrefix(data, []byte(markBlocks)) {
		return d.blocks(block)
	}
	headers, err := d.lines(block)
	return headers, err == nil, err
}

// lines reads "name: value" lines. What has no colon is no header and is
// skipped, as blank lines are.
func (d *Decoder) lines(block []byte) (core.Headers, error) {
	count := bytes.Count(block, []byte{'\n'})
	if n := len(block); n > 0 && block[n-1] != '\n' {
		count++
	}
	if count > inOrder {
		count = min(count, bytes.Count(block, []byte{':'}))
	}
	if count > MaxHeaders {
		return nil, &TooManyError{Headers: count}
	}
	headers := d.list(count)
	for len(block) > 0 {
		name, value, known := d.names.expected(len(headers), block)
		if known {
			value, block = cutLine(value)
		} else {
			var line []byte
			line, block = cutLine(block)
			before, after, ok := bytes.Cut(line, []byte{':'})
			if !ok {
				continue
			}
			name, value = d.names.line(len(headers), bytes.TrimSpace(before)), after
		}
		value = trim(value)
		headers = append(headers, core.Header{Name: name, Value: value[:len(value):len(value)]})
	}
	return d.lists.take(len(headers) + 1)[:len(headers)], nil
}

// cutLine takes a line off b.
func cutLine(b []byte) (line, rest []byte) {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return b[:i], b[i+1:]
	}
	return b, nil
}

// trim cuts blanks off both ends; what has none left is empty, not nil, as in
// blocks.
func trim(value []byte) []byte {
	if n := len(value); n > 0 && solid(value[0]) && solid(value[n-1]) {
		return value
	}
	if value = bytes.TrimSpace(value); value == nil {
		return []byte{}
	}
	return value
}

// solid reports whether c is a character by itself and no blank.
func solid(c byte) bool { return ' ' < c && c < utf8.RuneSelf }

// blocks reads lengths and bytes. A block that does not come out even is not
// decodable.
func (d *Decoder) blocks(block []byte) (core.Headers, bool, error) {
	count := 0
	for rest := block; len(rest) > 0; count++ {
		for range 2 {
			var ok bool
			if _, rest, ok = cut(rest); !ok {
				return nil, false, nil
			}
		}
	}
	if count > MaxHeaders {
		return nil, false, &TooManyError{Headers: count}
	}
	headers := d.list(count)
	for len(block) > 0 {
		var name, value []byte
		name, block, _ = cut(block)
		value, block, _ = cut(block)
		headers = append(headers, core.Header{Name: d.names.Intern(name), Value: value})
	}
	return d.lists.take(count + 1)[:count], true, nil
}

// cut takes a length and its bytes off b.
func cut(b []byte) (part, rest []byte, ok bool) {
	if len(b) < blockLen {
		return nil, nil, false
	}
	n := binary.BigEndian.Uint32(b)
	b = b[blockLen:]
	if uint64(n) > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}
