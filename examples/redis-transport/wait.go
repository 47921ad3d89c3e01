// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// The wait for something new.
const (
	// poll is how often a subscription looks for entries whose hold is over
	// elsewhere, and the longest that it waits without looking.
	poll = time.Second
	// answerLimit is what an answer may take: Receive has to return within five
	// seconds of the end of its context, whatever the server does.
	answerLimit = 3 * time.Second
	// unblockPause is between two tries to end a wait that had not begun yet.
	unblockPause = 2 * time.Millisecond
)

// newWaiter returns a client of one connection that tells its id, by which the
// server ends its wait.
func (s *subscription) newWaiter() *redis.Client {
	o := s.conn.endpoint.clientOptions()
	o.PoolSize, o.MaxActiveConns, o.PipelinePoolSize = 1, 1, -1
	o.ReadTimeout += poll
	o.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
		id, err := cn.ClientID(ctx).Result()
		s.waiterID.Store(id)
		return err
	}
	return redis.NewClient(o)
}

// await waits until limit for a new entry, or until ctx ends or the subscription
// is woken. The server is asked to end the wait, and its answer is read: were the
// connection cut instead, an entry that is on its way would be delivered and
// nobody would see it before its hold is over.
func (s *subscription) await(ctx context.Context, limit time.Time) ([]entry, error) {
	wait := time.Until(limit)
	if wait <= 0 {
		return nil, nil
	}
	reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait+answerLimit)
	defer cancel()
	over := make(chan struct{})
	var unblocker sync.WaitGroup
	unblocker.Go(func() {
		exact := time.NewTimer(wait) // the server ends waits by a tenth of a second
		defer exact.Stop()
		select {
		case <-exact.C:
		case <-ctx.Done():
		case <-s.woken:
		case <-over:
			return
		}
		s.unblock(reading, over)
	})
	entries, err := s.readNew(reading, wait)
	if err != nil && code(err) == "" {
		s.waiterID.Store(0) // the connection is broken, and its id may become another's
	}
	close(over)
	unblocker.Wait()
	return entries, err
}

// unblock ends the wait under way. One that has not reached the server yet cannot
// be ended, so it tries again.
func (s *subscription) unblock(ctx context.Context, over <-chan struct{}) {
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-again.C:
		case <-over:
			return
		}
		if id := s.waiterID.Load(); id != 0 {
			if n, err := s.conn.client.ClientUnblock(ctx, id).Result(); n == 1 || err != nil {
				return // without the permission the wait ends at poll
			}
		}
		again.Reset(unblockPause)
	}
}

// sleep waits until at, or until ctx ends or the subscription is woken.
func (s *subscription) sleep(ctx context.Context, at time.Time) {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.woken:
	case <-ctx.Done():
	}
}

// wake makes Receive look again.
func (s *subscription) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}
