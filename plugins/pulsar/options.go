// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// publishOptions are the options of messages: those of the last few kinds are read
// once. One goroutine uses it at a time.
type publishOptions struct {
	kinds [4]optionsRead
	n     int
	next  int // that is replaced
}

// optionsRead are options and what they say.
type optionsRead struct {
	raw  pluginapi.Options
	read settings.PublishOptions
}

// of reads options. What it returns is good until it is called again.
func (p *publishOptions) of(o pluginapi.Options) (*settings.PublishOptions, error) {
	for i := range p.kinds[:p.n] {
		if p.kinds[i].raw.Equal(o) {
			return &p.kinds[i].read, nil
		}
	}
	var read settings.PublishOptions
	if err := o.Bind(&read); err != nil {
		return nil, err
	}
	k := &p.kinds[p.next]
	*k = optionsRead{raw: o.Clone(), read: read}
	p.next = (p.next + 1) % len(p.kinds)
	p.n = min(p.n+1, len(p.kinds))
	return &k.read, nil
}

// checkPublish says what is wrong with the options of a message beyond their schema,
// nil = nothing.
func checkPublish(o *settings.PublishOptions, s *settings.Settings) []core.Diagnostic {
	var wrong diagnostics
	if o.SequenceID != nil && s.ProducerName == "" {
		wrong.add("sequence_id", "is given, and the producers have a new name at each start", "set producer_name, or leave it out")
	}
	if o.SequenceID != nil && s.Batching {
		wrong.add("sequence_id", "is given, and the broker sees one number for a whole batch", "set batching: false, or leave it out")
	}
	if d := time.Duration(o.DeliverAfter); d >= MaxDelay {
		wrong.add("deliver_after", fmt.Sprintf("is %v", d), fmt.Sprintf("use less than %v", MaxDelay))
	}
	if !o.EventTime.IsZero() && o.EventTime.UnixMilli() <= 0 {
		wrong.add("event_time", "is "+o.EventTime.Format(time.RFC3339), "use a time after 1970")
	}
	return wrong
}
