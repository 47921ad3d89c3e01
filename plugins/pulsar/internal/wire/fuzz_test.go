// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

// Whatever a peer sends, in pieces of any sizes, reading ends with the end of the bytes
// or a *FrameError; what is returned is, in its order, what came.
func FuzzReader(f *testing.F) {
	f.Add(AppendPing(AppendPong(nil)), uint64(1))
	f.Add(AppendConnect(nil, "client", Auth{Method: "token", Data: []byte("secret")}, ""), uint64(2))
	f.Add(messageOf(AppendSend(nil, &Send{}, benchMessage()), 1, 2, 3), uint64(3))
	f.Add(frame(MaxFrame, MaxFrame-4), uint64(4))
	f.Add(append(framed(ping(1), make([]byte, chunkSize)...), framed(ping(2), 'x')...), uint64(5))
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		r := NewReader(pieces{bytes.NewReader(in), rand.New(rand.NewPCG(seed, 1))})
		var frames []Frame
		for rest := in; ; {
			f, err := r.Next()
			if err != nil {
				if _, ok := errors.AsType[*FrameError](err); !ok && !errors.Is(err, io.ErrUnexpectedEOF) && (!errors.Is(err, io.EOF) || len(rest) > 0) {
					t.Fatalf("%v, with %d bytes not read", err, len(rest))
				}
				break
			}
			if n := headerBytes + len(f.Command); f.Type <= 0 || !bytes.Equal(f.Command, rest[headerBytes:n]) || !bytes.HasPrefix(rest[n:], f.Payload) {
				t.Fatalf("got %v %x %x; want them to begin %x", f.Type, f.Command, f.Payload, rest[:n])
			}
			rest = rest[headerBytes+len(f.Command)+len(f.Payload):]
			frames = append(frames, f)
		}
		rest := in
		for i, f := range frames {
			rest = rest[headerBytes+len(f.Command):]
			if !bytes.HasPrefix(rest, f.Payload) {
				t.Fatalf("the payload of frame %d was changed", i)
			}
			rest = rest[len(f.Payload):]
		}
	})
}

// Whatever command comes, it is read or refused by a *FrameError, and holds no more
// memory than bytes came.
func FuzzCommand(f *testing.F) {
	f.Add(command(TypeTopicsResponse, appendText(appendVarint(nil, 1, 3), 2, "persistent://a/b/c")))
	f.Add(command(TypeConnected, appendVarint(appendText(nil, 1, "4.0"), 3, 5<<20)))
	f.Add(command(TypeLookupResponse, appendVarint(appendText(nil, 1, "pulsar://a"), 4, 6)))
	f.Add(command(TypeLastIDResponse, appendPosition(nil, 1, 5, 6)))
	f.Add(command(TypeSendReceipt, appendPosition(appendVarint(nil, 1, 3), 3, 5, 6)))
	f.Add(command(TypeMessage, appendVarint(appendPosition(appendVarint(nil, 1, 3), 2, 5, 6), 4, 1<<63)))
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := ParseCommand(in)
		if _, ok := errors.AsType[*FrameError](err); err != nil && !ok {
			t.Fatalf("ParseCommand: %v", err)
		}
		if err == nil && c.Type <= 0 {
			t.Fatalf("a command of type %d", c.Type)
		}
		if _, typeErr := typeOf(in); err == nil && typeErr != nil {
			t.Fatalf("it is read, and has no type: %v", typeErr)
		}
		held := len(c.Message) + len(c.ServerVersion) + len(c.AuthMethod) + len(c.Broker) + len(c.BrokerTLS) + len(c.Name)
		for _, s := range c.Topics {
			held += len(s)
		}
		if held > len(in) {
			t.Fatalf("%d bytes came, %d are held", len(in), held)
		}
		frame := Frame{Command: in}
		var d Delivery
		for _, err := range []error{second(frame.Receipt()), frame.Delivery(&d)} {
			if _, ok := errors.AsType[*FrameError](err); err != nil && !ok {
				t.Fatal(err)
			}
		}
		if 8*len(d.Left) > 8*len(in) {
			t.Fatalf("%d bytes came, %d words are held", len(in), len(d.Left))
		}
	})
}

func second(_ SendReceipt, err error) error { return err }

// Whatever an entry has, its messages are read, or refused by an *EntryError, and are
// not larger than it, or than what it is decompressed to.
func FuzzDelivery(f *testing.F) {
	for _, c := range []Compression{NoCompression, LZ4, ZLib, ZSTD, Snappy} {
		s := Send{Producer: 1, Sequence: 2, Name: "p", PublishTime: 1000, Compression: c}
		f.Add(payloadOf(AppendSend(nil, &s, benchMessage()))[magicBytes+sumBytes:], uint64(1), false)
		var b Batch
		b.Add(benchMessage())
		b.Add(&Outgoing{Payload: []byte("x"), OrderingKey: "o", EventTime: 7})
		f.Add(payloadOf(b.AppendSend(nil, &s))[magicBytes+sumBytes:], uint64(2), true)
	}
	f.Add([]byte{0x0e, 0x02, 0, 0, 0, 2, 8, 1, 0, 0, 0, 0}, uint64(0), false)
	f.Fuzz(func(t *testing.T, in []byte, left uint64, some bool) {
		for _, payload := range [][]byte{in, summed(in)} {
			d := delivered(payload)
			if some {
				d.Left = []uint64{left}
			}
			got, err := d.Messages(nil)
			if _, ok := errors.AsType[*EntryError](err); err != nil && (!ok || len(got) > 0) {
				t.Fatalf("%d messages, %v", len(got), err)
			}
			if d.Count < 1 || err == nil && len(got) > d.Count {
				t.Fatalf("%d messages of %d", len(got), d.Count)
			}
			held := 0
			for i, m := range got {
				held += len(m.Payload) + len(m.Key) + len(m.OrderingKey)
				for _, p := range m.Properties {
					held += len(p.Name) + len(p.Value)
				}
				if i > 0 && m.ID.Batch <= got[i-1].ID.Batch || m.ID.Batch >= int32(d.Count) {
					t.Fatalf("message %d is %v", i, m.ID)
				}
			}
			if held > len(in)+maxUncompressed {
				t.Fatalf("%d bytes came, %d are held", len(in), held)
			}
		}
	})
}
