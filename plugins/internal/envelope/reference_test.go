// SPDX-License-Identifier: Apache-2.0

package envelope_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"

	"github.com/longshore-go/longshore/core"
)

// reference takes a payload apart in the plainest way: what the decoder does is
// compared with it.
func reference(data []byte) (core.Headers, []byte) {
	mark, text, _ := bytes.Cut(data, []byte{':'})
	if len(data) < 4 || string(mark) != "rs1" && string(mark) != "rs2" || bytes.ContainsAny(text, "\r\n") {
		return nil, data
	}
	plain, err := base64.StdEncoding.Strict().DecodeString(string(text))
	if err != nil || len(plain) < 4 {
		return nil, data
	}
	n, rest := binary.BigEndian.Uint32(plain), plain[4:]
	if uint64(n) > uint64(len(rest)) {
		return nil, data
	}
	block, payload := rest[:n], rest[n:]
	var headers core.Headers
	if string(mark) == "rs1" {
		for line := range bytes.Lines(block) {
			if name, value, ok := bytes.Cut(line, []byte{':'}); ok {
				headers = append(headers, core.Header{Name: string(bytes.TrimSpace(name)), Value: append([]byte{}, bytes.TrimSpace(value)...)})
			}
		}
		return headers, payload
	}
	part := func() (p []byte, ok bool) {
		if len(block) < 4 {
			return nil, false
		}
		n := binary.BigEndian.Uint32(block)
		if block = block[4:]; uint64(n) > uint64(len(block)) {
			return nil, false
		}
		p, block = block[:n], block[n:]
		return p, true
	}
	for len(block) > 0 {
		name, ok1 := part()
		value, ok2 := part()
		if !ok1 || !ok2 {
			return nil, data
		}
		headers = append(headers, core.Header{Name: string(name), Value: append([]byte{}, value...)})
	}
	return headers, payload
}
