// SPDX-License-Identifier: Apache-2.0

package format

// The checksum is CRC-16/CDMA2000: not reflected, nothing xored at the end.
const (
	// NoChecksum is the checksum of nothing, and where running checksums begin.
	NoChecksum = 0xffff

	polynomial = 0xc867
	// sliced is how many bytes one step of extend takes.
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
	crc, p = extendLong(crc, p)
	return extend(crc, p)
}

// extend is Extend by look-ups.
func extend(crc uint16, p []byte) uint16 {
	t := tables
	for len(p) >= sliced {
		// Only the first two bytes depend on the step before: they come last, so that
		// the other look-ups need not wait.
		rest := t[13][p[2]] ^ t[12][p[3]] ^ t[11][p[4]] ^ t[10][p[5]] ^ t[9][p[6]] ^ t[8][p[7]] ^
			t[7][p[8]] ^ t[6][p[9]] ^ t[5][p[10]] ^ t[4][p[11]] ^ t[3][p[12]] ^ t[2][p[13]] ^ t[1][p[14]] ^ t[0][p[15]]
		crc = rest ^ t[15][p[0]^byte(crc>>8)] ^ t[14][p[1]^byte(crc)]
		p = p[sliced:]
	}
	if len(p) >= sliced/2 {
		rest := t[5][p[2]] ^ t[4][p[3]] ^ t[3][p[4]] ^ t[2][p[5]] ^ t[1][p[6]] ^ t[0][p[7]]
		crc = rest ^ t[7][p[0]^byte(crc>>8)] ^ t[6][p[1]^byte(crc)]
		p = p[sliced/2:]
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
