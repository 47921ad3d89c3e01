// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/longshore-go/longshore/core"
)

// TooManyError says that an envelope holds more than MaxHeaders headers.
type TooManyError struct{ Headers int }

// Error names the number and the limit.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("envelope with %d headers: the limit is %d", e.Headers, MaxHeaders)
}

// Decode takes a payload apart. One that is no envelope, or begins like one and
// cannot be decoded, comes back as it is, without headers. The headers and the
// payload share memory with data or with each other. The only error is a
// *TooManyError.
func Decode(data []byte) (core.Headers, []byte, error) {
	if !marked(data) {
		return nil, data, nil
	}
	text := data[markLen:]
	// Go's decoder skips line breaks within base64; they are not part of it.
	if bytes.IndexByte(text, '\r') >= 0 || bytes.IndexByte(text, '\n') >= 0 {
		return nil, data, nil
	}
	plain, err := base64.StdEncoding.Strict().AppendDecode(nil, text)
	if err != nil || len(plain) < blockLen {
		return nil, data, nil //nolint:nilerr // it is a payload then
	}
	n := binary.BigEndian.Uint32(plain)
	rest := plain[blockLen:]
	if uint64(n) > uint64(len(rest)) {
		return nil, data, nil
	}
	block, payload := rest[:n:n], rest[n:]
	parse := lines
	if bytes.HasPrefix(data, []byte(markBlocks)) {
		parse = blocks
	}
	headers, ok, err := parse(block)
	if !ok {
		return nil, data, err
	}
	return headers, payload, nil
}

// lines reads "name: value" lines. What has no colon is no header and is
// skipped, as blank lines are.
func lines(block []byte) (core.Headers, bool, error) {
	count := bytes.Count(block, []byte{':'})
	if n := bytes.Count(block, []byte{'\n'}) + 1; n < count {
		count = n
	}
	if count > MaxHeaders {
		return nil, false, &TooManyError{Headers: count}
	}
	headers := make(core.Headers, 0, count)
	for len(block) > 0 {
		line := block
		if i := bytes.IndexByte(block, '\n'); i >= 0 {
			line, block = block[:i], block[i+1:]
		} else {
			block = nil
		}
		name, value, ok := bytes.Cut(line, []byte{':'})
		if !ok {
			continue
		}
		if value = bytes.TrimSpace(value); value == nil {
			value = []byte{} // present and empty, as in rs2
		}
		headers = append(headers, core.Header{Name: string(bytes.TrimSpace(name)), Value: value[:len(value):len(value)]})
	}
	if len(headers) == 0 {
		headers = nil
	}
	return headers, true, nil
}

// blocks reads lengths and bytes. A block that does not come out even is not
// decodable.
func blocks(block []byte) (core.Headers, bool, error) {
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
	if count == 0 {
		return nil, true, nil
	}
	headers := make(core.Headers, 0, count)
	for len(block) > 0 {
		var name, value []byte
		name, block, _ = cut(block)
		value, block, _ = cut(block)
		headers = append(headers, core.Header{Name: string(name), Value: value})
	}
	return headers, true, nil
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
