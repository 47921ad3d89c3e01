// SPDX-License-Identifier: Apache-2.0

package format

import (
	"errors"
	"fmt"
)

// Beacon is the length of the beacon that b begins with, and what it says of the
// record it cuts. What its markers say is not looked at. The error is a
// *ShortError or a *BeaconError.
func (p *Parser) Beacon(b []byte) (size int, left uint32, err error) {
	if len(b) >= beaconHead && b[0] == closing {
		if n, most := int(b[beaconHead-1]), Slots(p.Interval); n > most {
			return 0, 0, &BeaconError{Reason: fmt.Sprintf("%d markers, at most %d fit", n, most)}
		}
	}
	if size, err = beaconLen(b); err != nil {
		return 0, 0, err
	}
	return size, remaining(b), nil
}

// pass is the length of the beacon at the boundary off.
func (p *Parser) pass(b []byte, off int64) (int, error) {
	size, left, err := p.Beacon(b)
	if err != nil {
		return 0, beaconDamage(err, off)
	}
	if left != 0 {
		return 0, &DamageError{
			Offset: off,
			Reason: fmt.Sprintf("a beacon says that %d bytes of a record follow where none was cut", left),
		}
	}
	return size, nil
}

// beaconDamage is the error of a beacon at the offset given; a *ShortError
// stays what it is.
func beaconDamage(err error, off int64) error {
	if bad, ok := errors.AsType[*BeaconError](err); ok {
		return &DamageError{Offset: off, Reason: bad.Error()}
	}
	return err
}

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
	size, left, err := p.Beacon(b)
	if err != nil {
		return 0, false, beaconDamage(err, place)
	}
	off = place + int64(size) + int64(left)
	return off, off <= place+int64(p.Interval), nil
}
