// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"slices"
	"sync"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/poison"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// The bounds of one batch, whatever room there is: about what a frame to the
// host holds, so that no small frames are left behind.
const (
	maxBatch   = 256
	frameBytes = 120 << 10
	perMessage = 48 // of a frame, beside a message's own bytes
)

// turnBytes is what one of several peers has in a batch before it is the next
// one's turn.
const turnBytes = 16 << 10

// copyMost is up to how many waiting bytes of a peer are copied: what they lie
// in is far larger, and would be kept for them until the host has them.
const copyMost = 4 << 10

// batch makes deliveries of what peers have. What it hands out is not written
// again before its memory is released; the list of deliveries is.
type batch struct {
	in      *Intake
	decoder message.Decoder
	frames  zmtp.Frames

	out    []pluginapi.Delivery
	last   int // deliveries of the batch before
	room   pluginapi.Room
	bytes  int64 // payloads and headers
	frame  int   // about what it takes in a frame
	size   int   // of the last message in it
	memory *memory
	used   bool // something lies in memory
}

// memory is what the deliveries of one batch lie in.
type memory struct {
	decoded message.Memory
	copied  []byte // what was copied, the last piece of it
	loans   []*zmtp.Loan
	lent    int // of loans
}

var memories = sync.Pool{New: func() any { return new(memory) }}

// Release takes back what a host has.
func (m *memory) Release() {
	for _, l := range m.loans[:m.lent] {
		l.Release()
	}
	m.lent = 0
	m.decoded.Spent()
	poison.Bytes(m.copied)
	m.copied = m.copied[:0]
	memories.Put(m)
}

// loan returns one that is not used.
func (m *memory) loan() *zmtp.Loan {
	if m.lent == len(m.loans) {
		m.loans = append(m.loans, new(zmtp.Loan))
	}
	m.lent++
	return m.loans[m.lent-1]
}

// leastCopied is the least memory for bytes that are copied.
const leastCopied = 1 << 10

// reserve makes room for n bytes to be copied.
func (m *memory) reserve(n int) {
	if cap(m.copied)-len(m.copied) < n {
		m.copied = make([]byte, 0, max(n, 2*cap(m.copied), leastCopied))
	}
}

// copy returns a copy of b, which there is room for.
func (m *memory) copy(b []byte) []byte {
	from := len(m.copied)
	m.copied = append(m.copied, b...)
	return m.copied[from:len(m.copied):len(m.copied)]
}

func (b *batch) begin(room pluginapi.Room) {
	b.room = pluginapi.Room{Messages: min(room.Messages, maxBatch), Bytes: room.Bytes}
	b.out, b.bytes, b.frame, b.size = b.out[:0], 0, 0, 0
	if b.memory == nil {
		b.memory, _ = memories.Get().(*memory)
		b.decoder.Use(&b.memory.decoded)
	}
}

// full reports whether the batch takes nothing more: another one like the last
// would not fit.
func (b *batch) full() bool {
	return len(b.out) >= b.room.Messages || b.bytes >= b.room.Bytes || b.frame > 0 && b.frame+b.size > frameBytes
}

// end returns the batch, and whether there is anything in it.
func (b *batch) end() (pluginapi.Batch, bool) {
	if b.last > len(b.out) {
		clear(b.out[len(b.out):b.last]) // what the list before kept
	}
	b.last = len(b.out)
	ds := pluginapi.Batch{Deliveries: b.out}
	if b.used {
		ds.Memory, b.memory, b.used = b.memory, nil, false
	}
	return ds, len(b.out) > 0
}

// own adds a message of the own queue.
func (b *batch) own(m core.Message) {
	b.out = append(b.out, pluginapi.Delivery{Message: m})
	b.in.counters.own.Add(1)
	b.count(&m)
}

func (b *batch) count(m *core.Message) {
	n := m.Size()
	b.bytes += int64(n)
	b.size = n + len(m.Name) + perMessage
	b.frame += b.size
}

// from adds messages of a feed up to about quantum bytes, at least one if there
// is one. It reports whether there may be more without reading.
func (b *batch) from(f *feed, quantum int) (more bool) {
	if f.own {
		b.in.fromOwn(b, quantum)
		return false
	}
	copies := f.reader.Buffered() <= copyMost
	if copies {
		b.memory.reserve(f.reader.Buffered())
	}
	from := len(b.out)
	until := b.frame + quantum
	for {
		if more, f.err = f.reader.Next(&b.frames); !more || f.err != nil {
			break
		}
		if b.frames.Command != "" {
			if f.err = f.command(&b.frames); f.err != nil {
				more = false
				break
			}
			continue
		}
		b.add(f, copies)
		if b.full() || b.frame >= until {
			break
		}
	}
	added := len(b.out) - from
	if added > 0 {
		b.used = true
		b.in.counters.messages.Add(uint64(added))
		b.in.mu.Lock()
		b.in.since = 0
		b.in.mu.Unlock()
	}
	if added > 0 && !copies {
		f.reader.Lend(b.memory.loan())
	} else {
		f.reader.Spent()
	}
	return more && f.reader.Buffered() > 0
}

// namedFrames is how many frames of a message are read: name, headers, payload.
const namedFrames = 3

// add adds the message in b.frames, unless the subscription does not want it.
func (b *batch) add(f *feed, copies bool) {
	frames := f.named(&b.frames)
	if !b.in.wants(frames[0]) {
		b.in.counters.filtered.Add(1)
		return
	}
	frames = frames[:min(len(frames), namedFrames)]
	if copies {
		for i := range frames {
			frames[i] = b.memory.copy(frames[i])
		}
	}
	b.out = slices.Grow(b.out, 1)[:len(b.out)+1]
	d := &b.out[len(b.out)-1]
	*d = pluginapi.Delivery{}
	if b.in.o.Source.ReplyTo {
		d.Undecodable = b.decoder.DecodeWith(f.replyTo, frames, &d.Message)
	} else {
		d.Undecodable = b.decoder.Decode(frames, &d.Message)
	}
	if most := b.in.o.Most; most > 0 && int64(b.frames.Bytes) > most {
		f.limit(d, most)
	}
	if d.Undecodable != nil {
		b.in.counters.undecodable.Add(1)
	}
	b.count(&d.Message)
}

// limit makes a message of more than most bytes one that cannot be read. The
// header that was put before its own is not counted, and stays.
func (f *feed) limit(d *pluginapi.Delivery, most int64) {
	m, own := &d.Message, 0
	if f.in.o.Source.ReplyTo {
		own = min(1, len(m.Headers))
	}
	size := int64(m.Size() - m.Headers[:own].Size())
	if size <= most {
		return
	}
	d.Undecodable = &core.Fault{
		Code:    core.FaultTooLarge,
		Message: fmt.Sprintf("read a message named %.200q: payload and headers of %d bytes, the limit (max_message) is %d", m.Name, size, most),
	}
	m.Payload, m.Headers = []byte{}, m.Headers[:own]
}

// named are the frames of a message from its name on.
func (f *feed) named(fr *zmtp.Frames) [][]byte {
	if f.delimited && len(fr.List) > 1 && len(fr.List[0]) == 0 {
		return fr.List[1:]
	}
	return fr.List
}

// wants reports whether a name is under the prefix that is subscribed to.
func (in *Intake) wants(name []byte) bool {
	s := &in.o.Source
	return !s.Subscribe || len(name) >= len(s.Prefix) && string(name[:len(s.Prefix)]) == s.Prefix
}
