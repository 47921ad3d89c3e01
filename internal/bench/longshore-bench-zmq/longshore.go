// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"

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
	if e.role != "push" && e.role != "pull" {
		return fmt.Errorf("longshore has no role %q here: use push or pull", e.role)
	}
	set := map[string]any{"pattern": "queue"}
	if e.bind {
		set["bind"] = e.address
	} else {
		set["connect"] = []string{e.address}
	}
	b, err := json.Marshal(set)
	if err != nil {
		return err
	}
	endpoint, err := zmq.New().Configure(pluginapi.Settings{
		Options: pluginapi.NewOptions(b), Endpoint: "bench", Generation: 1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	name := e.messages[0].Name
	var u pluginapi.Usage
	if e.role == "pull" {
		u.Registrations = []pluginapi.Registration{{Name: name}}
	} else {
		u.Destinations = []pluginapi.Target{{Name: name, Purpose: pluginapi.PurposeApplication}}
	}
	endpoint.Inspect(u)
	conn, err := endpoint.Connect(ctx, nil)
	if err != nil {
		return err
	}
	e.at <- where(conn, e.address)
	if e.role == "push" {
		return e.publish(ctx, conn)
	}
	s, err := conn.Subscribe(ctx, u.Registrations[0])
	if err != nil {
		return err
	}
	return e.receive(ctx, s)
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
