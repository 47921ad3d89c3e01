// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// F-05: one bit of record 40 of 100 is wrong. It is never handled; what is wrong
// is said once, with offset and sequence. Of a bad payload that record alone is
// missing; behind a bad length reading goes on at the next beacon.
func TestF05BadByte(t *testing.T) {
	t.Parallel()
	const (
		records = 100
		bad     = 40
		key     = len("orders")
		size    = 70            // record 40 is cut by no beacon then
		length  = 1 + key + 3*8 // where in a record its length stands
	)
	for name, tt := range map[string]struct {
		interval uint32
		at, bit  int // in the record
	}{
		"payload":                         {1 << 20, length + 4 + 10, 0},
		"payload with beacons":            {1024, length + 4 + 10, 7},
		"length far too long":             {1024, length, 7},
		"length a little too long":        {1024, length + 3, 7},
		"length too short":                {1024, length + 3, 5},
		"length with no beacon behind":    {1 << 20, length, 7},
		"length of the key":               {1024, 0, 3},
		"the byte that closes the record": {1024, length + 4 + size + 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var payloads []string
			for i := range records {
				payloads = append(payloads, string(body(fmt.Sprint("record-", i+1), size)))
			}
			path := streamFile(t, tt.interval, payloads...)
			at, text := offsets(t, path), content(t, path)
			begin := at[bad-1]
			if at[bad]-begin != int64(length+4+size+3) {
				t.Fatalf("record %d is cut by a beacon", bad)
			}
			text[begin+int64(tt.at)] ^= 1 << tt.bit
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			goesOn := at[bad]
			if !strings.HasPrefix(name, "payload") {
				goesOn = (begin/int64(tt.interval) + 1) * int64(tt.interval)
			}
			var want []uint64
			for i := range records {
				if i < bad-1 || at[i] >= goesOn {
					want = append(want, uint64(i+1))
				}
			}
			got, s := replays(t, path, "orders")
			if !slices.Equal(got.sequences(), want) {
				t.Errorf("handled %v, want %v", got.sequences(), want)
			}
			for _, d := range got.all() {
				if name := nameOf([]byte(d.payload)); name != fmt.Sprint("record-", d.sequence) {
					t.Errorf("record %d is %s", d.sequence, name)
				}
			}
			said := s.reports()
			if len(said) != 1 {
				t.Fatalf("it reports %v, want one", said)
			}
			for _, part := range []string{fmt.Sprint(begin), path} {
				if !strings.Contains(fmt.Sprint(said[0]), part) {
					t.Errorf("it reports %v, which does not name %s", said[0], part)
				}
			}
			if tt.at > 0 && !strings.Contains(said[0].text("error"), fmt.Sprint(bad)) {
				t.Errorf("it reports %v, which does not name the sequence", said[0])
			}
		})
	}
}
