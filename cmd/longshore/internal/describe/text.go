// SPDX-License-Identifier: Apache-2.0

package describe

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/longshore-go/longshore/cmd/longshore/internal/term"
	"github.com/longshore-go/longshore/core"
)

// Write writes p for people.
func (p Plugin) Write(w io.Writer, s term.Style) error {
	var b strings.Builder
	fmt.Fprintln(&b, strings.TrimSpace(s.Bold(p.Name)+" "+p.Version))
	for _, line := range p.traits() {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	fmt.Fprintf(&b, "\n%s\n", s.Bold("A subscription, at most"))
	for _, c := range p.Sources {
		writeWords(&b, c.words())
	}
	if len(p.Sources) == 0 {
		b.WriteString("  there are none\n")
	}
	fmt.Fprintf(&b, "\n%s\n", s.Bold("A destination, at most"))
	writeWords(&b, p.Publishing.words())
	writeSettings(&b, s.Bold("Settings of an endpoint"), p.Schemas.Settings)
	writeSettings(&b, s.Bold("Options of a subscription"), p.Schemas.Subscription)
	writeSettings(&b, s.Bold("Options of a message"), p.Schemas.Publish)
	_, err := io.WriteString(w, b.String())
	return err
}

// traits are what holds for the plugin as a whole.
func (p Plugin) traits() []string {
	lines := []string{"is started again after a crash"}
	if !p.Restarts {
		lines[0] = "is not started again after a crash: its endpoint ends"
	}
	if p.WantsStdio {
		lines = append(lines, "needs stdio: true")
	}
	if p.Requests {
		lines = append(lines, "can send a request and wait for its reply")
	}
	if p.Seeks {
		lines = append(lines, "can move to another position")
	}
	if p.LinkStates {
		lines = append(lines, "reports whether it is connected")
	}
	return lines
}

// words says what a subscription can do.
func (c Source) words() []string {
	words := []string{map[core.AckMode]string{
		core.AckNone:       "cannot be acked",
		core.AckSingle:     "acks single messages",
		core.AckCumulative: "acks up to a message",
	}[c.Ack]}
	switch c.Requeue {
	case core.RequeueNone:
	case core.RequeueNow:
		words = append(words, "requeues at once")
	case core.RequeueDelayed:
		words = append(words, "requeues after a delay"+below(c.MaxDelay))
	}
	switch {
	case c.Rewinds && c.Unsettled == core.UnsettledOnTimeout:
		words = append(words, "a requeue, and the end of a hold, takes its scope back to it")
	case c.Rewinds:
		words = append(words, "a requeue takes its scope back to it")
	}
	if c.Reject != core.RejectNone {
		words = append(words, "rejects ("+c.Reject.String()+")")
	}
	if c.Counts == core.CountNative {
		counts := "counts deliveries"
		if c.Recounts {
			counts += " in memory"
		}
		words = append(words, counts)
	}
	if c.MaxHold != "" {
		words = append(words, "holds a message"+below(c.MaxHold))
		if c.Extend {
			words = append(words, "longer on request")
		}
	}
	if c.OwnAddress {
		words = append(words, "has an address of its own")
	}
	unsettled := "what is unsettled is lost with the process"
	if c.Unsettled != core.UnsettledLost {
		unsettled = "what is unsettled comes back " + c.Unsettled.String()
	}
	words = append(words, unsettled)
	if c.Durable {
		words = append(words, "also after a restart of the source")
	}
	return append(words, "order: "+c.Order.String())
}

// words says what a destination can do.
func (d Destination) words() []string {
	words := []string{
		"a receipt means: " + d.Confirms.String(),
		"kept by: " + d.Retains.String(),
		"headers: " + d.Headers.String(),
	}
	if d.MaxDelay != "" {
		words = append(words, "delivers later"+below(d.MaxDelay))
	}
	if d.Dedups {
		words = append(words, "drops doubles")
	}
	if d.MaxBytes > 0 {
		words = append(words, fmt.Sprintf("at most %d bytes", d.MaxBytes))
	}
	if d.MaxHeaders > 0 {
		words = append(words, fmt.Sprintf("at most %d headers", d.MaxHeaders))
	}
	return words
}

// below is an exclusive limit in words.
func below(limit string) string {
	if limit == "" {
		return ""
	}
	return " below " + limit
}

// width is where lists of words are broken: what a terminal shows at least.
const width = 80

// writeWords writes words as one paragraph.
func writeWords(b *strings.Builder, words []string) {
	line := "  -"
	for i, w := range words {
		if i < len(words)-1 {
			w += ";"
		}
		if len(line)+1+len(w) > width {
			b.WriteString(line + "\n")
			line = "   "
		}
		line += " " + w
	}
	b.WriteString(line + "\n")
}

// writeSettings writes a list of settings, if there are any.
func writeSettings(b *strings.Builder, heading string, schema json.RawMessage) {
	list := settings(schema)
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", heading)
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.StripEscape)
	for _, s := range list {
		about := s.kind
		if s.bounds != "" {
			about += ", " + s.bounds
		}
		switch {
		case s.required:
			about += ", required"
		case s.fallback != "":
			about += ", default " + s.fallback
		}
		_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\n", s.name, about, s.doc)
	}
	_ = w.Flush() // writes to memory
}
