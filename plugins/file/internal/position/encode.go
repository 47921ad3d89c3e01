// SPDX-License-Identifier: Apache-2.0

package position

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// The kinds of changes.
const (
	changeDeliver = 1
	changeAgain   = 2
	changeSettled = 3
	changeMoved   = 4
)

// Sizes of the format.
const (
	slotHead   = 20
	changeHead = 8
)

var slotMagic = [4]byte{'l', 's', 'p', 's'}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendEntry writes an unsettled record, measured from the one before.
func appendEntry(b []byte, from, p Place, count uint32) []byte {
	head := uint64(count) << 1
	if p.Created != from.Created {
		b = binary.AppendUvarint(b, head|1)
		b = binary.AppendVarint(b, p.Created-from.Created)
	} else {
		b = binary.AppendUvarint(b, head)
	}
	return binary.AppendVarint(b, p.Offset-from.Offset)
}

// appendDistance writes where to is, seen from from.
func appendDistance(b []byte, from, to Place) []byte {
	b = binary.AppendVarint(b, to.Created-from.Created)
	return binary.AppendVarint(b, to.Offset-from.Offset)
}

// appendRuns writes numbers, which it sorts.
func appendRuns(b []byte, ids []uint32) []byte {
	slices.Sort(ids)
	runs := 0
	for i, id := range ids {
		if i == 0 || id != ids[i-1]+1 {
			runs++
		}
	}
	b = binary.AppendUvarint(b, uint64(runs))
	end := uint32(0)
	for i := 0; i < len(ids); {
		n := 1
		for i+n < len(ids) && ids[i+n] == ids[i]+uint32(n) {
			n++
		}
		b = binary.AppendUvarint(b, uint64(ids[i]-end))
		b = binary.AppendUvarint(b, uint64(n))
		end = ids[i] + uint32(n)
		i += n
	}
	return b
}

// appendState writes a state but for its entries, of which there are n.
func appendState(b []byte, s *state, n int) []byte {
	b = appendDistance(b, Place{}, s.next)
	if s.hasLast {
		b = append(b, 1)
		b = appendDistance(b, Place{}, s.last.Place)
		b = binary.AppendUvarint(b, s.last.Sequence)
		b = binary.AppendVarint(b, s.last.Time)
	} else {
		b = append(b, 0)
	}
	return binary.AppendUvarint(b, uint64(n))
}

// sealSlot fills in the head of a slot, whose state follows it in b, and returns
// its checksum.
func sealSlot(b []byte, counter uint64) uint32 {
	copy(b, slotMagic[:])
	binary.BigEndian.PutUint64(b[4:], counter)
	binary.BigEndian.PutUint32(b[12:], uint32(len(b)-slotHead))
	sum := slotSum(b)
	binary.BigEndian.PutUint32(b[16:], sum)
	return sum
}

func slotSum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[4:16], castagnoli), castagnoli, b[slotHead:])
}

// sealChange fills in the head of a change, which follows it in b, and returns
// its checksum. That covers the one before, so that no change is taken for one of
// another state.
func sealChange(b []byte, before uint32) uint32 {
	sum := changeSum(b[changeHead:], before)
	binary.BigEndian.PutUint32(b, uint32(len(b)-changeHead))
	binary.BigEndian.PutUint32(b[4:], sum)
	return sum
}

func changeSum(body []byte, before uint32) uint32 {
	var seed [4]byte
	binary.BigEndian.PutUint32(seed[:], before)
	return crc32.Update(crc32.Checksum(seed[:], castagnoli), castagnoli, body)
}
