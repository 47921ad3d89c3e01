// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"sync"
	"time"

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

// quiet is how long nothing is handled before that and behind it: acks that are
// under way would be cut off too, and what they are for would all come twice.
const quiet = 100 * time.Millisecond

// topic is where an airport is announced.
func (a airport) topic() string { return topicAirports + a.ICAO[:1] }

// towers is the third stage: a client whose session the broker keeps while it is
// away.
type towers struct {
	screen  *screen
	options Options
	broker  *broker
	known   map[string]bool // airports by their IATA code; the one worker's
	runs    int
}

func newTowers(s *screen, o Options, b *broker) *towers {
	return &towers{screen: s, options: o, broker: b, known: map[string]bool{}}
}

// declare declares the stage. It reads all regions with one filter. What is tried
// again goes to the topic that it came from, as nothing can be published to a
// filter.
func (t *towers) declare() *host.Host {
	h := host.New(host.WithLogger(watch(t.screen, t.options)))
	b := t.broker.endpoint(h, clientTowers)
	regions := b.Subscription(filterAirports, host.Options(mqtt.SubscribeOptions{Filter: true}))
	host.Handle(regions, t.handle, host.MaxAttempts(maxAttempts),
		host.RetryToFunc(func(m core.Message, _ uint64) (core.Destination, error) { return b.To(m.Name), nil }))
	return h
}

// subscribe leaves the subscription with the broker, and goes.
func (t *towers) subscribe(ctx context.Context) error {
	h := t.declare()
	return t.run(ctx, h, func(*counts) bool { return h.Ready() })
}

// listen gets what was announced meanwhile.
func (t *towers) listen(ctx context.Context) error {
	t.screen.towersBack()
	err := t.run(ctx, t.declare(), func(c *counts) bool { return c.told >= c.directory })
	if err == nil && ctx.Err() == nil {
		t.screen.towersTold()
	}
	return err
}

// run runs a host until something is so.
func (t *towers) run(ctx context.Context, h *host.Host, until func(*counts) bool) error {
	ctx, stop := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		t.screen.wait(ctx, arrival, until)
		stop()
	})
	err := run(ctx, h, t.options)
	stop()
	waiting.Wait()
	return err
}

// busyRegion is the region whose towers do not listen at first, and errTower why.
const busyRegion = "S"

var errTower = errors.New("its tower is busy")

// handle tells the towers of an airport. In the middle of it the connection is
// cut: what is not acked by then comes once more, and the tower may have it already.
func (t *towers) handle(ctx context.Context, m *host.Message[airport]) error {
	a := m.Value
	if t.runs++; t.runs == cutAt {
		never := func(*counts) bool { return false }
		t.screen.wait(ctx, quiet, never)
		t.broker.cut(clientTowers)
		t.screen.cutOff(a)
		t.screen.wait(ctx, quiet, never)
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
