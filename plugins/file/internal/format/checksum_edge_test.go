// SPDX-License-Identifier: Apache-2.0

//go:build linux

package format

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Payloads that end where memory ends are not read beyond, nor before they begin.
func TestChecksumAtTheEdgesOfMemory(t *testing.T) {
	page := os.Getpagesize()
	b, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	for _, hole := range [][]byte{b[:page], b[2*page:]} {
		if err := unix.Mprotect(hole, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	p := b[page : 2*page]
	for i := range p {
		p[i] = byte(i*i*31 + i>>3)
	}
	for n := range page + 1 {
		for _, q := range [][]byte{p[:n], p[page-n:]} {
			crc := uint16(n * 257)
			if got, want := Extend(crc, q), extend(crc, q); got != want {
				t.Fatalf("%d bytes: got %04x, want %04x", n, got, want)
			}
		}
	}
}
