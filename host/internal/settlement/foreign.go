// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/link"
)

const (
	// shownText is how much of a name, a header or a reason goes into a log line
	// or a reject's reason.
	shownText = 256
	// shownFault is how much of each text of a fault does, and of a position.
	shownFault = 1 << 10
	// shownDiagnostics is how many diagnostics of a fault do.
	shownDiagnostics = 16
)

// foreignFault is a plugin's fault with texts that fit into a log line. One
// whose texts do is returned as it is; f itself is the plugin's and stays as it
// is.
func foreignFault(f *core.Fault) *core.Fault {
	if f == nil || fits(f) {
		return f
	}
	short := *f
	short.Message = oneLine(f.Message, shownFault)
	n := min(len(f.Diagnostics), shownDiagnostics)
	short.Diagnostics = make([]core.Diagnostic, 0, n)
	for _, d := range f.Diagnostics[:n] {
		short.Diagnostics = append(short.Diagnostics, core.Diagnostic{
			Path:    oneLine(d.Path, shownText),
			Message: oneLine(d.Message, shownFault),
			Fix:     oneLine(d.Fix, shownFault),
		})
	}
	return &short
}

// fits reports whether f's texts are on one line and not too long.
func fits(f *core.Fault) bool {
	if !plain(f.Message, shownFault) || len(f.Diagnostics) > shownDiagnostics {
		return false
	}
	for i := range f.Diagnostics {
		d := &f.Diagnostics[i]
		if !plain(d.Path, shownText) || !plain(d.Message, shownFault) || !plain(d.Fix, shownFault) {
			return false
		}
	}
	return true
}

// foreignError is the error of a stream that ended, with a plugin's texts cut.
func foreignError(err error) error {
	var f *core.Fault
	if !errors.As(err, &f) || fits(f) {
		return err
	}
	if lost := new(link.LostError); errors.As(err, &lost) {
		return &link.LostError{Cause: foreignFault(f)}
	}
	return foreignFault(f)
}

// faultText is the text of a fault for the log.
func faultText(f *core.Fault) string {
	if f == nil {
		return ""
	}
	return oneLine(f.Error(), shownFault)
}

// plain reports whether oneLine leaves text as it is.
func plain(text string, most int) bool {
	return len(text) <= most && utf8.ValidString(text) && strings.IndexFunc(text, control) < 0
}

// oneLine is text on one line, cut to at most most bytes.
func oneLine(text string, most int) string {
	if plain(text, most) {
		return text
	}
	// It is cut before, so that no more than that is copied, and after, because
	// what is no UTF-8 becomes longer.
	return cut(strings.Map(func(r rune) rune {
		if control(r) {
			return ' '
		}
		return r
	}, cut(text, most)), most)
}

// control reports whether r would end a line or steer a terminal.
func control(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029'
}

// cut is text, cut to at most most bytes at the end of a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	n := most
	for n > 0 && text[n]&0xc0 == 0x80 {
		n--
	}
	return text[:n]
}
