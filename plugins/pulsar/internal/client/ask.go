// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// maxAsked is how many requests wait for an answer on a connection; others wait for
// their turn.
const maxAsked = 256

// question is what waits for an answer. It is used again: acks are asked for all the time.
type question struct {
	answer chan wire.Command // holds one
	limit  *time.Timer
}

func newQuestion() any { return &question{make(chan wire.Command, 1), time.NewTimer(time.Hour)} }

// Ask sends a request and waits for its answer, which is of a type, for no longer than
// OperationTimeout. A refusal is a *ServerError, an end of the connection before the
// answer a *LostError, and of ctx its cause: an answer that comes later is dropped.
func (c *Conn) Ask(ctx context.Context, want wire.Type, request func(dst []byte, number uint64) []byte) (wire.Command, error) {
	q := c.client.questions.Get().(*question) //nolint:forcetypeassert // as newQuestion returns
	defer c.client.putBack(q)
	q.limit.Reset(c.client.config.OperationTimeout)
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
	case <-c.done:
		return wire.Command{}, c.Err()
	case <-ctx.Done():
		return wire.Command{}, context.Cause(ctx)
	case <-q.limit.C:
		return wire.Command{}, c.client.late
	}
	number := c.expect(q)
	defer c.expectNot(number)
	c.Send(func(dst []byte) []byte { return request(dst, number) })
	select {
	case m := <-q.answer:
		return c.fits(m, want)
	case <-c.done:
	case <-ctx.Done():
		return wire.Command{}, context.Cause(ctx)
	case <-q.limit.C:
		return wire.Command{}, c.client.late
	}
	select { // it may have come before the end
	case m := <-q.answer:
		return c.fits(m, want)
	default:
		return wire.Command{}, c.Err()
	}
}

// putBack has a question used again to which no answer is expected any more.
func (c *Client) putBack(q *question) {
	q.limit.Stop()
	select {
	case <-q.answer:
	default:
	}
	c.questions.Put(q)
}

// expect gives a request its number.
func (c *Conn) expect(q *question) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number++
	c.asked[c.number] = q
	c.used = time.Now()
	return c.number
}

func (c *Conn) expectNot(number uint64) {
	c.mu.Lock()
	delete(c.asked, number)
	c.mu.Unlock()
}

// fits returns an answer that is of a type.
func (c *Conn) fits(m wire.Command, want wire.Type) (wire.Command, error) {
	switch {
	case m.Failed:
		return wire.Command{}, &ServerError{m.Code, m.Message}
	case m.Type != want:
		err := fmt.Errorf("%s came in place of %s", m.Type, want)
		c.end(err)
		return wire.Command{}, err
	}
	return m, nil
}

// answer passes an answer to who waits for it. One to a request that was given up is
// dropped; an ERROR to none is one of the connection: credentials that are not valid any
// more. What is no answer is of no concern.
func (c *Conn) answer(m *wire.Command) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.asked[m.Request]; q != nil {
		delete(c.asked, m.Request)
		q.answer <- *m // under the lock: behind expectNot nothing comes
		return nil
	}
	if m.Type == wire.TypeError && (m.Request == 0 || m.Request > c.number) {
		return &ServerError{m.Code, m.Message}
	}
	return nil
}
