// SPDX-License-Identifier: Apache-2.0

package format

// NextPlace is the first place of a beacon at or behind the file offset off.
func NextPlace(off int64, interval uint32) int64 {
	n := int64(interval)
	return max(n, (off+n-1)/n*n)
}

// Boundary says where reading goes on at a beacon, after damage. b begins at
// the file offset place, which is a beacon's ([NextPlace] of the damage). The
// result is the file offset of a record's beginning, or of the next beacon's
// place if a record ends there, for [Parser.Next].
//
// ok is false where no record begins before the next beacon's place: look
// there. The error is a *ShortError, or a *DamageError where no beacon stands
// at place: look at the next one then, too.
func (p *Parser) Boundary(b []byte, place int64) (off int64, ok bool, err error) {
	size, err := p.beaconLen(b)
	if err != nil {
		return 0, false, beaconDamage(err, place)
	}
	off = place + int64(size) + int64(remaining(b))
	return off, off <= place+int64(p.Interval), nil
}
