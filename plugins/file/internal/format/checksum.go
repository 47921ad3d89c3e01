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
		hi ^= uint64(crc) << 48
		crc = t[15][hi>>56] ^ t[14][hi>>48&0xff] ^ t[13][hi>>40&0xff] ^ t[12][hi>>32&0xff] ^
			t[11][hi>>24&0xff] ^ t[10][hi>>16&0xff] ^ t[9][hi>>8&0xff] ^ t[8][hi&0xff] ^
			t[7][lo>>56] ^ t[6][lo>>48&0xff] ^ t[5][lo>>40&0xff] ^ t[4][lo>>32&0xff] ^
			t[3][lo>>24&0xff] ^ t[2][lo>>16&0xff] ^ t[1][lo>>8&0xff] ^ t[0][lo&0xff]
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
