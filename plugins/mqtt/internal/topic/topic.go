// SPDX-License-Identifier: Apache-2.0

// Package topic has the rules of MQTT topics, filters and share groups (OASIS MQTT
// 5.0, 4.7 and 4.8.2).
package topic

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strings"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
)

// Max is the most bytes of a topic or a filter on the wire [MQTT-4.7.3-3].
const Max = 1<<16 - 1

// share begins a shared subscription's filter (4.8.2).
const share = "$share/"

// CheckTopic says why a name is no topic, nil = it is one: it is empty or too
// long, not UTF-8, has a wildcard, a control or a non-character, or begins as
// shared subscriptions do. Path is left to the caller.
func CheckTopic(name string) *core.Diagnostic {
	if d := CheckDelivered(name); d != nil {
		return d
	}
	return checkText("topic", name)
}

// CheckDelivered is CheckTopic for a topic that a server has delivered: control
// and non-characters are left to that server.
func CheckDelivered(name string) *core.Diagnostic {
	if d := check("topic", name); d != nil {
		return d
	}
	if i := strings.IndexAny(name, "+#"); i >= 0 {
		return &core.Diagnostic{
			Message: fmt.Sprintf("the topic %s has the wildcard %q", quote(name), name[i]),
			Fix:     "name one topic; wildcards belong into the filter of a subscription",
		}
	}
	return nil
}

// CheckFilter says why a name is no filter, nil = it is one: as CheckTopic, but
// that `+` may be a whole level, and `#` the last one [MQTT-4.7.1-1, 4.7.1-2].
func CheckFilter(name string) *core.Diagnostic {
	if d := cmp.Or(check("filter", name), checkText("filter", name)); d != nil {
		return d
	}
	for level, rest, more := strings.Cut(name, "/"); ; level, rest, more = strings.Cut(rest, "/") {
		switch {
		case level == "#" && more:
			return &core.Diagnostic{Message: fmt.Sprintf("the filter %s has # before its end", quote(name)), Fix: "let # be the last level"}
		case level != "#" && strings.Contains(level, "#"), level != "+" && strings.Contains(level, "+"):
			return &core.Diagnostic{Message: fmt.Sprintf("the filter %s has a wildcard that is only a part of a level", quote(name)), Fix: "let + or # stand alone between slashes"}
		}
		if !more {
			return nil
		}
	}
}

// CheckGroup says why a name is no share group, nil = it is one (4.8.2).
func CheckGroup(name string) *core.Diagnostic {
	if d := cmp.Or(check("share group", name), checkText("share group", name)); d != nil {
		return d
	}
	if i := strings.IndexAny(name, "/+#"); i >= 0 {
		return &core.Diagnostic{
			Message: fmt.Sprintf("the share group %s has the character %q", quote(name), name[i]),
			Fix:     "name it without /, + and #",
		}
	}
	return nil
}

// check is what topics, filters and groups have in common.
func check(what, name string) *core.Diagnostic {
	var reason string
	fix := "give it a name of text"
	switch {
	case name == "":
		reason = "is empty"
	case len(name) > Max:
		reason, fix = fmt.Sprintf("has %d bytes, the limit is %d", len(name), Max), "shorten it"
	case !utf8.ValidString(name):
		reason = "is not UTF-8"
	case strings.IndexByte(name, 0) >= 0:
		reason = "has a null character"
	case strings.HasPrefix(name, share):
		reason, fix = "begins with $share/, which shared subscriptions do", "give the share group in the option group, and the name without it"
	default:
		return nil
	}
	return &core.Diagnostic{Message: fmt.Sprintf("the %s %s %s", what, quote(name), reason), Fix: fix}
}

// checkText refuses control and non-characters.
func checkText(what, name string) *core.Diagnostic {
	unfit := Unfit(name)
	if unfit == "" {
		return nil
	}
	return &core.Diagnostic{Message: fmt.Sprintf("the %s %s has %s", what, quote(name), unfit), Fix: "leave it out"}
}

// maxQuoted is how many bytes of a name a text holds.
const maxQuoted = 80

func quote(name string) string {
	if len(name) > maxQuoted {
		return fmt.Sprintf("%q...", name[:maxQuoted])
	}
	return fmt.Sprintf("%q", name)
}

// Unfit says what a text has that a string of MQTT should not have, "" = nothing:
// control characters and non-characters (1.5.4). Servers end the connection that
// sends them.
func Unfit[T ~string | ~[]byte](text T) string {
	for _, r := range string(text) {
		switch {
		case r < 0x20 || r >= 0x7F && r < 0xA0:
			return fmt.Sprintf("the control character %U", r)
		case r >= 0xFDD0 && r <= 0xFDEF || r&0xFFFE == 0xFFFE:
			return fmt.Sprintf("the non-character %U", r)
		}
	}
	return ""
}

// Wire is a filter as it stands in SUBSCRIBE: `$share/group/filter` for a group.
func Wire(filter, group string) string {
	if group == "" {
		return filter
	}
	return share + group + "/" + filter
}

// HasWildcard reports whether a filter matches more than one topic.
func HasWildcard(filter string) bool { return strings.ContainsAny(filter, "+#") }

// identifiers is how many subscription identifiers there are (3.8.2.1.2).
const identifiers = 268_435_455

// Identifier is the subscription identifier of a filter as it stands in SUBSCRIBE:
// FNV-1a of 64 bits, mod 268435455, plus 1. It is the same in every run, so that a
// session that was kept brings the identifiers that are known.
func Identifier(wire string) uint32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(wire))
	return uint32(h.Sum64()%identifiers) + 1
}
