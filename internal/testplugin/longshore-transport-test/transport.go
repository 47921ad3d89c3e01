// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/testplugin/control"
	"github.com/longshore-go/longshore/pluginapi"
)

// transport is a source that never ends and a destination that takes all. It
// visits the test at every step of its life.
type transport struct {
	mode  string
	stdio *pluginapi.Stdio
	log   func(msg string, args ...any)
}

func capabilities() core.Capabilities {
	return core.Capabilities{Ack: core.AckSingle, Unsettled: core.UnsettledOnDisconnect}
}

func (t *transport) Describe() pluginapi.Spec {
	control.At("Describe")
	s := pluginapi.Spec{Name: "test", Version: "1", Ceilings: []core.Capabilities{capabilities()}, LinkStates: true}
	switch t.mode {
	case "other-name":
		s.Name = "other"
	case "large":
		s.Requests = true
	case "never":
		s.NeverRestart = true
	case "panics":
		panic("describe is not there yet")
	}
	return s
}

func (t *transport) Configure(s pluginapi.Settings) (pluginapi.Endpoint, error) {
	control.At("Configure")
	t.stdio, t.log = s.Stdio, s.Logger.Info
	switch t.mode {
	case "refuses":
		return nil, &pluginapi.Fault{
			Code: core.FaultInvalid, Message: "settings refused",
			Diagnostics: []core.Diagnostic{{Path: "url", Message: "bad address", Fix: "use host:port"}},
		}
	case "noise-after":
		noise()
	case "logs":
		s.Logger.Warn("long record", "text", strings.Repeat("l", 100<<10), "number", 7)
	case "goroutine-panics":
		go func() { panic("lost my mind") }()
		select {}
	case "environment":
		_ = os.WriteFile(os.Getenv(control.EnvArg), []byte(strings.Join(os.Environ(), "\n")), 0o600)
	case "exits":
		later(3)
	}
	return t, nil
}

func (t *transport) Inspect(u pluginapi.Usage) pluginapi.Inspection {
	control.At("Inspect")
	var i pluginapi.Inspection
	for range u.Registrations {
		i.Registrations = append(i.Registrations, pluginapi.RegistrationReport{Profiles: []core.Capabilities{capabilities()}})
	}
	for range u.Destinations {
		i.Destinations = append(i.Destinations, pluginapi.TargetReport{})
	}
	return i
}

func (t *transport) Connect(context.Context, []byte) (pluginapi.Conn, error) {
	control.At("Connect")
	return &conn{t: t, closed: make(chan struct{})}, nil
}

type conn struct {
	t      *transport
	once   sync.Once
	closed chan struct{}
}

func (c *conn) ReportLink(report func(pluginapi.LinkState)) { report(pluginapi.LinkState{Up: true}) }

func (c *conn) ReportResume(keep func([]byte)) { keep([]byte("from the start")) }

func (c *conn) Subscribe(context.Context, pluginapi.Registration) (pluginapi.Subscription, error) {
	control.At("Subscribe")
	if c.t.mode == "echo" && c.t.stdio != nil {
		return &echo{stdio: c.t.stdio}, nil
	}
	return &subscription{}, nil
}

func (c *conn) Publish(_ context.Context, msgs []pluginapi.Outgoing, done func(int, pluginapi.Receipt)) {
	for i := range msgs {
		done(i, pluginapi.Receipt{Status: pluginapi.ReceiptConfirmed})
	}
}

// Request answers with the request.
func (c *conn) Request(_ context.Context, m pluginapi.Outgoing) (core.Message, error) { //nolint:unparam // pluginapi.Requester has it
	return core.Message{Name: "reply", Payload: m.Message.Payload}, nil
}

// Close visits the test, and is deaf to its context in one mode.
func (c *conn) Close(ctx context.Context) ([]byte, error) {
	control.At("Close")
	if c.t.mode == "deaf" {
		select {}
	}
	c.once.Do(func() { close(c.closed) })
	return []byte("from the end"), ctx.Err()
}

// subscription delivers numbered messages without an end.
type subscription struct{ n int }

func (s *subscription) Profiles() []core.Capabilities { return []core.Capabilities{capabilities()} }

func (s *subscription) Receive(ctx context.Context, room pluginapi.Room) (pluginapi.Batch, error) {
	var b pluginapi.Batch
	for len(b.Deliveries) < min(room.Messages, 16) {
		s.n++
		if s.n == 1000 {
			control.At("load")
		}
		b.Deliveries = append(b.Deliveries, pluginapi.Delivery{
			Handle: s.n, Message: core.Message{Name: "numbers", Payload: fmt.Appendf(nil, "%d", s.n)},
		})
	}
	return b, ctx.Err()
}

func (s *subscription) Settle(_ context.Context, vs []pluginapi.Verdict) []pluginapi.Result {
	rs := make([]pluginapi.Result, len(vs))
	for i := range rs {
		rs[i].Status = pluginapi.ResultDone
	}
	return rs
}

func (s *subscription) Close(context.Context) error { return nil }

// echo delivers what comes on the host's standard input and prints what is
// acked to its standard output.
type echo struct {
	subscription
	stdio *pluginapi.Stdio
}

func (e *echo) Receive(ctx context.Context, _ pluginapi.Room) (pluginapi.Batch, error) {
	buf := make([]byte, 4096)
	n, err := e.stdio.In.Read(ctx, buf)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			fmt.Fprintln(os.Stderr, "read standard input:", err)
		}
		return pluginapi.Batch{}, err
	}
	text := string(buf[:n])
	return pluginapi.Batch{Deliveries: []pluginapi.Delivery{{Handle: text, Message: core.Message{Name: "in", Payload: buf[:n]}}}}, nil
}

func (e *echo) Settle(ctx context.Context, vs []pluginapi.Verdict) []pluginapi.Result {
	rs := make([]pluginapi.Result, len(vs))
	for i, v := range vs {
		rs[i].Status = pluginapi.ResultDone
		text, _ := v.Handle.(string)
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		if _, err := e.stdio.Out.Write(limited, []byte("echo "+text)); err != nil {
			rs[i] = pluginapi.Result{Status: pluginapi.ResultFailed, Fault: &pluginapi.Fault{Code: core.FaultInternal, Message: err.Error()}}
		}
		cancel()
	}
	return rs
}
