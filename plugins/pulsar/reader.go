// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/feed"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/topic"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// reader is a registration as the broker sees it.
type reader struct {
	id           uint32
	name         string // as registered
	options      settings.SubscribeOptions
	subscription string
	topics       []topic.Name
	pattern      *topic.Pattern // in place of topics
}

// readRegistration reads a registration, with what is wrong with its name and its
// options.
func (e *endpoint) readRegistration(g *pluginapi.Registration) (reader, []pluginapi.Finding) {
	r := reader{id: g.ID, name: g.Name}
	if err := g.Options.Bind(&r.options); err != nil {
		return r, findingsOf(err)
	}
	var found findings
	o := &r.options
	r.subscription = cmp.Or(o.Subscription, e.settings.DefaultSubscription)
	if r.subscription == "" {
		found.add("subscription", fmt.Sprintf("the topic %s has no subscription, and there is no default_subscription", shown(g.Name)),
			"name one with the option subscription, or set default_subscription: all that read under one name share the messages")
	}
	if why := badName(o.Subscription); why != "" {
		found.add("subscription", shown(o.Subscription)+" "+why, nameFix)
	}
	if why := badName(o.ConsumerName); why != "" {
		found.add("consumer_name", shown(o.ConsumerName)+" "+why, nameFix)
	}
	if o.Pattern {
		r.readPattern(&found)
	} else {
		r.readTopics(&found)
	}
	return r, found
}

// readPattern reads a name that is a pattern.
func (r *reader) readPattern(found *findings) {
	p, err := topic.ParsePattern(r.name)
	if err != nil {
		found.fault("name", err)
	} else {
		r.pattern = &p
	}
	if len(r.options.Topics) > 0 {
		found.add("topics", "is given beside pattern", "leave one of them out: a pattern finds its topics")
	}
}

// readTopics reads a name that is a topic, and those beside it.
func (r *reader) readTopics(found *findings) {
	for i, name := range append([]string{r.name}, r.options.Topics...) {
		path := "name"
		if i > 0 {
			path = fmt.Sprintf("topics[%d]", i-1)
		}
		n, err := topic.Parse(name)
		switch {
		case err != nil:
			found.fault(path, err)
			if i == 0 && strings.ContainsAny(name, `*+?()[]{}|^$\`) {
				(*found)[len(*found)-1].Fix += "; if it is a pattern, set pattern: true"
			}
		case slices.ContainsFunc(r.topics, func(o topic.Name) bool { return overlap(o, n) }):
			found.add(path, shown(name)+" is read already by this subscription", "name each topic once")
		default:
			r.topics = append(r.topics, n)
		}
	}
}

// overlap reports whether what is published to one of two topics can be in the
// other: one is a partition of the other, or both are the same.
func overlap(a, b topic.Name) bool {
	return a.Base() == b.Base() && (a.Partition == b.Partition || a.Partition == topic.NoPartition || b.Partition == topic.NoPartition)
}

// reads reports whether it gets what is published to a topic.
func (r *reader) reads(n topic.Name) bool {
	if r.pattern != nil {
		return r.pattern.Matches(n)
	}
	return slices.ContainsFunc(r.topics, func(o topic.Name) bool { return overlap(o, n) })
}

// source are the capabilities of its deliveries without the plugin's own delays.
func (r *reader) source() core.Capabilities {
	return source(r.options.Type, time.Duration(r.options.AckTimeout))
}

// feed is what is read, and how.
func (r *reader) feed(e *endpoint, c *client.Client) feed.Config {
	o, s := &r.options, &e.settings
	config := feed.Config{
		Client: c, Subscription: r.subscription, Type: types[o.Type], Pattern: r.pattern,
		Earliest: o.InitialPosition == settings.PositionEarliest, ReceiverQueue: o.ReceiverQueue, ReceiverBytes: int(o.ReceiverBytes), ConsumerName: o.ConsumerName,
		Discovery: time.Duration(s.DiscoveryInterval), RetryDelay: time.Duration(s.OperationRetryDelay), Log: e.log,
	}
	if s.OperationRetries != nil {
		config.Attempts = *s.OperationRetries
	}
	names := append([]string{r.name}, o.Topics...)
	for i, n := range r.topics {
		config.Topics = append(config.Topics, feed.Topic{Name: n, As: names[i]})
	}
	return config
}

// types are the protocol's values of the option type; never written to.
var types = map[string]wire.SubscriptionType{
	settings.TypeShared:    wire.Shared,
	settings.TypeExclusive: wire.Exclusive,
	settings.TypeFailover:  wire.Failover,
	settings.TypeKeyShared: wire.KeyShared,
}

// findings are what is wrong with a registration or a destination.
type findings []pluginapi.Finding

func (f *findings) add(option, message, fix string) {
	*f = append(*f, pluginapi.Finding{Option: option, Message: message, Fix: fix})
}

// fault adds what a fault says of an option.
func (f *findings) fault(option string, err error) {
	bad, ok := errors.AsType[*core.Fault](err)
	if !ok {
		f.add(option, err.Error(), "see the documentation of "+option)
		return
	}
	fix := ""
	if len(bad.Diagnostics) > 0 {
		fix = bad.Diagnostics[0].Fix
	}
	f.add(option, bad.Message, fix)
}

// findingsOf is why options cannot be read.
func findingsOf(err error) []pluginapi.Finding {
	bad, ok := errors.AsType[*core.Fault](err)
	if !ok || len(bad.Diagnostics) == 0 {
		return []pluginapi.Finding{{Message: err.Error(), Fix: "see the documentation of the options"}}
	}
	return refusals(bad.Diagnostics)
}

// refusals are diagnostics as findings.
func refusals(wrong []core.Diagnostic) findings {
	var found findings
	for _, d := range wrong {
		found.add(d.Path, d.Message, d.Fix)
	}
	return found
}

// shown is a foreign name for people.
func shown(name string) string { return fault.Shown(name) }
