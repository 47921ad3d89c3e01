// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	mqtt "github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// The topics of airports are these with one level more, the region: the first
// letter of their ICAO code.
const (
	topicAirports  = "airports/"
	filterAirports = topicAirports + "+"
)

// clientTowers is the client id of the third stage.
const clientTowers = "demo-towers"

// cutAt is how many airports the third stage has handled when its connection is
// cut.
const cutAt = 100

// topic is where an airport is announced.
func (a airport) topic() string { return topicAirports + a.ICAO[:1] }

// towers is the third stage.
type towers struct {
	host   *host.Host
	screen *screen
	broker *broker
	known  map[string]bool // airports by their IATA code; the one worker's
	runs   int
}

// newTowers declares the third stage. It reads all regions with one filter. What
// is tried again goes to the topic that it came from, as nothing can be published
// to a filter.
func newTowers(s *screen, o Options, b *broker) *towers {
	t := &towers{screen: s, broker: b, known: map[string]bool{}, host: host.New(host.WithLogger(watch(s, o)))}
	e := b.endpoint(t.host, clientTowers)
	regions := e.Subscription(filterAirports, host.Options(mqtt.SubscribeOptions{Filter: true}))
	host.Handle(regions, t.handle, host.MaxAttempts(maxAttempts),
		host.RetryToFunc(func(m core.Message, _ uint64) (core.Destination, error) { return e.To(m.Name), nil }))
	return t
}

// busyRegion is the region whose towers do not listen at first, and errTower why.
const busyRegion = "S"

var errTower = errors.New("its tower is busy")

// handle tells the towers of an airport. In the middle of it the connection is
// cut: what is not acked by then comes once more, and the tower has it already.
func (t *towers) handle(_ context.Context, m *host.Message[airport]) error {
	a := m.Value
	if t.runs++; t.runs == cutAt {
		t.broker.cut(clientTowers)
		t.screen.cutOff(a)
	}
	switch {
	case t.known[a.IATA]:
		t.screen.count(func(c *counts) { c.twice++ })
		return nil
	case a.ICAO[:1] == busyRegion && m.Attempt() <= 1:
		t.screen.busy(a)
		return errTower
	}
	t.known[a.IATA] = true
	t.screen.count(func(c *counts) { c.told++ })
	return nil
}
