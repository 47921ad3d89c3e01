// SPDX-License-Identifier: Apache-2.0

package card

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/conform"
)

// Markdown returns the card as a page: what was proved, what failed, what
// the plugin promises, and all cases by area.
func (c *Card) Markdown() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Capability card of %s\n\n%s\n", plain(strings.TrimSpace(c.Plugin.Name+" "+c.Plugin.Version)), c.verdict())
	c.identity(&b)
	c.failures(&b)
	c.promises(&b)
	c.areas(&b)
	c.notes(&b)
	return []byte(b.String())
}

// verdict is the line that most people want.
func (c *Card) verdict() string {
	text := "**" + c.Run.String() + "**"
	if c.Run.Selected {
		text += "\n\nOnly some of the cases were asked for; this card does not speak for the plugin as a whole."
	}
	return text
}

// identity writes what was proved.
func (c *Card) identity(b *strings.Builder) {
	lines := [][]string{
		{"plugin", plain(c.Plugin.Name)},
		{"version", plain(c.Plugin.Version)},
		{"checksum", code(c.Plugin.Checksum)},
		{"protocol", strconv.Itoa(c.Plugin.Protocol)},
		{"capabilities", code(c.Capabilities.Digest)},
		{"settings", object(c.Subject.Settings)},
		{"subscription", code(c.Subject.Subscription)},
		{"its options", object(c.Subject.Options)},
		{"destination", code(c.Subject.Destination)},
		{"started", ""},
		{"took", limit(c.Run.Time)},
	}
	if !c.Run.Started.IsZero() {
		lines[9][1] = c.Run.Started.Format("2006-01-02 15:04:05 MST")
	}
	b.WriteByte('\n')
	row(b, "", "")
	rule(b, 2)
	for _, l := range lines {
		if l[1] != "" {
			row(b, l...)
		}
	}
}

// promises writes the capabilities, in the words of core.
func (c *Card) promises(b *strings.Builder) {
	b.WriteString("\n## What it promises\n")
	if len(c.Capabilities.Profiles) == 0 {
		b.WriteString("\nNothing can be read.\n")
	} else {
		c.profiles(b)
	}
	p := c.Capabilities.Publishing
	if p == nil {
		b.WriteString("\nNothing can be published.\n")
		return
	}
	b.WriteByte('\n')
	row(b, "publishing", "")
	rule(b, 2)
	row(b, "a receipt means", p.Confirms.String())
	row(b, "kept by", p.Retains.String())
	row(b, "headers", p.Headers.String())
	row(b, "repeated headers", yes(p.Repeats))
	row(b, "delivers later", below(p.MaxDelay, "no"))
	row(b, "drops doubles", yes(p.Dedups))
	row(b, "most bytes", most(p.MaxBytes))
	row(b, "most headers", most(int64(p.MaxHeaders)))
}

// profiles writes a column for each profile.
func (c *Card) profiles(b *strings.Builder) {
	lines := [][]string{
		{"deliveries"}, {"ack"}, {"requeue"}, {"reject"}, {"counts"}, {"hold"}, {"address of its own"}, {"unsettled"}, {"survives a restart of the source"}, {"order"},
	}
	for i, p := range c.Capabilities.Profiles {
		head := ""
		if len(c.Capabilities.Profiles) > 1 {
			head = "profile " + strconv.Itoa(i)
		}
		requeue, hold := p.Requeue.String(), below(p.MaxHold, "no limit")
		if p.MaxDelay > 0 {
			requeue += ", " + below(p.MaxDelay, "")
		}
		if p.Rewinds {
			requeue += ", takes its scope back to it"
		}
		if p.Extend {
			hold += ", can be extended"
		}
		counts := p.Counts.String()
		if p.Recounts {
			counts += ", in memory"
		}
		for j, text := range []string{
			head, p.Ack.String(), requeue, p.Reject.String(), counts, hold, yes(p.Address), p.Unsettled.String(), yes(p.Durable), p.Order.String(),
		} {
			lines[j] = append(lines[j], text)
		}
	}
	b.WriteByte('\n')
	row(b, lines[0]...)
	rule(b, len(lines[0]))
	for _, l := range lines[1:] {
		row(b, l...)
	}
}

// failures writes what went wrong, with all that is known of it.
func (c *Card) failures(b *strings.Builder) {
	if c.Run.Failed == 0 {
		return
	}
	b.WriteString("\n## Failures\n")
	for i := range c.Cases {
		one := &c.Cases[i]
		if one.Status != conform.Failed {
			continue
		}
		fmt.Fprintf(b, "\n### %s\n\n%s", plain(one.ID), plain(one.Claim))
		if one.Section != "" {
			fmt.Fprintf(b, " (docs/protocol.md, %s)", plain(one.Section))
		}
		b.WriteString("\n\n")
		for _, f := range one.Faults {
			fmt.Fprintf(b, " - %s\n", plain(f))
		}
	}
}

// areas writes all cases, those of an area in one table.
func (c *Card) areas(b *strings.Builder) {
	b.WriteString("\n## Cases\n")
	timed := false
	for i := range c.Cases {
		timed = timed || c.Cases[i].Time != 0
	}
	last := ""
	for i := range c.Cases {
		one := &c.Cases[i]
		area, _, _ := strings.Cut(one.ID, "/")
		if i == 0 || area != last {
			fmt.Fprintf(b, "\n### %s\n\n", plain(area))
			head := []string{"case", "claim", "result", "time"}
			if !timed {
				head = head[:3]
			}
			row(b, head...)
			rule(b, len(head))
		}
		last = area
		cells := []string{plain(one.ID), plain(one.Claim), one.result()}
		if timed {
			cells = append(cells, limit(one.Time))
		}
		row(b, cells...)
	}
}

// result is the status of a case, with the reason where there is one.
func (c *Case) result() string {
	text := string(c.Status)
	if c.Status == conform.Failed {
		text = "**" + text + "**"
	}
	if c.Reason != "" {
		text += ": " + plain(c.Reason)
	}
	return text
}

// notes writes what is worth knowing of the cases.
func (c *Card) notes(b *strings.Builder) {
	heading := "\n## Notes\n\n"
	for i := range c.Cases {
		for _, n := range c.Cases[i].Notes {
			fmt.Fprintf(b, "%s - %s: %s\n", heading, plain(c.Cases[i].ID), plain(n))
			heading = ""
		}
	}
}

// row writes one line of a table.
func row(b *strings.Builder, cells ...string) {
	b.WriteString("|")
	for _, c := range cells {
		if c != "" {
			b.WriteString(" " + c)
		}
		b.WriteString(" |")
	}
	b.WriteByte('\n')
}

// rule writes the line below the head of a table.
func rule(b *strings.Builder, columns int) {
	b.WriteString("|" + strings.Repeat("---|", columns) + "\n")
}

// object is settings or options on one line, "" for none.
func object(v map[string]any) string {
	if len(v) == 0 {
		return ""
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "cannot be shown"
	}
	return code(strings.TrimSpace(b.String()))
}

// limit is a duration, "" for none.
func limit(d core.Duration) string {
	if d == 0 {
		return ""
	}
	text := d.String()
	for _, zero := range []string{"0s", "0m"} { // 1h0m0s
		if t := strings.TrimSuffix(text, zero); strings.HasSuffix(t, "m") || strings.HasSuffix(t, "h") {
			text = t
		}
	}
	return text
}

// below is an exclusive limit in words.
func below(d core.Duration, none string) string {
	if d == 0 {
		return none
	}
	return "below " + limit(d)
}

func most(n int64) string {
	if n == 0 {
		return "no limit"
	}
	return strconv.FormatInt(n, 10)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
