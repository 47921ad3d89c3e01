// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// ping is a command with something to tell it by.
func ping(i int) []byte { return command(TypePing, appendVarint(nil, 9, uint64(i))) }

func TestReader(t *testing.T) {
	b := ping(1)
	for name, tt := range map[string]struct {
		in      []byte
		payload string
		err     error
		bad     string // part of a *FrameError
	}{
		"command":              {in: framed(b)},
		"payload":              {in: framed(b, []byte("hi")...), payload: "hi"},
		"end":                  {err: io.EOF},
		"within the sizes":     {in: framed(b)[:5], err: io.ErrUnexpectedEOF},
		"behind the sizes":     {in: framed(b)[:8], err: io.ErrUnexpectedEOF},
		"within the command":   {in: framed(b)[:10], err: io.ErrUnexpectedEOF},
		"before the payload":   {in: framed(b, []byte("hi")...)[:8+len(b)], err: io.ErrUnexpectedEOF},
		"large, nothing of it": {in: frame(1<<20, 8), err: io.ErrUnexpectedEOF},
		"large, some of it":    {in: frame(1<<20, 8, make([]byte, 100<<10)...), err: io.ErrUnexpectedEOF},
		"largest":              {in: frame(MaxFrame, 8, b...), err: io.ErrUnexpectedEOF},
		"too large":            {in: frame(MaxFrame+1, 8, b...), bad: "over the limit"},
		"largest number":       {in: frame(1<<32-1, 1<<32-1), bad: "over the limit"},
		"no room for a size":   {in: frame(3, 0), bad: "0 bytes is to be in 3"},
		"command beyond":       {in: frame(6, 3, 'a', 'b'), bad: "3 bytes is to be in 6"},
		"another protocol":     {in: []byte("HTTP/1.1 400 Bad Request"), bad: "begins with HTTP"},
		"greeting of its own":  {in: []byte("220 mail.example ESMTP"), bad: "over the limit"},
		"no command":           {in: frame(4, 0), bad: "no type"},
		"no type":              {in: framed(appendBytes(nil, 18, nil)), bad: "no type"},
		"negative type":        {in: framed(appendVarint(nil, 1, 1<<64-1)), bad: "no type"},
		"broken command":       {in: framed([]byte{0x80}), bad: "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, src := range []io.Reader{bytes.NewReader(tt.in), iotest.OneByteReader(bytes.NewReader(tt.in)), iotest.DataErrReader(bytes.NewReader(tt.in))} {
				f, err := NewReader(src).Next()
				if tt.bad != "" {
					if e, ok := errors.AsType[*FrameError](err); !ok || !strings.Contains(e.Error(), tt.bad) {
						t.Fatalf("got %v; want a frame error with %q", err, tt.bad)
					}
					continue
				}
				if !errors.Is(err, tt.err) || err == nil && (f.Type != TypePing || !bytes.Equal(f.Command, b) || string(f.Payload) != tt.payload) {
					t.Errorf("got %v %x %q, %v; want PING %x %q, %v", f.Type, f.Command, f.Payload, err, b, tt.payload, tt.err)
				}
			}
		})
	}
}

// The type is found where it is not the first field, and one of two bytes.
func TestReaderType(t *testing.T) {
	for want, b := range map[Type][]byte{
		TypeError: append(appendBytes(nil, 14, nil), appendVarint(nil, 1, 14)...),
		300:       appendVarint(nil, 1, 300),
	} {
		if f, err := NewReader(bytes.NewReader(framed(b))).Next(); err != nil || f.Type != want {
			t.Errorf("got %v, %v; want %v", f.Type, err, want)
		}
	}
}

// Frames of all sizes come in pieces of all sizes. Each is read as it was sent, and
// its payload stays as it is when others are read.
func TestReaderStream(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r, noise := rand.New(rand.NewPCG(seed, 1)), rand.NewChaCha8([32]byte{byte(seed)})
			var sent [][]byte
			var stream []byte
			for i := range 300 {
				n := 0
				switch r.IntN(12) {
				case 0:
					n = r.IntN(3 * chunkSize)
				case 1:
					n = aloneSize - 30 + r.IntN(60)
				case 2, 3, 4:
				default:
					n = r.IntN(2000)
				}
				payload := make([]byte, n)
				_, _ = noise.Read(payload) // it does not fail
				sent = append(sent, payload)
				stream = append(stream, framed(ping(i), payload...)...)
			}
			src := bytes.NewReader(stream)
			reader := NewReader(pieces{src, r})
			var got []Frame
			for i := range sent {
				buffered := reader.Buffered()
				left := src.Len()
				f, err := reader.Next()
				if err != nil || !bytes.Equal(f.Command, ping(i)) {
					t.Fatalf("frame %d: %x, %v", i, f.Command, err)
				}
				if buffered != (src.Len() == left) {
					t.Fatalf("frame %d: Buffered was %t, and %d bytes were read", i, buffered, left-src.Len())
				}
				got = append(got, f)
			}
			for i, f := range got {
				if !bytes.Equal(f.Payload, sent[i]) || cap(f.Payload) != len(f.Payload) {
					t.Fatalf("payload %d of %d bytes was changed, or has %d bytes more", i, len(sent[i]), cap(f.Payload)-len(f.Payload))
				}
			}
			if _, err := reader.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("got %v; want the end", err)
			}
		})
	}
}

// pieces returns a random part of what it could.
type pieces struct {
	from io.Reader
	r    *rand.Rand
}

func (p pieces) Read(b []byte) (int, error) {
	if p.r.IntN(3) == 0 && len(b) > 1 {
		b = b[:1+p.r.IntN(min(len(b)-1, 3000))]
	}
	return p.from.Read(b)
}

// A frame that cannot be read is no reason to wait for more.
func TestReaderBufferedBad(t *testing.T) {
	r := NewReader(bytes.NewReader(append(framed(ping(1)), frame(3, 0)...)))
	if r.Buffered() {
		t.Error("something is there before anything was read")
	}
	if _, err := r.Next(); err != nil || !r.Buffered() {
		t.Errorf("got %v, buffered %t", err, r.Buffered())
	}
}

func TestReaderAllow(t *testing.T) {
	for _, tt := range []struct{ message, limit int }{
		{0, MaxFrame}, {5 << 20, MaxFrame}, {32 << 20, 32<<20 + frameRoom}, {MaxMessage + 1, MaxMessage + frameRoom}, {-1, MaxFrame},
	} {
		for _, n := range []int{tt.limit, tt.limit + 1} {
			r := NewReader(bytes.NewReader(frame(uint32(n), 8, 'x')))
			r.Allow(tt.message)
			_, err := r.Next()
			if _, over := errors.AsType[*FrameError](err); over != (n > tt.limit) {
				t.Errorf("messages of %d bytes, a frame of %d: %v", tt.message, n, err)
			}
		}
	}
}

// allocated is how many bytes each of n calls takes.
func allocated(n int, f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		f()
	}
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc-before.TotalAlloc) / n
}

// What is only announced costs a chunk; what comes, its size and what grew on the way.
func TestReaderMemory(t *testing.T) {
	announced := frame(MaxFrame, 8, 'x')
	if each := allocated(100, func() {
		if _, err := NewReader(bytes.NewReader(announced)).Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	}); each > 3*chunkSize {
		t.Errorf("a frame that is only announced costs %d bytes", each)
	}
	broken := frame(MaxFrame, 8, make([]byte, chunkSize+1)...)
	if each := allocated(100, func() {
		if _, err := NewReader(bytes.NewReader(broken)).Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	}); each > (3+growth)*chunkSize {
		t.Errorf("a frame of which 64 KiB came costs %d bytes", each)
	}
	const size = 5 << 20
	whole := framed(ping(1), make([]byte, size)...)
	if each := allocated(10, func() {
		f, err := NewReader(bytes.NewReader(whole)).Next()
		if err != nil || len(f.Payload) != size {
			t.Fatal(err)
		}
	}); each > 2*size+8*chunkSize {
		t.Errorf("a frame of %d bytes costs %d", size, each)
	}
}

// Commands alone are read in the same memory for good, and payloads cost theirs.
func TestReaderAllocations(t *testing.T) {
	receipt := framed(command(TypeSendReceipt, appendVarint(appendVarint(nil, 1, 1), 2, 2)))
	r := NewReader(&repeated{frames: bytes.Repeat(receipt, 100)})
	read := func() {
		f, err := r.Next()
		if err == nil {
			_, err = f.Receipt()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read()
	if each := allocated(100_000, read); each > 0 {
		t.Errorf("a SEND_RECEIPT costs %d bytes", each)
	}

	message := messageOf(AppendSend(nil, &Send{Name: "p"}, benchMessage()), 1, 2, 3)
	r = NewReader(&repeated{frames: bytes.Repeat(message, 100)})
	var d Delivery
	messages := make([]Message, 0, 1)
	decode := func() {
		f, err := r.Next()
		if err == nil {
			err = f.Delivery(&d)
		}
		if err == nil {
			messages, err = d.Messages(messages[:0])
		}
		if err != nil || len(messages) != 1 {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(10_000, decode); n > 0 { // the average, rounded down
		t.Errorf("a MESSAGE takes %v allocations", n)
	}
	if each, most := allocated(10_000, decode), len(message)*11/10+3*48*11/10; each > most {
		t.Errorf("a MESSAGE of %d bytes costs %d; want at most %d", len(message), each, most)
	}
}
