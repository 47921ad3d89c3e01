// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/client"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// subscribe makes a consumer for a partition. It returns when ctx ends; what the broker
// makes all the same is closed. The first consumer of a partition may have the broker
// create it, as all clients do. Behind that nothing does: a topic that was deleted stays
// so.
func (f *Feed) subscribe(ctx context.Context, p *Partition) (*member, error) {
	select {
	case f.openings <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-f.openings }()
	conn, err := f.Client.Broker(ctx, p.Scope)
	if err != nil {
		return nil, err
	}
	m := newMember(p, conn)
	m.id = conn.Consumer(m)
	first := p.epoch.Load() == 0
	s := wire.Subscribe{
		ID: m.id, Topic: p.Scope, Subscription: f.Subscription, Name: f.ConsumerName, Type: f.Type,
		// A subscription that was there and is not any more went with its topic: what comes
		// now is all of a new one.
		Earliest: !first || p.beginsEarliest(),
		Create:   first,
	}
	_, err = conn.Ask(ctx, wire.TypeSuccess, func(dst []byte, number uint64) []byte {
		return wire.AppendSubscribe(dst, number, s)
	})
	if err == nil {
		return m, nil
	}
	if _, refused := errors.AsType[*client.ServerError](err); refused {
		conn.ForgetConsumer(m.id)
		m.lose(err)
	} else {
		f.calls.Go(func() { m.close(f.times.closing) })
	}
	return nil, err
}
