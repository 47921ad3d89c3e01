// SPDX-License-Identifier: Apache-2.0

package index

import "github.com/longshore-go/longshore/plugins/file/internal/format"

// rest reports whether what stands from begin on to the end of the file is what
// a writer left that does not cut off what it writes over. The reference writes
// the next record over an end mark; where that stood behind a beacon at a
// boundary, it writes over the beacon too, first another one without markers.
func (f *file) rest(begin int64) (bool, error) {
	const longest = 1 << 17 // more than a beacon and a mark can be
	if f.size-begin > longest {
		return false, nil
	}
	region, err := f.bytes(begin, longest, ahead)
	if err != nil {
		return false, err
	}
	region = region[:min(int64(len(region)), f.size-begin)]
	if format.EndRest(region) {
		return true, nil
	}
	place := begin / f.interval() * f.interval()
	if place == 0 {
		return false, nil
	}
	b, _, ok, err := f.beacon(place)
	if err != nil || !ok || len(b.Markers) > 0 || b.Remaining > 0 {
		return false, err
	}
	if region, err = f.bytes(begin, longest, ahead); err != nil {
		return false, err
	}
	region = region[:min(int64(len(region)), f.size-begin)]
	if n := len(region) - format.EndLen; n >= 0 {
		var mark format.Record
		whole := format.Parser{Interval: format.DefaultInterval}
		if _, err := whole.Next(region[n:], format.HeaderSize, &mark); err == nil && mark.IsEnd() {
			region = region[:n]
		}
	}
	return int64(len(region)) < f.interval() && format.BeaconRest(region), nil
}
