// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"encoding/binary"
	"strconv"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/poison"
)

// A Decoder takes payloads apart, as Decode, with memory for many at a time.
// What it hands out is never written again, and its user may keep it: one
// message that is kept keeps the memory of others, as much as 512 KiB. The zero
// value is ready. One goroutine uses it at a time.
type Decoder struct {
	payloads, size int // that are to come, as Expect said

	memory slab[byte]
	lists  slab[core.Header]
	names  lineNames
}

// Expect says how many payloads are decoded next and how many bytes they have
// altogether, so that memory is taken for them at once. Fewer or more may come.
func (d *Decoder) Expect(payloads, size int) { d.payloads, d.size = payloads, size }

// Memory is what a Decoder hands out pieces of. The zero value has none yet; it
// grows to what one [Decoder.Expect] needs, at most to 512 KiB.
type Memory struct {
	bytes   []byte
	headers []core.Header
}

// Spent says that nothing that was handed out of the memory is in use any more.
func (m *Memory) Spent() {
	if !poison.On {
		return
	}
	poison.Bytes(m.bytes)
	for i := range m.headers {
		m.headers[i] = core.Header{Name: "spent", Value: []byte{poison.Byte}}
	}
}

// Use makes the decoder hand out pieces of m from now on, from its beginning:
// nothing that was handed out of it may be in use any more.
func (d *Decoder) Use(m *Memory) {
	d.memory = slab[byte]{free: m.bytes, home: &m.bytes}
	d.lists = slab[core.Header]{free: m.headers, home: &m.headers}
}

// Decode takes a payload apart as the function Decode does. The headers have
// room for one more: appending to them takes no memory.
func (d *Decoder) Decode(data []byte) (core.Headers, []byte, error) {
	d.payloads, d.size = max(d.payloads-1, 0), max(d.size-len(data), 0)
	if marked(data) {
		block, payload, ok := d.open(data)
		if ok {
			headers, ok, err := d.parse(data, block)
			if err != nil {
				return nil, data, err
			}
			if ok {
				return headers, payload, nil
			}
		}
	}
	d.list(0)
	return d.lists.take(1)[:0], data, nil
}

// Numbered decodes a payload and sets SequenceHeader to number.
func (d *Decoder) Numbered(data []byte, number uint64) (core.Headers, []byte, error) {
	headers, payload, err := d.Decode(data)
	if err != nil {
		return headers, payload, err
	}
	var text [MaxDigits]byte
	value := strconv.AppendUint(text[:0], number, 10)
	copy(d.memory.room(len(value), (d.payloads+1)*len(value)), value)
	return SetSequence(headers, d.memory.take(len(value))), payload, nil
}

// Decode takes a payload apart. One that is no envelope, or begins like one and
// cannot be decoded, comes back as it is, without headers. The only error is a
// *TooManyError.
func Decode(data []byte) (core.Headers, []byte, error) {
	if !marked(data) {
		return nil, data, nil
	}
	var d Decoder
	headers, payload, err := d.Decode(data)
	if len(headers) == 0 {
		headers = nil
	}
	return headers, payload, err
}

// open decodes an envelope into its header block and its payload. It reports
// false for what is no envelope.
func (d *Decoder) open(data []byte) (block, payload []byte, ok bool) {
	text := data[markLen:]
	n, ok := decodedLen(text)
	if !ok || n < blockLen {
		return nil, nil, false
	}
	total := (d.size+len(data))/4*3 + d.payloads*MaxDigits
	plain := d.memory.room(n+decodeSlack, total)
	if !decode(plain, text) {
		return nil, nil, false
	}
	length := binary.BigEndian.Uint32(plain)
	if uint64(length) > uint64(n-blockLen) {
		return nil, nil, false
	}
	plain = d.memory.take(n)[blockLen:]
	return plain[:length:length], plain[length:], true
}

// list returns an empty list with room for n headers and one more.
func (d *Decoder) list(n int) core.Headers {
	return d.lists.room(n+1, (d.payloads+1)*(n+1))[:0]
}
