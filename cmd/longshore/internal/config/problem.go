// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong in a file.
type Problem struct {
	Position
	Path    string // such as "subscriptions[0].retry_to.to"; "" = the whole file
	Message string // what is wrong
	Fix     string // what to do
}

// Error is everything that is wrong with a file, in its order.
type Error struct {
	File     string
	Problems []Problem
}

// Error writes a line for each problem: file:line:column, the field path, what
// is wrong and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.In(e.File))
	}
	return b.String()
}

// In returns the problem as one line, as Error writes it.
func (p Problem) In(file string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", file, p.Line, p.Column)
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Fix != "" {
		b.WriteString("; " + p.Fix)
	}
	return b.String()
}

// sortProblems puts problems into the order of the file.
func sortProblems(ps []Problem) {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), strings.Compare(a.Path, b.Path))
	})
}
