// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// The pauses of Receive while the server is not reachable.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// subscription reads one stream as one consumer of a group.
type subscription struct {
	conn                    *conn
	stream, group, consumer string
	hold                    time.Duration

	waiter   *redis.Client // waits for new entries
	waiterID atomic.Int64  // of its connection on the server
	woken    chan struct{} // capacity 1: there is something for Receive
	leases   leases
	closing  sync.Once

	// Of Receive.
	look  time.Time // when to ask the server again for what is due
	pause time.Duration
}

func newSubscription(c *conn, r pluginapi.Registration, group string) *subscription {
	s := &subscription{
		conn: c, stream: r.Name, group: group,
		consumer: fmt.Sprintf("%s-%d", c.consumer, r.ID), // two registrations may share a group
		hold:     time.Duration(c.endpoint.settings.Hold),
		woken:    make(chan struct{}, 1),
		leases:   leases{byID: make(map[string]*lease)},
		pause:    firstPause,
	}
	s.waiter = s.newWaiter()
	return s
}

// Profiles are what Inspect said, and no more than the server can do.
func (s *subscription) Profiles() []core.Capabilities {
	return []core.Capabilities{capabilities(s.stream, s.hold, s.conn.durable)}
}

// Receive takes what is there, and waits where there is nothing. What is void is
// told first: an entry that is delivered again was void before.
func (s *subscription) Receive(ctx context.Context, room pluginapi.Room) (pluginapi.Batch, error) {
	for ctx.Err() == nil {
		var b pluginapi.Batch
		var due bool
		if b.Voids, due = s.leases.expire(time.Now()); due {
			s.look = time.Time{}
		}
		var err error
		switch {
		case room.Messages > 0:
			err = s.take(ctx, room, &b)
		case len(b.Voids) == 0:
			s.sleep(ctx, s.leases.next(time.Now().Add(poll)))
		}
		if err = s.survive(ctx, err, &b); err != nil || len(b.Voids)+len(b.Reports)+len(b.Deliveries) > 0 {
			return b, err
		}
	}
	return pluginapi.Batch{}, ctx.Err()
}

// take asks the server for what is due and what is new, and waits for something
// new where there is neither. The server has to go through all that is pending to
// find what is due, so it does when something of this process is, and once per
// poll for what others held.
func (s *subscription) take(ctx context.Context, room pluginapi.Room, b *pluginapi.Batch) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerLimit)
	defer cancel()
	now := time.Now()
	look := !now.Before(s.look)
	t, err := s.runTake(limited, room, look)
	if err != nil {
		return err
	}
	if look && !t.full { // else there may be more
		s.look = now.Add(poll)
	}
	for _, id := range t.deleted {
		b.Reports = append(b.Reports, pluginapi.Report{Position: id, Fault: &core.Fault{
			Code:    core.FaultNotFound,
			Message: "entry was deleted from stream " + s.stream + " while it was pending; it does not come again",
		}})
	}
	if len(t.entries)+len(t.deleted)+len(b.Voids) == 0 {
		t.entries, err = s.await(ctx, s.leases.next(s.look))
	}
	s.deliver(t.entries, b)
	return err
}

// deliver makes deliveries of entries, and voids what they replace.
func (s *subscription) deliver(entries []entry, b *pluginapi.Batch) {
	until := time.Now().Add(s.hold)
	for _, e := range entries {
		m, fault := messageOf(s.stream, e.fields)
		handle, voids := s.leases.add(e, until)
		b.Voids = append(b.Voids, voids...)
		b.Deliveries = append(b.Deliveries, pluginapi.Delivery{
			Handle:      handle,
			Message:     m,
			Attempt:     uint32(min(e.count, math.MaxUint32)),
			Identity:    []byte(e.id),
			PublishedAt: timeOf(e.id),
			Undecodable: fault,
		})
	}
}

// survive waits after an error that passes by itself, and returns any other. A
// group that is gone has taken with it what was pending.
func (s *subscription) survive(ctx context.Context, err error, b *pluginapi.Batch) error {
	if err == nil {
		s.pause = firstPause
		return nil
	}
	fault := s.conn.endpoint.fault(err)
	switch {
	case code(err) == "NOGROUP":
		b.Voids = append(b.Voids, pluginapi.Void{All: true})
		return fault
	case !fault.Transient || errors.Is(err, redis.ErrClosed):
		return fault
	}
	s.sleep(ctx, time.Now().Add(s.pause))
	s.pause = min(2*s.pause, lastPause)
	return nil
}

// Close leaves what has no verdict pending: it comes again when its hold is over.
func (s *subscription) Close(ctx context.Context) error {
	var err error
	s.closing.Do(func() {
		err = s.runLeave(ctx)
		s.conn.forget(s)
		_ = s.waiter.Close()
	})
	if err != nil && code(err) != "NOGROUP" {
		return s.conn.endpoint.fault(err)
	}
	return nil
}
