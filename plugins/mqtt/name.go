// SPDX-License-Identifier: Apache-2.0

package mqtt

import (
	"fmt"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/topic"
)

// badTopic says why nothing can be published to a topic, "" where it can.
func badTopic(name string) (message, fix string) {
	return said(topic.CheckTopic(name))
}

// badName says why a subscription cannot have a name.
func badName(name string, filter bool) (message, fix string) {
	switch {
	case filter:
		return said(topic.CheckFilter(name))
	case topic.HasWildcard(name):
		return shown(name) + " has a wildcard, and it is not said to be a filter", "set the option filter: true, or name a topic without + and #"
	}
	return badTopic(name)
}

// badGroup says why a share group cannot have a name.
func badGroup(name string) (message, fix string) { return said(topic.CheckGroup(name)) }

// said is what is wrong, and what to do.
func said(d *core.Diagnostic) (message, fix string) {
	if d == nil {
		return "", ""
	}
	return d.Message, d.Fix
}

// badText says why a text cannot be sent to a server, "" where it can: one with
// control characters may close the connection (1.5.4).
func badText(text string) string {
	switch {
	case len(text) > packet.MaxString:
		return fmt.Sprintf("has %d bytes", len(text))
	case !utf8.ValidString(text):
		return "is not UTF-8"
	}
	if unfit := topic.Unfit(text); unfit != "" {
		return "has " + unfit
	}
	return ""
}

// shown is the subscription for people.
func (r *reader) shown() string {
	if r.options.Group != "" {
		return shown(r.name) + " of the group " + shown(r.options.Group)
	}
	return shown(r.name)
}

// shown is a foreign name for people.
func shown(name string) string { return fault.Shown(name) }
