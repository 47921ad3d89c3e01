// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	_ "embed" // the lines
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// bundled are airports as a pipe carries them: key, number and a JSON object.
// Codes, cities and elevations are the real ones. A few lines are broken on
// purpose.
//
//go:embed lines.txt
var bundled string

// feed returns the lines, each with its line end.
func feed() []string { return slices.Collect(strings.Lines(bundled)) }

// write writes lines at a pace until all are written or ctx ends.
func write(ctx context.Context, w io.Writer, lines []string, pace time.Duration, s *screen) error {
	var tick <-chan time.Time
	if pace > 0 {
		t := time.NewTicker(pace)
		defer t.Stop()
		tick = t.C
	}
	for _, line := range lines {
		if tick != nil {
			select {
			case <-tick:
			case <-ctx.Done():
				return nil
			}
		}
		if _, err := io.WriteString(w, line); err != nil {
			return fmt.Errorf("feed lines: %w", err)
		}
		s.count(func(c *counts) { c.fed++ })
	}
	return nil
}
