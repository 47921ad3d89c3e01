// SPDX-License-Identifier: Apache-2.0

package format

import "encoding/binary"

// The checksum is CRC-16/CDMA2000: not reflected, nothing xored at the end.
const (
	// NoChecksum is the checksum of nothing, and where running checksums begin.
	NoChecksum = 0xffff

	polynomial = 0xc867
	// sliced is how many bytes one step of Extend takes.
	sliced = 16
)

// tables[i][b] is the checksum, begun with zero, of the byte b and i zero bytes
// behind it.
var tables = func() *[sliced][256]uint16 {
	var t [sliced][256]uint16
	for b := range 256 {
		crc := uint16(b) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			if crc <<= 1; carry {
				crc ^= polynomial
			}
		}
		t[0][b] = crc
	}
	for i := 1; i < sliced; i++ {
		for b, crc := range t[i-1] {
			t[i][b] = crc<<8 ^ t[0][crc>>8]
		}
	}
	return &t
}()

// Checksum is the checksum of a record with payload p.
func Checksum(p []byte) uint16 { return Extend(NoChecksum, p) }

// Extend is the checksum of what crc is the checksum of and p behind it.
func Extend(crc uint16, p []byte) uint16 {
	t := tables
	for len(p) >= sliced {
		hi, lo := binary.BigEndian.Uint64(p), binary.BigEndian.Uint64(p[8:])
		// Only the first two bytes depend on the step before: they come last, so that
		// the other look-ups need not wait.
		rest := t[13][byte(hi>>40)] ^ t[12][byte(hi>>32)] ^
			t[11][byte(hi>>24)] ^ t[10][byte(hi>>16)] ^ t[9][byte(hi>>8)] ^ t[8][byte(hi)] ^
			t[7][byte(lo>>56)] ^ t[6][byte(lo>>48)] ^ t[5][byte(lo>>40)] ^ t[4][byte(lo>>32)] ^
			t[3][byte(lo>>24)] ^ t[2][byte(lo>>16)] ^ t[1][byte(lo>>8)] ^ t[0][byte(lo)]
		crc ^= uint16(hi >> 48)
		crc = rest ^ t[15][crc>>8] ^ t[14][byte(crc)]
		p = p[sliced:]
	}
	for _, b := range p {
		crc = crc<<8 ^ t[0][byte(crc>>8)^b]
	}
	return crc
}

// Running is a key's running checksum after a record with the checksum given.
// It begins with NoChecksum.
func Running(running, checksum uint16) uint16 {
	return Extend(running, []byte{byte(checksum >> 8), byte(checksum)})
}
