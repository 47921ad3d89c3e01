// SPDX-License-Identifier: Apache-2.0

package wire

// Producer is what a PRODUCER says.
type Producer struct {
	ID    uint64 // unique within the connection
	Topic string // full name
	Name  string // unique within the topic; "" = the broker gives one
	Given bool   // Name is one that a broker gave before, and may take over from itself
	Epoch uint64 // how often the producer was opened before: the higher one takes over
}

// AppendProducer appends a PRODUCER, which is answered by PRODUCER_SUCCESS or ERROR.
func AppendProducer(dst []byte, request uint64, p Producer) []byte {
	return appendCommand(dst, TypeProducer, func(b []byte) []byte {
		b = appendText(b, 1, p.Topic)
		b = appendVarint(b, 2, p.ID)
		b = appendVarint(b, 3, request)
		if p.Name != "" {
			b = appendText(b, 4, p.Name)
		}
		b = appendVarint(b, 8, p.Epoch)
		return appendBool(b, 9, p.Name != "" && !p.Given) // user_provided_producer_name
	})
}

// AppendCloseProducer appends a CLOSE_PRODUCER, which is answered by SUCCESS or ERROR.
func AppendCloseProducer(dst []byte, request, producer uint64) []byte {
	return appendCommand(dst, TypeCloseProducer, func(b []byte) []byte {
		return appendVarint(appendVarint(b, 1, producer), 2, request)
	})
}

// SendReceipt is a SEND_RECEIPT command.
type SendReceipt struct {
	Producer      uint64
	Sequence      uint64
	Highest       uint64 // the last number of a batch, 0 = not said
	Ledger, Entry int64  // -1 where a broker with deduplication had the message already
	Partition     int32  // -1 = not said
}

// Receipt reads a SEND_RECEIPT. Errors are *FrameError.
func (f *Frame) Receipt() (SendReceipt, error) {
	r := SendReceipt{Ledger: -1, Entry: -1, Partition: -1}
	s, err := f.body(TypeSendReceipt)
	if err != nil {
		return r, err
	}
	for s.next() {
		switch s.number {
		case 1:
			r.Producer = s.varint
		case 2:
			r.Sequence = s.varint
		case 3:
			id := scan{b: s.bytes}
			for id.next() {
				switch id.number {
				case 1:
					r.Ledger = id.int64()
				case 2:
					r.Entry = id.int64()
				case 3:
					r.Partition = id.int32()
				}
			}
			s.broken = s.broken || id.broken
		case 4:
			r.Highest = s.varint
		}
	}
	if s.broken {
		return r, bad("%s is broken", TypeSendReceipt)
	}
	return r, nil
}

// body returns the fields of the frame's command, which is of type t.
func (f *Frame) body(t Type) (scan, error) {
	s := scan{b: f.Command}
	var body scan
	found := false
	for s.next() {
		if s.number == uint64(t) && s.kind == bytesKind { //nolint:gosec // a constant of this package
			body, found = scan{b: s.bytes}, true
		}
	}
	switch {
	case s.broken:
		return body, bad("the command is broken")
	case !found:
		return body, bad("%s without its fields", t)
	}
	return body, nil
}
