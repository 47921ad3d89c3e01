// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/longshore-go/longshore/cmd/longshore/internal/term"
	"github.com/longshore-go/longshore/internal/conform"
	"github.com/longshore-go/longshore/internal/conform/card"
)

// progress writes a line for each case that has ended.
type progress struct {
	to    io.Writer // nil = nobody
	style term.Style
	width int   // of the longest id
	err   error // the first one; nothing is written behind it
}

// shownFaults is how many faults of a case are shown; cards hold all.
const shownFaults = 5

// asideProgress is the progress of a run whose output is a card: on standard
// error, where somebody watches it.
func (a *App) asideProgress() *progress {
	f, ok := a.Err.(*os.File)
	if !ok || !term.Is(f) {
		return &progress{}
	}
	return &progress{to: f, style: term.For(f, a.Lookup), width: longestCase()}
}

// longestCase is the length of the longest id.
func longestCase() int {
	n := 0
	for _, c := range conform.Cases() {
		n = max(n, len(c.ID))
	}
	return n
}

// result writes what became of one case.
func (p *progress) result(r *conform.Result) error {
	if p.to == nil || p.err != nil {
		return p.err
	}
	word, paint, about := "-", p.style.Faint, string(r.Status)+": "+card.OneLine(r.Reason)
	switch r.Status {
	case conform.Passed:
		word, paint, about = "ok", p.style.Green, shortTime(r.Time)
	case conform.Failed:
		word, paint, about = "FAIL", p.style.Red, shortTime(r.Time)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%*s%-*s  %s\n", paint(word), len("FAIL  ")-len(word), "", p.width, r.Case, about)
	for i, f := range r.Faults {
		if i == shownFaults && len(r.Faults) > shownFaults+1 {
			fmt.Fprintf(&b, "      and %d more\n", len(r.Faults)-i)
			break
		}
		fmt.Fprintf(&b, "      %s\n", card.OneLine(f))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "      %s\n", p.style.Faint("note: "+card.OneLine(n)))
	}
	for _, l := range r.Log {
		fmt.Fprintf(&b, "      %s\n", p.style.Faint("log: "+card.OneLine(l)))
	}
	_, p.err = io.WriteString(p.to, b.String())
	return p.err
}

// listedCase is a case as --list shows it.
type listedCase struct {
	ID      string `json:"id"`
	Claim   string `json:"claim"`
	Section string `json:"section,omitempty"` // of docs/protocol.md
}

// listCases writes the cases that only lets through; nil lets all.
func (a *App) listCases(only func(id string) bool, output string) error {
	all, width := []listedCase{}, longestCase()
	var text strings.Builder
	for _, c := range conform.Cases() {
		if only == nil || only(c.ID) {
			all = append(all, listedCase{ID: c.ID, Claim: c.Claim, Section: c.Section})
			fmt.Fprintf(&text, "%-*s  %s\n", width, c.ID, c.Claim)
		}
	}
	switch output {
	case "json":
		return writeJSON(a.Out, all)
	case "markdown":
		return &usageError{"longshore conform", errors.New("--list is for --output text or json")}
	}
	if _, err := io.WriteString(a.Out, text.String()); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// shortTime is a time as people read it.
func shortTime(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(d.Milliseconds(), 1))
	case d < 100*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
