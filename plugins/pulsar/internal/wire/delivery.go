// SPDX-License-Identifier: Apache-2.0

package wire

// Delivery is a MESSAGE command with its payload. It is used again from one to the
// next, by one goroutine; it must not be copied.
type Delivery struct {
	Consumer      uint64
	Ledger, Entry int64
	Partition     int32 // -1 = not said
	Redelivered   uint32
	Left          []uint64 // bits of the messages of a batch that are not acked yet; nil = all
	Payload       []byte   // what follows the command: checksum, metadata, payload

	// Count is how many messages the entry has, also those that are acked or were
	// compacted away; it is set by Messages, to 1 where that is not known.
	Count int
	// Kept is how many bytes its messages keep: the entry, and what it was decompressed to;
	// it is set by Messages.
	Kept int

	properties []Property // memory for those of messages
	spread     int        // bytes of the entries that those are of
}

// maxLeft is the most words of Left: those of the largest batch.
const maxLeft = maxParts / 64

// Delivery reads a MESSAGE into d. Errors are *FrameError.
func (f *Frame) Delivery(d *Delivery) error {
	*d = Delivery{Partition: -1, Payload: f.Payload, properties: d.properties, spread: d.spread}
	s, err := f.body(TypeMessage)
	if err != nil {
		return err
	}
	for s.next() {
		switch {
		case s.number == 1:
			d.Consumer = s.varint
		case s.number == 2:
			id := scan{b: s.bytes}
			for id.next() {
				switch id.number {
				case 1:
					d.Ledger = id.int64()
				case 2:
					d.Entry = id.int64()
				case 3:
					d.Partition = id.int32()
				}
			}
			s.broken = s.broken || id.broken
		case s.number == 3:
			d.Redelivered = uint32(s.varint) //nolint:gosec // uint32 in the protocol
		case s.number == 4 && s.kind == varintKind:
			d.left(s.varint)
		case s.number == 4: // packed
			words := scan{b: s.bytes}
			for words.at < len(words.b) && !words.broken {
				d.left(words.uvarint())
			}
			s.broken = s.broken || words.broken
		}
	}
	if s.broken {
		return bad("%s is broken", TypeMessage)
	}
	return nil
}

// left adds a word to Left. What is beyond the largest batch is left out.
func (d *Delivery) left(word uint64) {
	if len(d.Left) < maxLeft {
		d.Left = append(d.Left, word)
	}
}
