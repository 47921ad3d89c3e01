// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	mqtt "github.com/longshore-go/longshore/plugins/mqtt/settings"
	pulsar "github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// The names: what stands on one side under the first is on the other under the
// second.
const (
	seaTopic  = "harbour/notices"
	landTopic = "harbour-notices"
)

// crossed is the header of what has crossed the bridge; it says from which side.
// Messages with it are not taken back, which is what keeps them from going round
// and round. Two bridges beside one another must not share it by chance: each needs
// a header of its own, or names that only it reads.
const crossed = "bridge-from"

// bridge declares both ways and returns what counts the messages that crossed.
func bridge(h *host.Host, seaURL mqtt.URL, landURL pulsar.URL) *atomic.Int64 {
	sea := h.Endpoint("sea", host.Plugin{Name: "mqtt"}, mqtt.Settings{URL: seaURL, ClientID: "bridge"})
	land := h.Endpoint("land", host.Plugin{Name: "pulsar"}, pulsar.Settings{URL: landURL, DefaultSubscription: "bridge"})
	toSea, toLand := host.To[core.Message](h, sea.To(seaTopic)), host.To[core.Message](h, land.To(landTopic))
	n := new(atomic.Int64)

	// MQTT brings nothing back, so a retry is a copy. It goes to a topic of the
	// bridge's own: on the shared one everybody would get it.
	again := sea.To("bridge/again")
	rules := []host.Rule{host.MaxAttempts(3), host.DeadLetterTo(sea.To("bridge/dead")), host.RetryTo(again)}
	carry(sea.Subscription(seaTopic), toLand, "sea", n, rules...)
	carry(sea.Subscription(again.Name), toLand, "sea", n, rules...)

	// Pulsar brings it back and counts.
	carry(land.Subscription(landTopic), toSea, "land", n, host.MaxAttempts(3), host.DeadLetterTo(land.To("bridge-dead")))
	return n
}

// carry sends what one side says to the other. It is acked once the other side has
// it, and what that side does not take is tried again on this one.
func carry(from *host.Subscription, to *host.Publisher[core.Message], side string, n *atomic.Int64, rules ...host.Rule) {
	host.Handle(from, func(_ context.Context, m *host.Message[core.Message]) error {
		if m.Header(crossed) != "" {
			return nil // it comes from there
		}
		if err := to.PublishWith(m, core.Message{Payload: m.Payload(), Headers: goods(m.Headers(), side)}); err != nil {
			return err
		}
		n.Add(1)
		return nil
	}, append(rules, host.Publishes(to))...)
}

// goods are the headers that cross. The runtime's own stay behind: the count of
// attempts on this side is none on the other, as with [host.Forward]. Of a name
// that is there twice, which Pulsar cannot carry, the last one crosses.
func goods(hs core.Headers, side string) core.Headers {
	var out core.Headers
	for i, h := range hs {
		name := strings.ToLower(h.Name)
		if name == "x-ruststream-retry-count" || strings.HasPrefix(name, "x-longshore-") {
			continue
		}
		if !slices.ContainsFunc(hs[i+1:], func(later core.Header) bool { return strings.EqualFold(later.Name, h.Name) }) {
			out = append(out, h)
		}
	}
	return append(out, core.Header{Name: crossed, Value: []byte(side)})
}
