// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
)

const countHeader = "x-ruststream-retry-count"

// oddCounts are count headers that somebody else has set, with how they are
// read (reference 1.4): what is there and is no number is 0, with one warning.
var oddCounts = []struct {
	name    string
	headers core.Headers
	count   uint64
	warned  bool
}{
	{"abc", countOf("abc"), 0, true},
	{"-1", countOf("-1"), 0, true},
	{"0", countOf("0"), 0, false},
	{"blanks", countOf(" 2 "), 0, true},
	{"1.5", countOf("1.5"), 0, true},
	{"2^64", countOf("18446744073709551616"), 0, true},
	{"2^64-1", countOf("18446744073709551615"), 1<<64 - 1, false},
	{"empty", countOf(""), 0, true},
	{"twice", core.Headers{{Name: countHeader, Value: []byte("1")}, {Name: countHeader, Value: []byte("5")}}, 5, false},
	{"upper-case", core.Headers{{Name: strings.ToUpper(countHeader), Value: []byte("2")}}, 2, false},
	{"bytes", countOf("\xff\xfe"), 0, true},
	{"good", countOf("1"), 1, false},
}

func countOf(value string) core.Headers {
	return core.Headers{{Name: countHeader, Value: []byte(value)}}
}

// E-04: an odd count header neither crashes nor loops: each message ends after
// three runs at most, and a bad value is warned of once.
func TestE04OddCountHeader(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := newService(t)
	set := b.Settings
	for _, k := range kinds {
		set = set.With("orders-"+k.name, k.caps)
	}
	in := b.attach(s, "mem", set)
	runs := newTally()
	for _, k := range kinds {
		name := "orders-" + k.name
		host.Handle(in.Subscription(name), func(_ context.Context, m *host.Message[[]byte]) error {
			runs.ran(name+" "+string(m.Value), m.Attempt())
			return host.Retry(nil)
		}, append(backTo(in, name, k.caps), host.MaxAttempts(3), host.DeadLetterTo(in.To("dead-"+k.name)))...)
		for _, c := range oddCounts {
			b.Publish(name, memory.Message{Payload: []byte(c.name), Headers: c.headers})
		}
	}
	s.serve()
	for _, k := range kinds {
		b.must(b.WaitPublished(b.ctx, "dead-"+k.name, len(oddCounts)))
	}
	b.must(b.WaitIdle(b.ctx, names("orders-")...))
	s.stops()
	for _, k := range kinds {
		name := "orders-" + k.name
		warnings := 0
		dead := map[string]memory.Message{}
		for _, m := range b.Published("dead-" + k.name) {
			dead[string(m.Payload)] = m
		}
		for _, c := range oddCounts {
			first := c.count + 1
			if c.count == 1<<64-1 {
				first = c.count
			}
			if !copies(k.caps) {
				first = 1 // it counts by itself
			}
			var want []uint64
			for n := first; n < 3; n++ {
				want = append(want, n)
			}
			want = append(want, max(first, 3))
			if diff := cmp.Diff(want, runs.attempts(name+" "+c.name)); diff != "" {
				t.Errorf("%s, %s: attempts (-want +got):\n%s", k.name, c.name, diff)
			}
			if c.warned {
				warnings++
			}
			// One count, in whatever spelling, whatever came in.
			count := max(first, 3)
			if !copies(k.caps) {
				if count = c.count; count != 1<<64-1 {
					count++
				}
			}
			var got []string
			for _, h := range dead[c.name].Headers {
				if strings.EqualFold(h.Name, countHeader) {
					got = append(got, string(h.Value))
				}
			}
			if diff := cmp.Diff([]string{strconv.FormatUint(count, 10)}, got); diff != "" {
				t.Errorf("%s, %s: counts of the dead letter (-want +got):\n%s", k.name, c.name, diff)
			}
		}
		lines := s.log.of("L-COUNT", name)
		if len(lines) != warnings && copies(k.caps) {
			t.Errorf("%s: %d warnings of bad counts, want %d: %v", k.name, len(lines), warnings, lines)
		}
		if i := slices.IndexFunc(lines, func(l line) bool { return l.text("level") != "WARN" || l["value"] == nil }); i >= 0 {
			t.Errorf("%s: line %v", k.name, lines[i])
		}
		if a := b.Account(name); a.Acked+a.Sent != a.Published || a.Lost != 0 {
			t.Errorf("%s: %v", name, a)
		}
	}
}
