// SPDX-License-Identifier: Apache-2.0

package mqtt

import (
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
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
