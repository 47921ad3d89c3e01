// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"slices"
	"strconv"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// arrival is a line on its way to its subscriptions.
type arrival struct {
	number   uint64
	key      string // "" = for all
	delivery pluginapi.Delivery
	bytes    int
	report   *pluginapi.Report // in place of a delivery
	skip     bool              // nobody reads the key
}

// parse makes a delivery of a line, or a report.
func (i *intake) parse(raw rawLine) arrival {
	if raw.tooBig > 0 {
		return i.report(raw, fault.Refusal(core.FaultTooLarge, "line of %d bytes skipped: the limit is %d", raw.tooBig, i.lines.limit))
	}
	position := strconv.AppendUint(nil, raw.number, 10)
	if i.settings.PlainInput {
		if len(raw.text) > MaxMessage {
			return i.report(raw, fault.Refusal(core.FaultTooLarge, "line of %d bytes skipped: the limit is %d", len(raw.text), MaxMessage))
		}
		return arrival{
			delivery: pluginapi.Delivery{Message: core.Message{Payload: raw.text}, Position: position},
			bytes:    len(raw.text),
		}
	}
	l, err := parseLine(raw.text)
	if err != nil {
		return i.report(raw, fault.Refusal(core.FaultInvalid, "line skipped: %v", err))
	}
	number, read := i.number(&l)
	if !read {
		return arrival{skip: true}
	}
	headers, payload, err := i.decoder.Numbered(l.payload, number)
	if err != nil {
		return i.report(raw, fault.Refusal(core.FaultTooLarge, "line skipped: %v", err))
	}
	m := core.Message{Name: broadcast, Headers: headers, Payload: payload}
	if l.key != nil {
		m.Name = string(l.key)
	}
	if n := m.Size(); n > MaxMessage {
		return i.report(raw, fault.Refusal(core.FaultTooLarge, "line skipped: payload and headers of %d bytes, the limit is %d", n, MaxMessage))
	}
	return arrival{
		key:      string(l.key),
		delivery: pluginapi.Delivery{Message: m, Position: position, PublishedAt: l.when},
		bytes:    m.Size(),
	}
}

func (i *intake) report(raw rawLine, f *core.Fault) arrival {
	return arrival{report: &pluginapi.Report{Fault: f, Position: "line " + strconv.FormatUint(raw.number, 10)}}
}

// number gives a line its sequence. It reports false where nobody reads the
// key, which then has none.
func (i *intake) number(l *line) (uint64, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	key := broadcast
	if l.key != nil {
		if !slices.ContainsFunc(i.subs, func(s *subscription) bool { return s.key == string(l.key) }) {
			return 0, false
		}
		key = string(l.key)
	}
	if l.shard != 0 {
		key += "|" + strconv.FormatUint(l.shard, 10) // no key has this character
	}
	if l.numbered {
		i.numbers.said(key, l.sequence)
		return l.sequence, true
	}
	return i.numbers.next(key), true
}
