// SPDX-License-Identifier: Apache-2.0

package card

import "testing"

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		"max_delay is 5":          "max_delay is 5",
		"_so_":                    `\_so\_`,
		"a | b":                   `a \| b`,
		"# head":                  `\# head`,
		"- item":                  `\- item`,
		"1. item":                 `1\. item`,
		"1.2.3":                   "1.2.3",
		"took 1.5 s (all of it)":  "took 1.5 s (all of it)",
		"*x* `y` [z](u) <b> ~~":   "\\*x\\* \\`y\\` \\[z](u) \\<b> \\~\\~",
		"a & b &amp; &#65;":       `a & b \&amp; \&#65;`,
		`back\slash`:              `back\\slash`,
		"two\nlines\tand \x1b[0m": "two lines and \ufffd\\[0m",
		"not \xff UTF-8":          "not \ufffd UTF-8",
		"\u202eturned":            "\ufffdturned",
		"grün ✓":                  "grün ✓",
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCode(t *testing.T) {
	for in, want := range map[string]string{
		"":       "",
		"a":      "`a`",
		"a|b":    "`a\\|b`",
		"a`b":    "``a`b``",
		"`a``":   "``` `a`` ```",
		"a\nb":   "`a b`",
		"{dir}_": "`{dir}_`",
	} {
		if got := code(in); got != want {
			t.Errorf("code(%q) = %q, want %q", in, got, want)
		}
	}
}
