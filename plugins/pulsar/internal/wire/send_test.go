// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"testing"
)

// What is sent is, byte for byte, what PulsarApi.proto says: the frame's sizes, the
// SEND, the magic number 0e01 with the checksum (computed bit by bit elsewhere) of all
// behind it, and the metadata with its size before the payload.
func TestAppendSend(t *testing.T) {
	sequence := int64(9)
	for name, tt := range map[string]struct {
		m    Outgoing
		want string
	}{
		"key and property": {
			Outgoing{Key: "k", Properties: []OutgoingProperty{{"a", []byte("b")}}, Payload: []byte("hi"), Sequence: &sequence},
			"0000002d 00000008 0806 3204 0801 1002 0e01 9e05e27e 00000015 0a0170 1002 18e807 2206 0a0161 120162 32016b 4802 6869",
		},
		"times and ordering key, no payload": {
			Outgoing{OrderingKey: "o", EventTime: 5, DeliverAt: 300},
			"0000002a 00000008 0806 3204 0801 1002 0e01 8a2ae339 00000014 0a0170 1002 18e807 4800 6005 9201016f 9801ac02",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := Send{Producer: 1, Sequence: 2, Name: "p", PublishTime: 1000}
			if got, want := AppendSend(nil, &s, &tt.m), bytesOf(t, tt.want); !bytes.Equal(got, want) {
				t.Errorf("got  %x\nwant %x", got, want)
			}
			if got, want := AppendSend([]byte("x"), &s, &tt.m), bytesOf(t, "78"+tt.want); !bytes.Equal(got, want) {
				t.Errorf("behind another:\ngot  %x\nwant %x", got, want)
			}
		})
	}
}

func TestBatchAppendSend(t *testing.T) {
	s := Send{Producer: 1, Sequence: 2, Name: "p", PublishTime: 1000}
	var b Batch
	for range 2 { // the memory is used again
		b.Reset()
		b.Add(&Outgoing{Key: "k", Properties: []OutgoingProperty{{"a", []byte("b")}}, Payload: []byte("hi")})
		b.Add(&Outgoing{EventTime: 5, Payload: []byte("x")})
		if b.Len() != 2 || b.Bytes() != 28 {
			t.Errorf("a batch of %d messages, %d bytes", b.Len(), b.Bytes())
		}
		want := bytesOf(t, "00000048 0000000c 0806 3208 0801 1002 1802 3003 0e01 0bd05144"+
			"00000012 0a0170 1002 18e807 32016b 481c 5802 c00103"+
			"0000000d 0a060a0161120162 12016b 1802 6869 00000004 1801 2805 78")
		if got := b.AppendSend(nil, &s); !bytes.Equal(got, want) {
			t.Errorf("got  %x\nwant %x", got, want)
		}
	}
}

// sendOf is the SEND of a batch as the broker sees it: its numbers, and those in the
// metadata.
func sendOf(t *testing.T, frame []byte) (numbers [4]uint64) {
	t.Helper()
	f, err := NewReader(bytes.NewReader(frame)).Next()
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.body(TypeSend)
	if err != nil {
		t.Fatal(err)
	}
	for s.next() {
		switch s.number {
		case 2:
			numbers[0] = s.varint
		case 6:
			numbers[1] = s.varint
		}
	}
	head, _, _ := cut(f.Payload[magicBytes+sumBytes:])
	for s := (scan{b: head}); s.next(); {
		switch s.number {
		case 2:
			numbers[2] = s.varint
		case 24:
			numbers[3] = s.varint
		}
	}
	return numbers
}

// A batch's numbers begin with that of the SEND, and end with the last message's own,
// or one for each message later.
func TestBatchSequence(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	for name, tt := range map[string]struct {
		own  []*int64
		want [4]uint64
	}{
		"one":                  {[]*int64{nil}, [4]uint64{40, 0, 40, 0}},
		"three":                {[]*int64{nil, nil, nil}, [4]uint64{40, 42, 40, 42}},
		"own numbers":          {[]*int64{number(40), number(50)}, [4]uint64{40, 50, 40, 50}},
		"own number, but less": {[]*int64{number(40), number(3)}, [4]uint64{40, 0, 40, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			var b Batch
			for _, n := range tt.own {
				b.Add(&Outgoing{Sequence: n})
			}
			if got := sendOf(t, b.AppendSend(nil, &Send{Sequence: 40})); got != tt.want {
				t.Errorf("got %v; want %v", got, tt.want)
			}
		})
	}
}

func TestAppendSendAllocations(t *testing.T) {
	s, m := &Send{Producer: 3, Sequence: 1000, Name: "p", PublishTime: 1764590000000}, benchMessage()
	buf := AppendSend(nil, s, m)
	var b Batch
	if n := testing.AllocsPerRun(100, func() {
		buf = AppendSend(buf[:0], s, m)
		for range 10 {
			b.Add(m)
		}
		buf = b.AppendSend(buf[:0], s)
		b.Reset()
	}); n > 0 {
		t.Errorf("sending takes %v allocations", n)
	}
}
