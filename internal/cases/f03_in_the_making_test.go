// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// F-03: a record of 300 KiB comes in seven pieces, one of which ends at the place
// of a beacon and one within it: one delivery, after the last piece, and nothing
// is said of damage.
func TestF03RecordInTheMaking(t *testing.T) {
	t.Parallel()
	const (
		interval = 64 << 10
		pause    = 400 * time.Millisecond // of the case: longer than a reader's wake
	)
	made := streamFile(t, interval, "before", string(body("large", 300<<10)), "behind")
	at, text := offsets(t, made), content(t, made)
	begin, end := at[1], at[2]
	path := filepath.Join(t.TempDir(), "orders.ss")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write := func(from, to int64) {
		t.Helper()
		if _, err := f.Write(text[from:to]); err != nil {
			t.Fatal(err)
		}
	}
	write(0, begin)
	got, s := follows(t, path, "orders")
	from := begin
	for _, to := range []int64{begin + 3, begin + 40, interval, 2*interval + 9, 3 * interval, 3*interval + 50, end} {
		if n := len(got.all()); n > 0 {
			t.Fatalf("%d deliveries with the record written up to %d of %d", n, from, end)
		}
		write(from, to)
		from = to
		if to < end {
			time.Sleep(pause)
		}
	}
	eventually(t, "the record is delivered", func() bool { return len(got.all()) > 0 })
	write(end, int64(len(text)))
	eventually(t, "the record behind it is delivered", func() bool { return len(got.all()) > 1 })
	if d := got.all(); len(d) != 2 || d[0].sequence != 2 || nameOf([]byte(d[0].payload)) != "large" || d[1].payload != "behind" {
		t.Errorf("%d deliveries, the first of sequence %d is %s", len(d), d[0].sequence, nameOf([]byte(d[0].payload)))
	}
	s.stops()
	if reports := s.reports(); len(reports) > 0 {
		t.Errorf("it reports %v", reports)
	}
}
