// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"errors"
	"fmt"
	"testing"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/interop"
)

// F-07: ten records that always fail, cap 3, dead letters in the same file,
// replayed three times. Each delivery leaves one record more: a copy with the next
// attempt below the cap, a dead letter at it. Copies that are found in the file
// go on where they were, and no run reads its dead letters.
func TestF07ReplayAgain(t *testing.T) {
	t.Parallel()
	const (
		originals = 10
		most      = 3
	)
	var payloads []string
	for i := range originals {
		payloads = append(payloads, fmt.Sprint("order-", i))
	}
	path := streamFile(t, 0, payloads...)
	count := func(key string) int {
		n := 0
		for _, r := range interop.Dump(t, path).Records {
			if r.Key == key {
				n++
			}
		}
		return n
	}
	// What a run begins with, by the attempt that its delivery is.
	before := [most + 1]int{1: originals}
	dead := 0
	for run := range 3 {
		s := newService(t)
		e := s.file(path)
		got := s.reads(e, "orders", map[string]any{"replay": true},
			func() error { return host.Retry(errors.New("told to")) },
			host.MaxAttempts(most), host.DeadLetterTo(e.To("dlq")))
		s.start()
		if err := s.ends(); err != nil {
			t.Fatalf("run %d ended with %v", run+1, err)
		}
		var handled [most + 1]int
		runs := map[string]int{}
		for _, d := range got.all() {
			if d.attempt < 1 || d.attempt > most {
				t.Fatalf("run %d: attempt %d of record %d", run+1, d.attempt, d.sequence)
			}
			handled[d.attempt]++
			runs[d.payload]++
		}
		for a := 1; a <= most; a++ {
			if handled[a] < before[a] {
				t.Errorf("run %d handled %d deliveries of attempt %d, %d were in the file", run+1, handled[a], a, before[a])
			}
		}
		// Whether a run reads its own copies is a race with the end of the file,
		// which does not change what each delivery leaves.
		after := before
		for a := 1; a < most; a++ {
			after[a+1] += handled[a]
		}
		dead += handled[most]
		orders := 0
		for _, n := range after {
			orders += n
		}
		if n := count("orders"); n != orders {
			t.Errorf("run %d: the file has %d records of orders, want %d", run+1, n, orders)
		}
		if n := count("dlq"); n != dead {
			t.Errorf("run %d: the file has %d dead letters, want %d", run+1, n, dead)
		}
		if run == 0 {
			for payload, n := range runs {
				if n > most { // two copies and a dead letter
					t.Errorf("the first run handled %s %d times", payload, n)
				}
			}
		}
		before = after
	}
	if dead == 0 {
		t.Error("no copy came to the cap")
	}
}
