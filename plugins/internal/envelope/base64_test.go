// SPDX-License-Identifier: Apache-2.0

package envelope

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"testing"
)

// sizes are around every step of the loops.
func sizes() []int {
	var ns []int
	for n := range 40 {
		ns = append(ns, n)
	}
	return append(ns, 510, 511, 512, 513, 4096, 65537)
}

func TestBase64(t *testing.T) {
	random := rand.NewChaCha8([32]byte{})
	for _, n := range sizes() {
		data := make([]byte, n)
		_, _ = random.Read(data)
		want := base64.StdEncoding.EncodeToString(data)
		text := make([]byte, textLen(n))
		encode(text, data)
		if string(text) != want {
			t.Fatalf("%d bytes encode to %q, want %q", n, text, want)
		}
		// Over its own bytes.
		clear(text)
		copy(text[len(text)-n:], data)
		encode(text, text[len(text)-n:])
		if string(text) != want {
			t.Fatalf("%d bytes in place encode to %q, want %q", n, text, want)
		}
		got, ok := decodeAll([]byte(want))
		if !ok || !bytes.Equal(got, data) {
			t.Fatalf("%q decodes to %q, %v", want, got, ok)
		}
	}
}

// Every length, from every alignment, as the loop over words decodes it.
func TestBase64Lengths(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	data := make([]byte, 4096)
	_, _ = random.Read(data)
	into := make([]byte, 4096+decodeSlack+64)
	for n := range 4096 {
		at := n % 33
		text := append(make([]byte, at), base64.StdEncoding.EncodeToString(data[:n])...)[at:]
		dst := into[at : at+n+decodeSlack]
		into[at+n+decodeSlack] = 0xa5
		if !decode(dst, text) || !bytes.Equal(dst[:n], data[:n]) || into[at+n+decodeSlack] != 0xa5 {
			t.Fatalf("%d bytes are not decoded, or more is written", n)
		}
		if len(text) < 4 {
			continue
		}
		clear(dst)
		words, rest, seen := decodeWords(toBits(), dst, text[:len(text)-4])
		if done := len(dst) - len(words); seen>>12 != 0 || !bytes.Equal(dst[:done], data[:done]) || len(rest) >= 8 {
			t.Fatalf("%d bytes are not decoded by words", n)
		}
		bad := text[int(random.Uint64()%uint64(len(text)))/4*4:]
		bad[0] = byte(random.Uint64()) | 0x80
		if decode(dst, text) {
			t.Fatalf("%q is decoded", text)
		}
	}
}

// Every character that is none of the alphabet is refused at every place.
func TestBase64Refuses(t *testing.T) {
	for _, n := range []int{1, 2, 3, 6, 7, 8, 9, 12, 23, 24} {
		text := []byte(base64.StdEncoding.EncodeToString(make([]byte, n)))
		for at := range text {
			for c := range 256 {
				bad := bytes.Clone(text)
				bad[at] = byte(c)
				compare(t, bad)
			}
		}
	}
}

func decodeAll(text []byte) ([]byte, bool) {
	n, ok := decodedLen(text)
	if !ok {
		return nil, false
	}
	dst := bytes.Repeat([]byte{0xa5}, n+decodeSlack+1)
	ok = decode(dst[:n+decodeSlack], text)
	return dst[:n], ok && dst[n+decodeSlack] == 0xa5
}

// compare decodes with this package and with the standard library.
func compare(t *testing.T, text []byte) {
	t.Helper()
	want, err := base64.StdEncoding.Strict().DecodeString(string(text))
	wantOK := err == nil && !bytes.ContainsAny(text, "\r\n")
	got, ok := decodeAll(text)
	if ok != wantOK || ok && !bytes.Equal(got, want) {
		t.Fatalf("%q decodes to %x, %v, want %x, %v", text, got, ok, want, err)
	}
}

func FuzzBase64(f *testing.F) {
	for _, n := range sizes() {
		f.Add(make([]byte, n))
		f.Add([]byte(base64.StdEncoding.EncodeToString(make([]byte, n))))
	}
	f.Add([]byte("AAAA=AAA"))
	f.Add([]byte("AA\nAA=="))
	f.Fuzz(func(t *testing.T, data []byte) {
		compare(t, data)
		text := make([]byte, textLen(len(data)))
		encode(text, data)
		if want := base64.StdEncoding.EncodeToString(data); string(text) != want {
			t.Errorf("%x encodes to %q, want %q", data, text, want)
		}
	})
}

func BenchmarkBase64(b *testing.B) {
	plain := make([]byte, 622)
	_, _ = rand.NewChaCha8([32]byte{}).Read(plain)
	text := []byte(base64.StdEncoding.EncodeToString(plain))
	into := make([]byte, len(text))
	strict := base64.StdEncoding.Strict()
	for _, way := range []struct {
		name string
		run  func()
	}{
		{"decode", func() { decode(into, text) }},
		{"decode std", func() { _, _ = strict.Decode(into, text) }},
		{"encode", func() { encode(into, plain) }},
		{"encode std", func() { base64.StdEncoding.Encode(into, plain) }},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				way.run()
			}
		})
	}
}
