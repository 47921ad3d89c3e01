// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"
)

// bound is one end of a range: its text for people and the number it stands
// for (nanoseconds of durations, lengths of texts, lists and dicts).
type bound struct {
	text string
	at   *big.Rat
}

// limits reads the tags min, max and enum of a field.
func limits(t *Type, tag reflect.StructTag) (Limits, error) {
	var l Limits
	var err error
	if l.Min, err = readBound(t, tag, "min"); err != nil {
		return l, err
	}
	if l.Max, err = readBound(t, tag, "max"); err != nil {
		return l, err
	}
	if l.Min != nil && l.Max != nil && l.Min.at.Cmp(l.Max.at) > 0 {
		return l, fmt.Errorf("tag min %s is above max %s", l.Min.text, l.Max.text)
	}
	if enum, ok := tag.Lookup("enum"); ok {
		if t.Kind != Text && t.Kind != Custom {
			return l, fmt.Errorf("tag enum is for texts")
		}
		for e := range strings.SplitSeq(enum, ",") {
			l.Enum = append(l.Enum, strings.TrimSpace(e))
		}
	}
	return l, nil
}

// readBound reads one of the tags min and max.
func readBound(t *Type, tag reflect.StructTag, name string) (*bound, error) {
	text, ok := tag.Lookup(name)
	if !ok {
		return nil, nil
	}
	b := &bound{text: text}
	switch t.Kind {
	case Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("tag %s: %w", name, err)
		}
		b.at = new(big.Rat).SetInt64(int64(d))
	case Integer, Number, Text, Secret, List, Dict:
		b.at, ok = new(big.Rat).SetString(text)
		if !ok {
			return nil, fmt.Errorf("tag %s is %q: want a number", name, text)
		}
		if t.Kind != Number && !b.at.IsInt() {
			return nil, fmt.Errorf("tag %s is %q: want an integer", name, text)
		}
	default:
		return nil, fmt.Errorf("tag %s does not fit a %s", name, t.Kind)
	}
	return b, nil
}

// within says what is wrong with a number or a length, "" when nothing is.
func (l *Limits) within(k Kind, at *big.Rat) (message, fix string) {
	what := ""
	switch k {
	case Text, Secret:
		what = "character"
	case List, Dict:
		what = "entry"
	}
	if l.Min != nil && at.Cmp(l.Min.at) < 0 {
		if what != "" && at.Sign() == 0 {
			return "is empty", "give at least " + plural(l.Min, what)
		}
		return "is below " + plural(l.Min, what), "give at least " + plural(l.Min, what)
	}
	if l.Max != nil && at.Cmp(l.Max.at) > 0 {
		return "is above " + plural(l.Max, what), "give at most " + plural(l.Max, what)
	}
	return "", ""
}

// plural writes a limit with the things that it counts, if any.
func plural(limit *bound, what string) string {
	switch {
	case what == "":
		return limit.text
	case limit.text == "1":
		return "1 " + what
	case what == "entry":
		return limit.text + " entries"
	}
	return limit.text + " " + what + "s"
}

// oneOf says what is wrong with a text, "" when nothing is.
func (l *Limits) oneOf(s string) (message, fix string) {
	if len(l.Enum) == 0 || slices.Contains(l.Enum, s) {
		return "", ""
	}
	return "is " + quote(s), "give one of " + strings.Join(l.Enum, ", ")
}

// String names the kind for people, with its article left out.
func (k Kind) String() string {
	return [...]string{
		Object: "object", Dict: "map", List: "list", Text: "text", Secret: "text", Duration: "duration",
		Custom: "text", Boolean: "true or false", Integer: "whole number", Number: "number",
	}[k]
}

// quote shows a foreign value, cut to what fits a line.
func quote(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "..."
	}
	return fmt.Sprintf("%q", s)
}
