// SPDX-License-Identifier: Apache-2.0

package mqtt

import (
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/session"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/topic"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// reader is a registration as the server sees it.
type reader struct {
	id      uint32
	name    string // a topic or a filter
	options settings.SubscribeOptions
	wire    string // the filter as it is subscribed to: "$share/workers/jobs"
}

func newReader(r *pluginapi.Registration, o *settings.SubscribeOptions) reader {
	return reader{id: r.ID, name: r.Name, options: *o, wire: topic.Wire(r.Name, o.Group)}
}

// filter is what its connection subscribes to.
func (r *reader) filter() session.Filter {
	o := &r.options
	handling := map[string]byte{settings.RetainHandlingAlways: 0, settings.RetainHandlingNew: 1, settings.RetainHandlingNever: 2}
	return session.Filter{
		Name: r.name, Group: o.Group, QoS: byte(*o.QoS), NoLocal: o.NoLocal,
		RetainAsPublished: o.RetainAsPublished, RetainHandling: handling[o.RetainHandling],
	}
}

// address is the topic under which copies come back to it, "" where there is
// none: a filter is no topic, and what a connection publishes does not come back
// to it with no_local [MQTT-3.8.3-3]. A copy leaves over the connection that its
// delivery came over.
func (r *reader) address() string {
	if r.options.Filter || r.options.NoLocal {
		return ""
	}
	return r.name
}

// reads reports whether it gets what is published to a topic over a connection.
func (r *reader) reads(name, connection string) bool {
	if r.options.NoLocal && r.options.Connection == connection {
		return false
	}
	return topic.Matches(r.name, name)
}

// profiles are the capabilities of its deliveries: those of QoS 0 have no ack, and
// a subscription to QoS 1 or 2 gets such as well, where they were published so. A
// server delivers in order within a topic alone [MQTT-4.6.0-5].
func (r *reader) profiles(qos int, kept bool) []core.Capabilities {
	order := core.OrderTotal
	if r.options.Filter {
		order = core.OrderNone
	}
	without := core.Capabilities{Address: r.address(), Order: order}
	if qos == 0 {
		return []core.Capabilities{without}
	}
	return []core.Capabilities{acknowledged(r.address(), kept, order), without}
}

// alike reports whether two readers of the same filter can share a subscription
// at the server.
func (r *reader) alike(o *reader) bool {
	a, b := &r.options, &o.options
	return *a.QoS == *b.QoS && a.RetainHandling == b.RetainHandling && a.NoLocal == b.NoLocal && a.RetainAsPublished == b.RetainAsPublished
}
