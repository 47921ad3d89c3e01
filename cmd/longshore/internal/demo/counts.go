// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"strings"
)

// counts is what was seen, each counted where it happens.
type counts struct {
	fed         int // lines written to the first stage
	bad         int // lines that the plugin reported and skipped
	undecodable int // messages that are no airport

	first    int // handler runs for a message read from a line
	again    int // handler runs for a copy that came back
	acked    int
	retried  int
	delayed  int
	dropped  int
	panicked int
	capped   int // warnings that the attempts are used up

	queued    int // handler runs of the second stage, one for each message that it read
	refiled   int // of them those that were tried again
	copied    int // of them those for a copy that came back
	directory int // airports that the second stage has filed
	dead      int // dead letters that the second stage read

	heard bool // the towers were back
	told  int  // airports that the towers know
	busy  int  // handler runs of the third stage whose airport was tried again
	twice int  // handler runs of the third stage for an airport that the towers know already

	read   bool // the stream file was read to its end
	before int  // airports that the group read before it was stopped
	after  int  // airports that it read when it was started again
}

// runs is how often the handler ran.
func (c *counts) runs() int { return c.first + c.again }

// arrived reports whether the second stage has what the first one has sent.
func (c *counts) arrived() bool {
	return c.directory+c.dead >= c.acked+c.capped && c.copied >= c.refiled
}

// sum is one line of the balance.
type sum struct {
	what  string
	total int
	parts []part
}

// part is one summand.
type part struct {
	n    int
	what string
}

// ok reports whether the line adds up.
func (s sum) ok() bool {
	total := 0
	for _, p := range s.parts {
		total += p.n
	}
	return s.total == total
}

// String returns the right side, such as "3 bad lines + 318 messages".
func (s sum) String() string {
	var b strings.Builder
	for i, p := range s.parts {
		sign, n := " + ", p.n
		if n < 0 {
			sign, n = " - ", -n
		}
		if i > 0 {
			b.WriteString(sign)
		}
		fmt.Fprintf(&b, "%d %s", n, p.what)
	}
	return b.String()
}

// balance is what must add up.
func (c *counts) balance() []sum {
	sums := []sum{
		{"lines fed", c.fed, []part{{c.bad, "bad lines"}, {c.undecodable, "undecodable"}, {c.first, "airports"}}},
		{"handler runs", c.runs(), []part{{c.first, "first"}, {c.again, "copies that came back"}}},
		{"handler runs", c.runs(), []part{{c.acked, "acked"}, {c.retried, "retried"}, {c.delayed, "retried later"}, {c.dropped, "dropped"}, {c.panicked, "panicked"}}},
		{"copies that came back", c.again, []part{{c.retried, "retried"}, {c.delayed, "retried later"}, {c.panicked, "panicked"}, {-c.dead, "dead letters"}}},
		{"read from the queue", c.queued, []part{{c.directory, "in the directory"}, {c.refiled, "tried again"}, {c.dead, "dead letters"}}},
		{"copies in the queue", c.copied, []part{{c.refiled, "tried again"}}},
		{"airports", c.first, []part{{c.directory, "in the directory"}, {c.dropped, "dropped"}, {c.dead, "dead letters"}}},
		{"acked", c.acked, []part{{c.directory, "in the directory"}}},
		{"dead letters", c.dead, []part{{c.capped, "whose attempts were used up"}}},
	}
	if c.heard {
		sums = append(sums, sum{"known to the towers", c.told, []part{{c.directory, "in the directory"}}})
	}
	if c.read {
		sums = append(sums, sum{"in the directory", c.directory, []part{{c.before, "read from the file"}, {c.after, "read after the restart"}}})
	}
	return sums
}

// BalanceError lists what does not add up.
type BalanceError struct{ Lines []string }

// Error lists the lines of the balance that are wrong.
func (e *BalanceError) Error() string {
	return "the demo does not add up: " + strings.Join(e.Lines, "; ")
}
