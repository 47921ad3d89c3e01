// SPDX-License-Identifier: Apache-2.0

package core

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
)

// Table is what Explain says of one registration: a row for each outcome and
// class of attempts. It prints as text, as Markdown and as JSON.
type Table struct {
	Endpoint     string    `json:"endpoint,omitempty"` // for the heading; set by the caller
	Subscription string    `json:"subscription,omitempty"`
	Policy       string    `json:"policy"`
	Forward      string    `json:"forward,omitempty"`     // where messages are forwarded to before their ack
	Reply        string    `json:"reply,omitempty"`       // where replies go before the ack
	Publishes    []string  `json:"publishes,omitempty"`   // where publishes go that leave before the ack
	Copies       string    `json:"copies,omitempty"`      // where copies go, and what a receipt is worth there; "" = no row makes one
	DeadLetter   string    `json:"dead_letter,omitempty"` // the same of dead letters
	Profiles     []Profile `json:"profiles"`
	Findings     []Finding `json:"findings,omitempty"`
}

// Profile is the part of a table about one capability set.
type Profile struct {
	Source   string `json:"source"`   // the capabilities in words
	Delivery string `json:"delivery"` // what a crash does to what is in work
	Counts   string `json:"counts"`   // who counts
	Rows     []Row  `json:"rows"`
}

// Row is one outcome at one class of attempts.
type Row struct {
	Outcome  string       `json:"outcome"`
	Attempt  string       `json:"attempt"` // "any", or classes such as "first, below cap"
	Plan     string       `json:"plan"`    // the steps, in the language of the settlement reference
	Copy     string       `json:"copy,omitempty"`
	Order    string       `json:"order"`
	Ends     Ending       `json:"ends"` // where nothing fails
	Notes    []string     `json:"notes,omitempty"`
	Steps    []RowStep    `json:"steps"`
	Failures []RowFailure `json:"failures,omitempty"`
}

// RowStep is one step of a row and what becomes of the message when somebody
// dies after it. The first one stands before every step.
type RowStep struct {
	Step         string `json:"step"`
	Host         Ending `json:"host"`
	SourcePlugin Ending `json:"source_plugin"`
	SourceBroker Ending `json:"source_broker"`
	TargetPlugin Ending `json:"target_plugin,omitempty"`
	TargetBroker Ending `json:"target_broker,omitempty"`
}

// RowFailure is a step that fails and what is done then.
type RowFailure struct {
	If   string `json:"if"`
	Then string `json:"then"`
}

// legend explains the letters of a plan.
const legend = "n: the count that the copy carries, as received plus one; d: the delay asked for; " +
	"a step is carried out when the one before it is done."

// grid is one of a table's blocks: a heading and cells.
type grid struct {
	title string
	head  []string
	lines [][]string
}

// grids are the blocks of one profile.
func (p *Profile) grids() []grid {
	plans := grid{head: []string{"outcome", "attempt", "steps", "copy to", "ends", "order"}}
	deaths := grid{
		title: "What becomes of the message when somebody dies after a step",
		head:  []string{"outcome", "attempt", "after", "host", "source's plugin", "source's broker", "target's plugin", "target's broker"},
	}
	fails := grid{title: "What is done when a step fails", head: []string{"outcome", "attempt", "if", "then"}}
	var notes []string
	for i := range p.Rows {
		r := &p.Rows[i]
		plans.lines = append(plans.lines, []string{r.Outcome, r.Attempt, r.Plan, dash(r.Copy), r.Ends.String(), r.Order})
		for j, s := range r.Steps {
			line := []string{"", "", s.Step, s.Host.String(), s.SourcePlugin.String(), s.SourceBroker.String(), dash(s.TargetPlugin.String()), dash(s.TargetBroker.String())}
			if j == 0 {
				line[0], line[1] = r.Outcome, r.Attempt
			}
			deaths.lines = append(deaths.lines, line)
		}
		for j, f := range r.Failures {
			line := []string{"", "", f.If, f.Then}
			if j == 0 {
				line[0], line[1] = r.Outcome, r.Attempt
			}
			fails.lines = append(fails.lines, line)
		}
		for _, n := range r.Notes {
			notes = append(notes, fmt.Sprintf("%s, %s: %s", r.Outcome, r.Attempt, n))
		}
	}
	out := []grid{plans, deaths}
	if len(fails.lines) > 0 {
		out = append(out, fails)
	}
	if len(notes) > 0 {
		g := grid{title: "Notes"}
		for _, n := range notes {
			g.lines = append(g.lines, []string{n})
		}
		out = append(out, g)
	}
	return out
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// facts are the lines above the blocks.
func (t *Table) facts() [][2]string {
	out := [][2]string{{"declared", t.Policy}}
	if t.Forward != "" {
		out = append(out, [2]string{"forwards to", t.Forward})
	}
	if t.Reply != "" {
		out = append(out, [2]string{"replies to", t.Reply})
	}
	for _, p := range t.Publishes {
		out = append(out, [2]string{"publishes to", p})
	}
	if t.Copies != "" {
		out = append(out, [2]string{"copies go to", t.Copies})
	}
	if t.DeadLetter != "" {
		out = append(out, [2]string{"dead letters go to", t.DeadLetter})
	}
	for _, f := range t.Findings {
		word := "refused"
		if f.Warning {
			word = "warning"
		}
		out = append(out, [2]string{word, f.String()})
	}
	return out
}

// title is the table's heading.
func (t *Table) title() string {
	switch {
	case t.Subscription == "":
		return "settlement"
	case t.Endpoint == "":
		return t.Subscription
	default:
		return Destination{Endpoint: t.Endpoint, Name: t.Subscription}.String()
	}
}

// String returns the table as text with aligned columns.
func (t Table) String() string { return t.text(false) }

// Brief returns the steps of each outcome as text, without deaths, failures and
// notes.
func (t Table) Brief() string { return t.text(true) }

func (t *Table) text(brief bool) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n", t.title())
	for _, f := range t.facts() {
		fmt.Fprintf(&b, "  %s: %s\n", f[0], f[1])
	}
	for i := range t.Profiles {
		p := &t.Profiles[i]
		fmt.Fprintf(&b, "\n%s\n  source: %s\n  delivery: %s\n  counts: %s\n\n", t.deliveries(i), p.Source, p.Delivery, p.Counts)
		for j, g := range p.grids() {
			if j > 0 && brief {
				break
			}
			if j > 0 {
				fmt.Fprintf(&b, "\n  %s\n", g.title)
			}
			g.text(&b)
		}
	}
	fmt.Fprintf(&b, "\n%s\n", legend)
	return b.String()
}

// deliveries names the i-th profile.
func (t *Table) deliveries(i int) string {
	if len(t.Profiles) == 1 {
		return "its deliveries"
	}
	return fmt.Sprintf("its deliveries of profile %d", i)
}

// text writes the block with aligned columns.
func (g *grid) text(b *bytes.Buffer) {
	var cells bytes.Buffer
	w := tabwriter.NewWriter(&cells, 0, 0, 2, ' ', 0)
	write := func(line []string) {
		// The buffer behind it takes everything.
		_, _ = fmt.Fprintf(w, "  %s\n", strings.Join(line, "\t"))
	}
	if g.head != nil {
		write(g.head)
	}
	for _, l := range g.lines {
		write(l)
	}
	_ = w.Flush()
	for line := range strings.Lines(cells.String()) {
		b.WriteString(strings.TrimRight(line, " \n"))
		b.WriteByte('\n')
	}
}

// Markdown returns the table as Markdown.
func (t Table) Markdown() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "## %s\n\n", t.title())
	for _, f := range t.facts() {
		fmt.Fprintf(&b, "- %s: %s\n", f[0], f[1])
	}
	for i := range t.Profiles {
		p := &t.Profiles[i]
		fmt.Fprintf(&b, "\n### %s\n\n- source: %s\n- delivery: %s\n- counts: %s\n\n", sentence(t.deliveries(i)), p.Source, p.Delivery, p.Counts)
		for j, g := range p.grids() {
			if j > 0 {
				fmt.Fprintf(&b, "\n#### %s\n\n", g.title)
			}
			g.markdown(&b)
		}
	}
	fmt.Fprintf(&b, "\n%s\n", sentence(legend))
	return b.String()
}

// markdown writes the block as a table, or as a list where it has no heading.
func (g *grid) markdown(b *bytes.Buffer) {
	if g.head == nil {
		for _, l := range g.lines {
			fmt.Fprintf(b, "- %s\n", strings.Join(l, " "))
		}
		return
	}
	escape := strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ")
	write := func(line []string) {
		for _, c := range line {
			b.WriteString("| ")
			if c != "" {
				b.WriteString(escape.Replace(c))
				b.WriteByte(' ')
			}
		}
		b.WriteString("|\n")
	}
	write(g.head)
	b.WriteString(strings.Repeat("|---", len(g.head)) + "|\n")
	for _, l := range g.lines {
		write(l)
	}
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
