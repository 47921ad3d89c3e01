// SPDX-License-Identifier: Apache-2.0

package card

import (
	"strings"
	"unicode"
)

// plain returns a text that Markdown shows as it is, within a table too. What a
// plugin says must not write headings or links into a card, nor colours to a
// terminal.
func plain(text string) string {
	var b strings.Builder
	runes := []rune(OneLine(text))
	for i, r := range runes {
		if special(runes, i) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// special reports whether Markdown would take runes[i] for more than itself. A
// sign that begins no list or heading, an underscore within a word and an
// ampersand alone are left as they are: most texts then read well on a terminal.
func special(runes []rune, i int) bool {
	switch r := runes[i]; r {
	case '\\', '`', '*', '[', '<', '|', '~', '$':
		return true
	case '_':
		return i == 0 || i == len(runes)-1 || !letter(runes[i-1]) || !letter(runes[i+1])
	case '&':
		return i+1 < len(runes) && (letter(runes[i+1]) || runes[i+1] == '#')
	case '#', '-', '+', '>', '=':
		return i == 0
	case '.', ')': // "1. " begins a list
		return i > 0 && strings.Trim(string(runes[:i]), "0123456789") == "" && (i+1 == len(runes) || runes[i+1] == ' ')
	}
	return false
}

func letter(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// code returns a text as code within a line, "" for none. A table ends a cell at
// a bar even there, unless a backslash stands before it.
func code(text string) string {
	text = OneLine(text)
	if text == "" {
		return ""
	}
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	text = strings.ReplaceAll(text, "|", `\|`)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return fence + text + fence
}

// OneLine replaces what would break a line, or command a terminal.
func OneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
	return strings.TrimSpace(text)
}
