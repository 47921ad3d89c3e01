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

// Ask sends a request and waits for its answer, which is of a type, for no longer than
// OperationTimeout. A refusal is a *ServerError, an end of the connection before the
// answer a *LostError, and of ctx its cause: an answer that comes later is dropped.
func (c *Conn) Ask(ctx context.Context, want wire.Type, request func(dst []byte, number uint64) []byte) (wire.Command, error) {
	ctx, cancel := c.client.limited(ctx)
	defer cancel()
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
	case <-c.done:
		return wire.Command{}, c.Err()
	case <-ctx.Done():
		return wire.Command{}, context.Cause(ctx)
	}
	answer := make(chan wire.Command, 1)
	c.mu.Lock()
	c.number++
	number := c.number
	c.asked[number] = answer
	c.used = time.Now()
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.asked, number)
		c.mu.Unlock()
	}()
	c.Send(func(dst []byte) []byte { return request(dst, number) })
	select {
	case m := <-answer:
		return c.fits(m, want)
	case <-c.done:
	case <-ctx.Done():
		return wire.Command{}, context.Cause(ctx)
	}
	select { // it may have come before the end
	case m := <-answer:
		return c.fits(m, want)
	default:
		return wire.Command{}, c.Err()
	}
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
	waiting := c.asked[m.Request]
	delete(c.asked, m.Request)
	given := m.Request > 0 && m.Request <= c.number
	c.mu.Unlock()
	switch {
	case waiting != nil:
		waiting <- *m
	case m.Type == wire.TypeError && !given:
		return &ServerError{m.Code, m.Message}
	}
	return nil
}
