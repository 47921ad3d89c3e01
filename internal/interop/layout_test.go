// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Files of the client have the layout that tests hold longshore's to.
func TestLayoutOfTheClientsFiles(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 78))
			path := filepath.Join(t.TempDir(), "random.ss")
			interval := uint32(1024 * (1 + r.IntN(8)))
			for range 1 + r.IntN(3) {
				var records []Record
				for range 1 + r.IntN(40) {
					records = append(records, Record{Key: fmt.Sprintf("key-%d", r.IntN(9)), Payload: make(Bytes, r.IntN(1<<r.IntN(14)))})
				}
				Write(t, path, WriteOptions{Interval: interval}, records...)
			}
			offsets, err := Dump(t, path).Layout()
			if err != nil {
				t.Fatal(err)
			}
			size := offsets[len(offsets)-1]
			text, err := os.ReadFile(path)
			if whole := Whole(text); err != nil || !slices.Equal(whole, offsets) {
				t.Errorf("whole records at %v, by the layout at %v (%v)", whole, offsets, err)
			}
			for range 20 { // cut anywhere
				cut := r.Int64N(size)
				whole := Whole(text[:cut])
				if n := len(whole); n > 0 && (whole[n-1] > cut || !slices.Equal(whole, offsets[:n]) && whole[n-1] != offsets[n-1]-offsets[n-1]%int64(interval)) {
					t.Errorf("cut at %d: whole records at %v", cut, whole)
				}
			}
			if info, err := os.Stat(path); err != nil || info.Size() != size {
				t.Errorf("%d bytes by the layout, %v (%v)", size, info.Size(), err)
			}
		})
	}
}

// A layout that is wrong is told.
func TestLayoutIsChecked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "orders.ss")
	Write(t, path, WriteOptions{Interval: 1024}, Record{Key: "orders", Payload: make(Bytes, 3000)}, Record{Key: "orders"})
	for name, spoil := range map[string]func(c *Content){
		"a beacon is missing":   func(c *Content) { c.Beacons = c.Beacons[:1] },
		"a beacon too many":     func(c *Content) { c.Beacons = append(c.Beacons, Beacon{Number: 9}) },
		"remaining bytes":       func(c *Content) { c.Beacons[1].Remaining++ },
		"sequence of a marker":  func(c *Content) { c.Beacons[1].Markers[0].Sequence++ },
		"a key that is not yet": func(c *Content) { c.Beacons[1].Markers[0].Key = "later" },
		"too many markers": func(c *Content) {
			c.Beacons[1].Markers = append(c.Beacons[1].Markers, Marker{Key: "orders", Sequence: 1})
		},
	} {
		c := Dump(t, path)
		if _, err := c.Layout(); err != nil {
			t.Fatal(err)
		}
		spoil(&c)
		if _, err := c.Layout(); err == nil {
			t.Errorf("%s: not told", name)
		}
	}
}
