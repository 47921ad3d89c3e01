// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"math"
	"testing"
)

// What is written is, byte for byte, what PulsarApi.proto says: 08 is the type, then
// the field with the number of the type.
func TestAppend(t *testing.T) {
	for name, tt := range map[string]struct {
		got  []byte
		want string
	}{
		"ping": {AppendPing(nil), "00000009 00000005 0812 920100"},
		"pong": {AppendPong(nil), "00000009 00000005 0813 9a0100"},
		"connect": {
			AppendConnect(nil, "c", Auth{}, ""),
			"00000013 0000000f 0802 120b 0a0163 2013 5204 0801 2801",
		},
		"connect with a token": {
			AppendConnect(nil, "c", Auth{Method: "token", Data: []byte("t")}, ""),
			"0000001d 00000019 0802 1215 0a0163 1a0174 2a05746f6b656e 2013 5204 0801 2801",
		},
		"connect with a certificate": { // its data is there, and empty
			AppendConnect(nil, "c", Auth{Method: "tls"}, ""),
			"0000001a 00000016 0802 1212 0a0163 1a00 2a03746c73 2013 5204 0801 2801",
		},
		"connect through a proxy": {
			AppendConnect(nil, "c", Auth{}, "b:1"),
			"00000018 00000014 0802 1210 0a0163 2013 3203623a31 5204 0801 2801",
		},
		"auth response": {
			AppendAuthResponse(nil, "c", Auth{Method: "token", Data: []byte("t")}),
			"0000001a 00000016 0825 aa0211 0a0163 120a 0a05746f6b656e 120174 1813",
		},
		"partitions": {
			AppendPartitions(nil, 300, "t", true),
			"0000000f 0000000b 0815 aa0106 0a0174 10ac02",
		},
		"partitions, creating nothing": {
			AppendPartitions(nil, 1, "t", false),
			"00000010 0000000c 0815 aa0107 0a0174 1001 3000",
		},
		"topics": {
			AppendTopics(nil, 1, "a/b"),
			"00000012 0000000e 0820 820209 0801 1203612f62 1800",
		},
		"lookup": {
			AppendLookup(nil, 1, "t", false, ""),
			"00000010 0000000c 0817 ba0107 0a0174 1001 1800",
		},
		"lookup by a listener": {
			AppendLookup(nil, 1, "t", true, "out"),
			"00000015 00000011 0817 ba010c 0a0174 1001 1801 3a036f7574",
		},
		"producer": {
			AppendProducer(nil, 2, Producer{ID: 1, Topic: "t"}),
			"00000013 0000000f 0805 2a0b 0a0174 1001 1802 4000 4800",
		},
		"producer with a name of the user's": {
			AppendProducer(nil, 2, Producer{ID: 1, Topic: "t", Name: "n"}),
			"00000016 00000012 0805 2a0e 0a0174 1001 1802 22016e 4000 4801",
		},
		"producer with the broker's name": {
			AppendProducer(nil, 2, Producer{ID: 1, Topic: "t", Name: "n", Given: true, Epoch: 3}),
			"00000016 00000012 0805 2a0e 0a0174 1001 1802 22016e 4003 4800",
		},
		"close of a producer": {
			AppendCloseProducer(nil, 2, 1),
			"0000000c 00000008 080f 7a04 0801 1002",
		},
		"subscribe": {
			AppendSubscribe(nil, 2, Subscribe{ID: 1, Topic: "t", Subscription: "s"}),
			"00000018 00000014 0804 2210 0a0174 120173 1800 2001 2802 6800 7800",
		},
		"subscribe, all said": {
			AppendSubscribe(nil, 2, Subscribe{ID: 1, Topic: "t", Subscription: "s", Name: "n", Type: KeyShared, Earliest: true, Create: true}),
			"0000001b 00000017 0804 2213 0a0174 120173 1803 2001 2802 32016e 6801 7801",
		},
		"flow": {AppendFlow(nil, 1, 1000), "0000000d 00000009 080b 5a05 0801 10e807"},
		"ack": {
			AppendAck(nil, 9, 1, []Acked{{Ledger: 300, Entry: 4}, {Ledger: 300, Entry: 5}}),
			"0000001c 00000018 080a 5214 0801 1000 1a05 08ac02 1004 1a05 08ac02 1005 4009",
		},
		"ack of a part": {
			AppendAck(nil, 0, 1, []Acked{{Ledger: 3, Entry: 4, Left: []uint64{5, 1 << 63}, Size: 128}}),

			"00000022 0000001e 080a 521a 0801 1000 1a14 0803 1004 2805 2880808080808080808001 308001",
		},
		"redelivery": {
			AppendRedeliver(nil, 1, []MessageID{{Ledger: 3, Entry: 4, Batch: 0}, {Ledger: 3, Entry: 4, Batch: 1}, {Ledger: 3, Entry: 5, Batch: NoBatch}}),
			"00000017 00000013 0814 a2010e 0801 1204 0803 1004 1204 0803 1005",
		},
		"seek": {
			AppendSeek(nil, 2, 1, 3, 4),
			"00000013 0000000f 081c e2010a 0801 1002 1a04 0803 1004",
		},
		"seek to the first message": {
			AppendSeek(nil, 2, 1, -1, -1),
			"00000025 00000021 081c e2011c 0801 1002 1a16 08ffffffffffffffffff01 10ffffffffffffffffff01",
		},
		"seek to the end": {
			AppendSeek(nil, 2, 1, math.MaxInt64, math.MaxInt64),
			"00000023 0000001f 081c e2011a 0801 1002 1a14 08ffffffffffffffff7f 10ffffffffffffffff7f",
		},
		"seek to a time":            {AppendSeekTime(nil, 2, 1, 1000), "00000010 0000000c 081c e20107 0801 1002 20e807"},
		"seek to before there is a": {AppendSeekTime(nil, 2, 1, -5), "0000000f 0000000b 081c e20106 0801 1002 2000"},
		"close of a consumer":       {AppendCloseConsumer(nil, 2, 1), "0000000d 00000009 0810 820104 0801 1002"},
		"last id":                   {AppendLastID(nil, 2, 1), "0000000d 00000009 081d ea0104 0801 1002"},
	} {
		t.Run(name, func(t *testing.T) {
			want := bytesOf(t, tt.want)
			if !bytes.Equal(tt.got, want) {
				t.Errorf("got  %x\nwant %x", tt.got, want)
			}
			if f, err := NewReader(bytes.NewReader(tt.got)).Next(); err != nil {
				t.Errorf("it cannot be read: %v", err)
			} else if _, err := f.Parse(); err != nil {
				t.Errorf("it cannot be parsed: %v", err)
			}
		})
	}
}

// A frame is appended behind what is there.
func TestAppendBehind(t *testing.T) {
	b := AppendPong(AppendPing([]byte("before")))
	if want := append(append([]byte("before"), AppendPing(nil)...), AppendPong(nil)...); !bytes.Equal(b, want) {
		t.Errorf("got %x; want %x", b, want)
	}
}

// Without messages nothing is asked for: without ids the command means all of them.
func TestAppendRedeliverNothing(t *testing.T) {
	if b := AppendRedeliver([]byte("x"), 1, nil); string(b) != "x" {
		t.Errorf("got %x", b)
	}
}

// Lengths of two bytes and more are in their places.
func TestAppendLong(t *testing.T) {
	acks := make([]Acked, 1000)
	for i := range acks {
		acks[i] = Acked{Ledger: 1 << 40, Entry: int64(i)}
	}
	f, err := NewReader(bytes.NewReader(AppendAck(nil, 7, 8, acks))).Next()
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.body(TypeAck)
	if err != nil {
		t.Fatal(err)
	}
	n, request := 0, uint64(0)
	for s.next() {
		switch s.number {
		case 3:
			if id := messageID(s.bytes); id.Ledger != 1<<40 || id.Entry != int64(n) {
				t.Fatalf("entry %d is %v", n, id)
			}
			n++
		case 8:
			request = s.varint
		}
	}
	if s.broken || n != len(acks) || request != 7 {
		t.Errorf("got %d entries, request %d, broken %t", n, request, s.broken)
	}
}

func TestAppendAllocations(t *testing.T) {
	buf := make([]byte, 0, 4096)
	acks := []Acked{{Ledger: 1, Entry: 2}, {Ledger: 1, Entry: 3, Left: []uint64{1}, Size: 2}}
	if n := testing.AllocsPerRun(1000, func() {
		buf = AppendFlow(AppendAck(buf[:0], 1, 2, acks), 1, 2)
	}); n > 0 {
		t.Errorf("an ACK and a FLOW take %v allocations", n)
	}
}
