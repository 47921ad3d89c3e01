// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq"
)

// What the SDK and a host would have in work.
const (
	window      = 1024
	windowBytes = 8 << 20
)

// longshore is the end as our transport, called as the SDK calls it.
func (e *end) longshore(ctx context.Context) error {
	name := e.messages[0].Name
	var u pluginapi.Usage
	pattern := "queue"
	switch e.role {
	case "pull":
		u.Registrations = []pluginapi.Registration{{Name: name}}
	case "push":
		u.Destinations = []pluginapi.Target{{Name: name, Purpose: pluginapi.PurposeApplication}}
	case "dealer":
		pattern = "rpc"
	default:
		return fmt.Errorf("longshore has no role %q here: use push, pull or dealer", e.role)
	}
	endpoint, err := e.configure(pattern)
	if err != nil {
		return err
	}
	endpoint.Inspect(u)
	conn, err := endpoint.Connect(ctx, nil)
	if err != nil {
		return err
	}
	e.at <- where(conn, e.address)
	switch e.role {
	case "push":
		return e.publish(ctx, conn)
	case "dealer":
		return e.ask(ctx, conn)
	}
	s, err := conn.Subscribe(ctx, u.Registrations[0])
	if err != nil {
		return err
	}
	return e.receive(ctx, s)
}

// configure makes an endpoint for the end's address.
func (e *end) configure(pattern string) (pluginapi.Endpoint, error) {
	set := map[string]any{"pattern": pattern}
	if e.bind {
		set["bind"] = e.address
	} else {
		set["connect"] = []string{e.address}
	}
	b, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	return zmq.New().Configure(pluginapi.Settings{
		Options: pluginapi.NewOptions(b), Endpoint: "bench", Generation: 1, Logger: slog.New(slog.DiscardHandler),
	})
}

// where is the address that a connection listens at, or dials.
func where(conn pluginapi.Conn, dialed string) string {
	if a, ok := conn.(pluginapi.Addresser); ok && len(a.Addresses()) > 0 {
		return a.Addresses()[0]
	}
	return dialed
}

// publish publishes with a window of receipts.
func (e *end) publish(ctx context.Context, conn pluginapi.Conn) error {
	open := max(1, min(window, windowBytes/max(1, len(e.messages[0].Payload))))
	batch := make([]pluginapi.Outgoing, min(open, frame.MaxItems))
	for i := range batch {
		batch[i] = pluginapi.Outgoing{Message: e.messages[i%len(e.messages)], Purpose: pluginapi.PurposeApplication}
	}
	room := make(chan struct{}, open)
	var failed atomic.Pointer[core.Fault]
	for failed.Load() == nil {
		for range batch {
			room <- struct{}{}
		}
		conn.Publish(ctx, batch, func(_ int, r pluginapi.Receipt) {
			if r.Status != pluginapi.ReceiptConfirmed {
				failed.Store(r.Fault)
			}
			e.count.Add(1)
			<-room
		})
	}
	return failed.Load()
}

// receive takes what comes, with the room that a settled window has.
func (e *end) receive(ctx context.Context, s pluginapi.Subscription) error {
	for {
		b, err := s.Receive(ctx, pluginapi.Room{Messages: frame.MaxItems, Bytes: windowBytes})
		if err != nil {
			return err
		}
		e.count.Add(uint64(len(b.Deliveries)))
		if b.Memory != nil {
			b.Memory.Release()
		}
	}
}

// ask sends one request after another.
func (e *end) ask(ctx context.Context, conn pluginapi.Conn) error {
	requester, ok := conn.(pluginapi.Requester)
	if !ok {
		return errors.New("our transport has no requests")
	}
	for i := 0; ; i++ {
		at := time.Now()
		if _, err := requester.Request(ctx, pluginapi.Outgoing{Message: e.messages[i%len(e.messages)]}); err != nil {
			return err
		}
		e.trips.Add(time.Since(at))
		e.count.Add(1)
	}
}
