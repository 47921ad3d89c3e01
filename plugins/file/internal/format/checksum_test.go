// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// bitwise is the checksum by its definition.
func bitwise(crc uint16, p []byte) uint16 {
	for _, b := range p {
		for bit := 7; bit >= 0; bit-- {
			carry := crc>>15 != uint16(b>>bit)&1
			if crc <<= 1; carry {
				crc ^= polynomial
			}
		}
	}
	return crc
}

func TestChecksumIsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		crc := rapid.Uint16().Draw(t, "crc")
		p := rapid.SliceOfN(rapid.Byte(), 0, 500).Draw(t, "p")
		if got, want := Extend(crc, p), bitwise(crc, p); got != want {
			t.Errorf("got %04x, want %04x", got, want)
		}
		if got := extend(crc, p); got != bitwise(crc, p) {
			t.Errorf("by look-ups: got %04x, want %04x", got, bitwise(crc, p))
		}
		cut := rapid.IntRange(0, len(p)).Draw(t, "cut")
		if got, want := Extend(Extend(crc, p[:cut]), p[cut:]), Extend(crc, p); got != want {
			t.Errorf("in two parts: got %04x, want %04x", got, want)
		}
	})
}

// Every length around the steps, from every alignment.
func TestChecksumLengths(t *testing.T) {
	p := make([]byte, 4200)
	for i := range p {
		p[i] = byte(i*i*31 + i>>3)
	}
	for n := range 4097 {
		at := n % 17
		if got, want := Extend(uint16(n*257), p[at:at+n]), bitwise(uint16(n*257), p[at:at+n]); got != want {
			t.Fatalf("%d bytes: got %04x, want %04x", n, got, want)
		}
	}
}

func BenchmarkChecksum(b *testing.B) {
	for _, size := range []int{8, 64, 512, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			p := make([]byte, size)
			for i := range p {
				p[i] = byte(i * 7)
			}
			b.SetBytes(int64(size))
			for b.Loop() {
				Checksum(p)
			}
		})
	}
}
