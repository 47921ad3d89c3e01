// SPDX-License-Identifier: Apache-2.0

// Package rows reads the settlement rows: the table of what each outcome does
// on each kind of source, in the language that it is written in. Tests run its
// rows against decisions and against the executor.
package rows

import (
	"fmt"
	"os"
	"strings"
)

// Row is one line of rows.tsv.
type Row struct {
	ID          string
	Table       string // number of the table it stands in
	Source      string
	Declaration string
	Outcome     string
	Attempt     string
	Expected    string
}

// columns is the number of cells of a line; the last two are remarks.
const columns = 9

// Read returns the rows of the file at path.
func Read(path string) ([]Row, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	var out []Row
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		f := strings.Split(line, "\t")
		if len(f) != columns {
			return nil, fmt.Errorf("read rows: line %d of %s has %d columns, want %d", i+1, path, len(f), columns)
		}
		if i > 0 {
			out = append(out, Row{f[0], f[1], f[2], f[3], f[4], f[5], f[6]})
		}
	}
	return out, nil
}
