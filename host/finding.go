// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strings"
)

// Finding is one thing that is wrong at start. A refusal keeps the host from
// starting; a warning is logged with code L-CHECK.
type Finding struct {
	Endpoint     string   // the endpoint's name, "" = the host
	Subscription string   // the subscription's name, "" = the endpoint as a whole
	Option       string   // the rule, option or setting, by its field path; "" = none
	Message      string   // what is wrong
	Fix          string   // what to do
	Places       []string // where it was declared, "folder/file.go:12"
	Warning      bool     // it does not refuse
	Err          error    // the error behind it; nil = none
}

// String returns the finding on one line.
func (f Finding) String() string {
	var b strings.Builder
	switch {
	case f.Subscription != "":
		b.WriteString("subscription " + f.Subscription)
		if f.Endpoint != "" {
			b.WriteString(" of endpoint " + f.Endpoint)
		}
	case f.Endpoint != "":
		b.WriteString("endpoint " + f.Endpoint)
	default:
		b.WriteString("host")
	}
	if f.Option != "" {
		b.WriteString(": " + f.Option)
	}
	if f.Message != "" {
		b.WriteString(": " + f.Message)
	}
	if len(f.Places) > 0 {
		b.WriteString(" (" + strings.Join(f.Places, " and ") + ")")
	}
	if f.Fix != "" {
		b.WriteString("; " + f.Fix)
	}
	return b.String()
}

// shownText is how much of a text that a plugin gave is shown: a screen full.
const shownText = 2048

// shorten cuts a plugin's text to what people can read.
func shorten(s string) string {
	if len(s) <= shownText {
		return s
	}
	return strings.ToValidUTF8(s[:shownText], "") + "..."
}

// refusals returns those of fs that refuse.
func refusals(fs []Finding) []Finding {
	var out []Finding
	for _, f := range fs {
		if !f.Warning {
			out = append(out, f)
		}
	}
	return out
}

// places lists ps as text.
func places(ps ...place) []string {
	out := make([]string, 0, len(ps))
	for _, p := range ps {
		if p != "" {
			out = append(out, string(p))
		}
	}
	return out
}
