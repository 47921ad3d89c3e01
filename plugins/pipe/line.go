// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/longshore-go/longshore/plugins/internal/streamkey"
)

// line is an input line taken apart. Its fields share memory with it.
type line struct {
	when     time.Time // zero = not said
	key      []byte    // nil = for every subscription
	sequence uint64
	numbered bool // sequence was said
	shard    uint64
	payload  []byte
}

// timeLayout is how a line says its time: UTC, whole seconds. Input may go on
// with a fraction.
const timeLayout = "2006-01-02T15:04:05"

// lineError says why a line is no message.
type lineError struct{ part string }

// Error names the part that fits nothing.
func (e *lineError) Error() string {
	return fmt.Sprintf("%s between its brackets is no time, stream key, sequence or shard; "+
		"put a key before the payload, as in \"[orders] ...\", or set plain_input", quote(e.part))
}

// parseLine takes a line apart, without its line break. A line that does not
// begin with "[...]" is all payload. The parts between the brackets are, in
// this order and each optional, time, key, sequence (behind a key) and shard
// (behind a sequence); the blanks before the payload are no part of it.
func parseLine(b []byte) (line, error) {
	head, payload, ok := brackets(b)
	if !ok {
		return line{payload: b}, nil
	}
	l := line{payload: bytes.TrimLeftFunc(payload, unicode.IsSpace)}
	const (
		atTime = iota
		atKey
		atSequence
		atShard
		atEnd
	)
	at := atTime
	for more := true; more; {
		var part []byte
		part, head, more = bytes.Cut(head, []byte{'|'})
		part = bytes.TrimSpace(part)
		switch {
		case at == atTime && l.readTime(part):
			at = atKey
		case at <= atKey && streamkey.Valid(part):
			l.key, at = part, atSequence
		case at == atSequence && number(part, &l.sequence):
			l.numbered, at = true, atShard
		case at == atShard && number(part, &l.shard):
			at = atEnd
		default:
			return line{}, &lineError{part: string(part)}
		}
	}
	return l, nil
}

// brackets splits "[head]payload". The head has one byte at least.
func brackets(b []byte) (head, payload []byte, ok bool) {
	if len(b) == 0 || b[0] != '[' {
		return nil, nil, false
	}
	end := bytes.IndexByte(b, ']')
	if end < 2 {
		return nil, nil, false
	}
	return b[1:end], b[end+1:], true
}

func (l *line) readTime(part []byte) bool {
	const whole = len(timeLayout)
	if len(part) < whole || part[4] != '-' || part[10] != 'T' {
		return false
	}
	if fraction := part[whole:]; len(fraction) > 0 {
		if fraction[0] != '.' || len(fraction) < 2 || len(fraction) > 10 || !digits(fraction[1:]) {
			return false
		}
	}
	t, err := time.Parse(timeLayout, string(part))
	l.when = t
	return err == nil
}

// number reads an unsigned number as the reference does: one leading plus and
// leading zeros are allowed.
func number(part []byte, into *uint64) bool {
	if len(part) > 1 && part[0] == '+' {
		part = part[1:]
	}
	if len(part) == 0 || !digits(part) {
		return false
	}
	n, err := strconv.ParseUint(string(part), 10, 64)
	*into = n
	return err == nil
}

func digits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// quote shows foreign text on one line, cut to a length.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		return strings.TrimSuffix(strconv.Quote(s[:cut]), `"`) + `..."`
	}
	return strconv.Quote(s)
}
