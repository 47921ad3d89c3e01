// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/bench/peer"
)

// clientEnd is a client of a broker under measurement.
type clientEnd interface {
	ask() (peer.State, error)
	// publish begins to publish: as fast as it goes, or one message every so often.
	publish(messages int, every time.Duration) error
	// plugin is the process of its plugin, 0 = it has none.
	plugin() int
	close() error
}

// clientPeer is a process of its own.
type clientPeer struct{ peerEnd }

func (p clientPeer) publish(messages int, every time.Duration) error {
	_, err := p.Tell(fmt.Sprintf("%d %v", messages, every))
	return err
}

// clientHost is a host with its plugin: this process, and a child.
type clientHost struct {
	hostEnd
	arrived peer.Arrivals
	orders  chan sendOrder
}

// sendOrder is what is to be published: as fast as it goes, or one message every so
// often, which has its time.
type sendOrder struct {
	messages int
	every    time.Duration
}

// serve runs the host until it is closed.
func (e *clientHost) serve(ctx context.Context, h *host.Host, task func(ctx context.Context) error) error {
	e.run = runHost(ctx, h)
	if err := e.run.until(ctx, func() bool { return h.Health().Ready }); err != nil {
		return errors.Join(err, e.run.end())
	}
	ctx, e.stop = context.WithCancel(ctx)
	if task != nil {
		e.tasks.Go(func() { e.err = task(ctx) })
	}
	return nil
}

// fulfil publishes, and waits for the last receipt.
func (e *clientHost) fulfil(ctx context.Context, to *host.Publisher[core.Message], messages []core.Message, o sendOrder, options []host.SendOption) error {
	var last *host.Pending
	for i := range o.messages {
		m := messages[i%len(messages)]
		if o.every > 0 {
			if err := sleep(ctx, o.every); err != nil {
				return nil //nolint:nilerr // it was told to end
			}
			m.Payload = slices.Clone(m.Payload)
			peer.Stamp(m.Payload)
		}
		p, err := to.PublishAsync(ctx, m, options...)
		if err != nil {
			return unexpected(ctx, err)
		}
		last = p
	}
	_, err := last.Receipt(ctx)
	return unexpected(ctx, err)
}

func (e *clientHost) ask() (peer.State, error) {
	s, err := e.hostEnd.ask()
	e.arrived.Tell(&s)
	return s, err
}

func (e *clientHost) publish(messages int, every time.Duration) error {
	e.orders <- sendOrder{messages, every}
	return nil
}
