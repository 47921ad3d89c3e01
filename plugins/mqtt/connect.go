// SPDX-License-Identifier: Apache-2.0

package mqtt

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/client"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/intake"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/outbox"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/session"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// abandonLimit is how long the server is given to take leave of a connection that
// is not needed.
const abandonLimit = 2 * time.Second

// Connect opens the connections that the last Inspect asks for, and waits for all
// of them. What may pass is tried again until ctx ends.
func (e *endpoint) Connect(ctx context.Context, _ []byte) (pluginapi.Conn, error) {
	c := &conn{endpoint: e, connections: make(map[string]*connection)}
	byName := map[string][]reader{"": nil}
	for i := range e.readers {
		name := e.readers[i].options.Connection
		byName[name] = append(byName[name], e.readers[i])
	}
	if err := c.openAll(ctx, byName); err != nil {
		return nil, faultOf("connect endpoint "+e.name, err)
	}
	c.main = c.connections[""]
	c.requests = newRequests(c)
	e.introduce(c.main.Kept())
	return c, nil
}

// introduce says once what the settings, and a server that grants less, mean for
// what is left unsettled.
func (e *endpoint) introduce(granted bool) {
	if e.kept() && !granted { // 3.2.2.3.2
		e.log.Warn("the server does not keep the session, which session_expiry asks for: what is unsettled when the connection ends is lost",
			"session_expiry", e.settings.SessionExpiry.String(), "fix", "let the server keep sessions")
	}
	if e.kept() || !slices.ContainsFunc(e.readers, func(r reader) bool { return *r.options.QoS > 0 }) {
		return
	}
	text, fix := "the session is not kept: what is unsettled when the connection ends is lost", "set session_expiry, and clean_start: false to keep it over restarts as well"
	if e.settings.SessionExpiry > 0 {
		text, fix = "the session is not kept over restarts: what is unsettled when the service or its plugin ends is lost", "set clean_start: false"
	}
	e.log.Info(text, "clean_start", *e.settings.CleanStart, "session_expiry", e.settings.SessionExpiry.String(), "fix", fix)
}

// openAll opens connections beside each other. Where one cannot be opened none is.
func (c *conn) openAll(ctx context.Context, byName map[string][]reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var opening sync.WaitGroup
	var first error
	for name, readers := range byName {
		opening.Go(func() {
			o, err := c.open(ctx, name, readers)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				c.connections[name] = o
				return
			}
			if first == nil {
				first = err
				cancel()
			}
		})
	}
	opening.Wait()
	if first != nil {
		for name, o := range c.connections {
			c.drop(name, o)
		}
	}
	return first
}

// open opens a connection. Its filters are made known before, so that nothing that
// a kept session brings is taken for what nobody wants.
func (c *conn) open(ctx context.Context, name string, readers []reader) (*connection, error) {
	config, err := c.endpoint.session(name)
	if err != nil {
		return nil, err
	}
	config.State = c.links.add(name)
	o := &connection{Session: session.New(config), routes: make(map[string]*route)}
	for i := range readers {
		o.route(&readers[i])
	}
	if err := o.Start(ctx); err != nil {
		c.drop(name, o)
		return nil, err
	}
	return o, nil
}

// drop closes a connection that nobody uses.
func (c *conn) drop(name string, o *connection) {
	ctx, cancel := context.WithTimeout(context.Background(), abandonLimit)
	defer cancel()
	_ = o.Close(ctx, false) // why it is dropped says more
	c.links.remove(name)
}

// session is what one of the endpoint's connections is like.
func (e *endpoint) session(name string) (session.Config, error) {
	s := &e.settings
	c := session.Config{
		Kept: e.kept(), Log: e.log,
		Client: client.Config{
			Address: e.address, ConnectTimeout: time.Duration(s.ConnectTimeout), Log: e.log,
			Connect: packet.ConnectParams{
				ClientID: e.clientID(name), CleanStart: *s.CleanStart, KeepAlive: uint16(time.Duration(*s.KeepAlive) / time.Second),
				Username: e.user.Username, SessionExpiry: uint32(time.Duration(s.SessionExpiry) / time.Second),
				ReceiveMaximum: uint16(s.ReceiveMaximum), MaxPacket: uint32(s.MaxPacketSize),
			},
		},
		Intake: intake.Config{
			Log: e.log, ReceiveMaximum: s.ReceiveMaximum, QoS0Messages: s.QoS0Queue, QoS0Bytes: s.QoS0QueueBytes,
		},
		Outbox: outbox.Config{
			Window: s.PublishWindow, MaxPacket: int(s.MaxPacketSize), Log: e.log,
			// The last ones that there are: a server begins with 1, and some take an
			// identifier of ours for the same one of theirs, and forget their message.
			FirstID: outbox.MaxID + 1 - s.PublishWindow,
		},
	}
	if !e.user.Password.IsZero() {
		c.Client.Connect.Password = []byte(e.user.Password.Reveal())
	}
	if name == "" {
		c.Client.Connect.Will, c.Client.Connect.ResponseInformation = will(s.Will), true
	}
	if e.address.TLS {
		files := client.TLSFiles{CA: s.TLSCA, Cert: s.TLSCert, Key: s.TLSKey, ServerName: s.TLSServerName}
		var err error
		if c.Client.TLS, err = files.Load(); err != nil {
			return c, err
		}
	}
	return c, nil
}

// will is what the server publishes when the endpoint's own connection is lost.
func will(w *settings.Will) *packet.Will {
	if w == nil {
		return nil
	}
	return &packet.Will{
		Topic: w.Topic, Payload: []byte(w.Payload), QoS: byte(*w.QoS), Retain: w.Retain, ContentType: w.ContentType,
		Delay: seconds(w.Delay), Expiry: seconds(w.Expiry),
	}
}

func seconds(d core.Duration) uint32 { return uint32(time.Duration(d) / time.Second) }

// faultOf says what failed before an error. A server that is late may be in time
// when it is asked again.
func faultOf(doing string, err error) *core.Fault {
	f := fault.Of(doing, err)
	if errors.Is(err, context.DeadlineExceeded) {
		f.Transient = true
	}
	return f
}
