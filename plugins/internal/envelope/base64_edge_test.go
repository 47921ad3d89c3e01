// SPDX-License-Identifier: Apache-2.0

//go:build linux

package envelope

import (
	"bytes"
	"encoding/base64"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Text and bytes that end where memory ends are neither read nor written
// beyond.
func TestBase64AtTheEndOfMemory(t *testing.T) {
	text, into := edge(t), edge(t)
	for n := range 1500 {
		want := bytes.Repeat([]byte{byte(n), 0xff, byte(n >> 3)}, n/3+1)[:n]
		b := text[len(text)-base64.StdEncoding.EncodedLen(n):]
		base64.StdEncoding.Encode(b, want)
		dst := into[len(into)-n-decodeSlack:]
		if !decode(dst, b) || !bytes.Equal(dst[:n], want) {
			t.Fatalf("%d bytes are not decoded", n)
		}
		copy(into[len(into)-n:], want)
		encode(text[len(text)-len(b):], into[len(into)-n:])
		if string(b) != base64.StdEncoding.EncodeToString(want) {
			t.Fatalf("%d bytes are not encoded", n)
		}
	}
}

// edge is memory behind which there is none.
func edge(t *testing.T) []byte {
	t.Helper()
	page := os.Getpagesize()
	b, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	if err := unix.Mprotect(b[page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return b[:page:page]
}
