// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

func frame(total, command uint32, rest ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, total)
	return append(binary.BigEndian.AppendUint32(b, command), rest...)
}

// framed is the frame of a command, with what is to follow it.
func framed(command []byte, payload ...byte) []byte {
	return append(frame(uint32(4+len(command)+len(payload)), uint32(len(command)), command...), payload...)
}

func TestReadFrame(t *testing.T) {
	for name, tt := range map[string]struct {
		in   []byte
		want string // of the command
		err  error
		bad  string // part of a *FrameError
	}{
		"command":             {in: frame(6, 2, 'a', 'b'), want: "ab"},
		"empty command":       {in: frame(4, 0)},
		"end":                 {err: io.EOF},
		"within the sizes":    {in: []byte{0, 0, 0}, err: io.ErrUnexpectedEOF},
		"within the command":  {in: frame(6, 2, 'a'), err: io.ErrUnexpectedEOF},
		"before the command":  {in: frame(6, 2), err: io.ErrUnexpectedEOF},
		"too large":           {in: frame(MaxFrame+1, MaxFrame-3), bad: "over the limit"},
		"largest number":      {in: frame(1<<32-1, 1<<32-1), bad: "over the limit"},
		"no room for a size":  {in: frame(3, 0), bad: "0 bytes is to be in 3"},
		"command beyond":      {in: frame(6, 3, 'a', 'b'), bad: "3 bytes is to be in 6"},
		"payload":             {in: frame(7, 2, 'a', 'b', 'c'), bad: "1 bytes follow"},
		"another protocol":    {in: []byte("HTTP/1.1 400 Bad Request"), bad: "begins with HTTP"},
		"greeting of its own": {in: []byte("220 mail.example ESMTP"), bad: "over the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadFrame(iotest.OneByteReader(bytes.NewReader(tt.in)), nil)
			if tt.bad != "" {
				e, ok := errors.AsType[*FrameError](err)
				if !ok || !strings.Contains(e.Error(), tt.bad) {
					t.Fatalf("got %v; want a frame error with %q", err, tt.bad)
				}
				return
			}
			if !errors.Is(err, tt.err) || string(got) != tt.want {
				t.Errorf("got %q, %v; want %q, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

// Memory is reused where it suffices, and what is only announced costs none.
func TestReadFrameMemory(t *testing.T) {
	buf := make([]byte, 0, 16)
	got, err := ReadFrame(bytes.NewReader(frame(6, 2, 'a', 'b')), buf)
	if err != nil || string(got) != "ab" || &got[0] != &buf[:1][0] {
		t.Errorf("got %q in other memory, %v; want it in that which was given", got, err)
	}
	large := bytes.Repeat([]byte("x"), 3*chunk+17)
	got, err = ReadFrame(bytes.NewReader(frame(uint32(len(large)+4), uint32(len(large)), large...)), buf)
	if err != nil || !bytes.Equal(got, large) {
		t.Errorf("got %d bytes, %v; want %d", len(got), err, len(large))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		if _, err := ReadFrame(bytes.NewReader(frame(MaxFrame, MaxFrame-4, 'x')), nil); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("got %v; want the unexpected end", err)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / 100; each > 4*chunk {
		t.Errorf("a frame that is only announced costs %d bytes", each)
	}
}

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
			AppendConnect(nil, "c", Auth{}),
			"00000013 0000000f 0802 120b 0a0163 2013 5204 0801 2801",
		},
		"connect with a token": {
			AppendConnect(nil, "c", Auth{Method: "token", Data: []byte("t")}),
			"0000001d 00000019 0802 1215 0a0163 1a0174 2a05746f6b656e 2013 5204 0801 2801",
		},
		"connect with a certificate": { // its data is there, and empty
			AppendConnect(nil, "c", Auth{Method: "tls"}),
			"0000001a 00000016 0802 1212 0a0163 1a00 2a03746c73 2013 5204 0801 2801",
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
	} {
		t.Run(name, func(t *testing.T) {
			want, err := hex.DecodeString(strings.ReplaceAll(tt.want, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(tt.got, want) {
				t.Errorf("got  %x\nwant %x", tt.got, want)
			}
			if b, err := ReadFrame(bytes.NewReader(tt.got), nil); err != nil {
				t.Errorf("it cannot be read: %v", err)
			} else if _, err := ParseCommand(b); err != nil {
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
