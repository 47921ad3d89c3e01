// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/internal/reader"
	"github.com/longshore-go/longshore/plugins/file/settings"
	"github.com/longshore-go/longshore/plugins/internal/fault"
)

// conn is the connected endpoint.
type conn struct {
	path   string // without symbolic links
	groups string // the folder of the groups' positions
	log    *slog.Logger
	output *output
	places *places

	reader atomic.Pointer[reader.Reader] // nil: nothing is read yet

	mu     sync.Mutex // held while the reader is opened
	closed bool
}

// read returns the reader that all subscriptions share.
func (c *conn) read() (*reader.Reader, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fault.Closed("subscribe")
	}
	if r := c.reader.Load(); r != nil {
		return r, nil
	}
	r, err := reader.New(c.path, reader.Options{Logger: c.log})
	if err != nil {
		return nil, faultOf("open "+c.path+" to read", err)
	}
	c.reader.Store(r)
	return r, nil
}

// written wakes the reader: what this endpoint writes its own subscriptions see
// without waiting for a notification.
func (c *conn) written() {
	if r := c.reader.Load(); r != nil {
		r.Poke()
	}
}

// Subscribe opens a key or a pattern.
func (c *conn) Subscribe(ctx context.Context, r pluginapi.Registration) (pluginapi.Subscription, error) {
	if message, fix := badPattern(r.Name); message != "" {
		return nil, keyFault("subscribe", message, fix)
	}
	var o settings.Subscription
	if err := r.Options.Bind(&o); err != nil {
		return nil, err
	}
	from, err := c.read()
	if err != nil {
		return nil, err
	}
	if o.Group != "" {
		return c.subscribeGroup(ctx, from, &r, o)
	}
	return c.subscribe(from, &r, o)
}

// Publish appends messages in order. A receipt is confirmed when the record is
// with the operating system, with fsync: each when it is on the disk.
func (c *conn) Publish(ctx context.Context, msgs []pluginapi.Outgoing, done func(i int, r pluginapi.Receipt)) {
	c.output.publish(ctx, msgs, done)
}

// ReportResume hands over where the subscriptions stand, at every change.
func (c *conn) ReportResume(keep func([]byte)) { c.places.report(keep) }

// Close ends reading, writes what was accepted and lets go of the path.
func (c *conn) Close(ctx context.Context) ([]byte, error) {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	err := c.output.close(ctx, c.log)
	if r := c.reader.Load(); r != nil {
		err = errors.Join(err, r.Close(ctx))
	}
	if err != nil {
		err = faultOf("close "+c.path, err)
	}
	return c.places.close(), err
}
