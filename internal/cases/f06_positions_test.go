// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/internal/interop"
)

// F-06: twenty records of the SeaStreamer client, read from each kind of start;
// then one more is written. The header stream-sequence is the true number. A
// sequence beyond the next one is refused at the start.
func TestF06Positions(t *testing.T) {
	t.Parallel()
	const records = 20
	var payloads []string
	for i := range records {
		payloads = append(payloads, fmt.Sprint("record ", i+1))
	}
	path := streamFile(t, 1024, payloads...)
	times := map[uint64]int64{}
	for _, r := range interop.Dump(t, path).Records {
		times[r.Sequence] = r.Time
	}
	from := func(n uint64) []uint64 {
		var out []uint64
		for ; n <= records+1; n++ {
			out = append(out, n)
		}
		return out
	}
	later := uint64(8) // the first strictly later than number 7
	for times[later] == times[7] {
		later++
	}
	type reading struct {
		got  *readers
		want []uint64
		s    *service
	}
	readings := map[string]reading{}
	for start, want := range map[string][]uint64{
		"beginning":                          from(1),
		"end":                                from(21),
		"":                                   from(21),
		"sequence 0":                         from(1),
		"sequence 1":                         from(1),
		"sequence 7":                         from(7),
		"sequence 21":                        from(21),
		fmt.Sprint("timestamp ", times[7]):   from(later),
		fmt.Sprint("timestamp ", times[1]-1): from(1),
		"timestamp 2001-01-01T00:00:00Z":     from(1),
	} {
		options := map[string]any{}
		if start != "" {
			options["start"] = start
		}
		s := newService(t)
		got := s.reads(s.file(path), "orders", options, ack)
		s.serve()
		readings[start] = reading{got, want, s}
	}
	refused := newService(t)
	refused.reads(refused.file(path), "orders", map[string]any{"start": "sequence 99"}, ack)
	refused.start()
	if err := refused.ends(); err == nil || !strings.Contains(err.Error(), "orders") || !strings.Contains(err.Error(), "99") {
		t.Errorf("sequence 99: the host ends with %v, want an error with subscription and sequence", err)
	}
	interop.Write(t, path, interop.WriteOptions{}, interop.Record{Key: "orders", Payload: interop.Bytes("record 21")})
	for start, r := range readings {
		eventually(t, "the new record is handled", func() bool {
			seen := r.got.sequences()
			return len(seen) > 0 && seen[len(seen)-1] == records+1
		})
		if got := r.got.sequences(); !slices.Equal(got, r.want) {
			t.Errorf("start %q: %v, want %v", start, got, r.want)
		}
		for _, d := range r.got.all() {
			if d.payload != fmt.Sprint("record ", d.sequence) {
				t.Errorf("start %q: record %d is %q", start, d.sequence, d.payload)
			}
		}
		r.s.stops()
	}
}
