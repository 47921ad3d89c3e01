// SPDX-License-Identifier: Apache-2.0

package session

import (
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/topic"
)

// Filter is what a connection subscribes to.
type Filter struct {
	Name  string // a topic, or a filter with wildcards
	Group string // the share group, "" = none
	QoS   byte   // the most that is asked for

	NoLocal           bool
	RetainAsPublished bool
	RetainHandling    byte // 0 = always, 1 = for a new subscription, 2 = never
}

// Wire is the filter as it stands in SUBSCRIBE.
func (f *Filter) Wire() string { return topic.Wire(f.Name, f.Group) }

// subscription is the filter as it is subscribed to with a QoS.
func (f *Filter) subscription(qos byte) packet.Subscription {
	return packet.Subscription{
		Filter: f.Wire(), QoS: qos, NoLocal: f.NoLocal, RetainAsPublished: f.RetainAsPublished, RetainHandling: f.RetainHandling,
	}
}
