// SPDX-License-Identifier: Apache-2.0

package mqtt

import (
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// publishOptions are the options of messages, read once as long as they are the
// same. One goroutine uses it at a time.
type publishOptions struct {
	last  pluginapi.Options
	known bool
	read  settings.PublishOptions
}

// of reads options. What it returns is good until it is called again.
func (p *publishOptions) of(o pluginapi.Options) (*settings.PublishOptions, error) {
	if p.known && p.last.Equal(o) {
		return &p.read, nil
	}
	var read settings.PublishOptions
	if err := o.Bind(&read); err != nil {
		return nil, err
	}
	p.last, p.read, p.known = o.Clone(), read, true
	return &p.read, nil
}
