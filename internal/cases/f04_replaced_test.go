// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// F-04: the file of a live subscription is written anew in place, shorter or
// longer than it was, or renamed away and made again: the subscription says what
// happened and handles the five new records.
func TestF04FileShrinksOrIsReplaced(t *testing.T) {
	t.Parallel()
	records := func(size int) []string {
		var out []string
		for i := range 5 {
			out = append(out, string(body(fmt.Sprint("new-", i), size)))
		}
		return out
	}
	old := []string{"old", strings.Repeat("o", 2000), "old"}
	for name, tt := range map[string]struct {
		size   int
		change func(s *service, path, made string) error
		says   []string // one of them: the reader may see a file between two changes
	}{
		"truncated and shorter": {20, written, []string{"shrunk", "replaced"}},
		"truncated and longer":  {1000, written, []string{"shrunk", "replaced"}},
		"truncated and later written": {1000, func(s *service, path, made string) error {
			if err := os.Truncate(path, 0); err != nil {
				return err
			}
			eventually(s.t, "it is told", func() bool { return len(s.reports()) > 0 })
			return written(s, path, made)
		}, []string{"shrunk"}},
		"replaced": {20, func(_ *service, path, made string) error {
			if err := os.Rename(path, path+".away"); err != nil {
				return err
			}
			return os.Rename(made, path)
		}, []string{"replaced"}},
		"replaced at once": {1000, func(_ *service, path, made string) error { return os.Rename(made, path) }, []string{"replaced"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, made := streamFile(t, 0, old...), streamFile(t, 0, records(tt.size)...)
			got, s := follows(t, path, "orders")
			if err := tt.change(s, path, made); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the five records are handled", func() bool { return len(got.all()) >= 5 })
			for i, d := range got.all() {
				if want := fmt.Sprint("new-", i); nameOf([]byte(d.payload)) != want || d.sequence != uint64(i+1) {
					t.Errorf("record %d is %s with sequence %d", i+1, nameOf([]byte(d.payload)), d.sequence)
				}
			}
			eventually(t, "it is told", func() bool { return len(s.reports()) > 0 })
			said := s.reports()
			says := func(word string) bool { return strings.Contains(said[0].text("error"), word) }
			if len(said) != 1 || !slices.ContainsFunc(tt.says, says) || !says(path) {
				t.Errorf("it says %v, want one of %q and the path", said, tt.says)
			}
			s.stops()
		})
	}
}

// written truncates a file to zero and writes another's content into it.
func written(_ *service, path, made string) error {
	text, err := os.ReadFile(made)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0)
}
