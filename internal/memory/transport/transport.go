// SPDX-License-Identifier: Apache-2.0

// Package transport is the plugin side of the memory transport: it dials the
// broker of a test and does what that tells it, faults included.
package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
	"github.com/longshore-go/longshore/pluginapi"
)

// Name is the transport's name.
const Name = "memory"

// Option tunes a Transport.
type Option func(*Transport)

// Dial replaces how the broker is dialed, a Unix socket by default; give
// Broker.Dial where transport and broker live in one process.
func Dial(dial func(ctx context.Context, address string) (net.Conn, error)) Option {
	return func(t *Transport) { t.dial = dial }
}

// Exit says how the process ends on command. By default only the transport
// falls silent, as its process would.
func Exit(exit func(status int)) Option {
	return func(t *Transport) { t.exit = exit }
}

// Match replaces how subscriptions match names, memory.Matches; it must be the
// broker's own.
func Match(match func(subscription, name string) bool) Option {
	return func(t *Transport) { t.match = match }
}

// Telling makes the transport tell the broker what it has handed on to the host
// and what was released.
func Telling() Option { return func(t *Transport) { t.tells = true } }

// Transport is the memory transport.
type Transport struct {
	dial  func(ctx context.Context, address string) (net.Conn, error)
	exit  func(status int)
	match func(subscription, name string) bool
	tells bool
	early *link // dialed before Configure, nil without
}

// New returns the transport.
func New(opts ...Option) *Transport {
	t := &Transport{dial: dialUnix, match: memory.Matches}
	for _, o := range opts {
		o(t)
	}
	return t
}

func dialUnix(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", address)
}

// Begin dials the broker that the environment names, so that a test can stop
// the plugin from its first moment on. It is for main; without the variable it
// does nothing.
func (t *Transport) Begin(ctx context.Context) error {
	address := os.Getenv(memory.EnvAddress)
	if address == "" {
		return nil
	}
	l := newLink(t, address, nil)
	if err := l.open(ctx, "", 0); err != nil {
		return fmt.Errorf("dial the memory broker of %s: %w", memory.EnvAddress, err)
	}
	t.early = l
	return l.at(ctx, memory.AtExec, "")
}

// Describe says that anything is possible.
func (t *Transport) Describe() pluginapi.Spec {
	if t.early != nil {
		// A Describe cannot fail.
		_ = t.early.at(context.Background(), memory.AtDescribe, "")
	}
	return pluginapi.Spec{
		Name:       Name,
		Version:    "0.1.0",
		Settings:   pluginapi.SchemaOf[settings.Settings](),
		Ceilings:   ceilings(),
		Publishing: core.Publishing{Confirms: core.ConfirmStored, Retains: core.RetainTransport, MaxDelay: 1 << 62, Dedups: true, Headers: core.HeadersNativeBytes, Repeats: true},
		Requests:   true,
		Seeks:      true,
		LinkStates: true,
	}
}

// ceilings returns one widest set for each value of the modes that do not
// contain each other.
func ceilings() []core.Capabilities {
	const anything = 1 << 62
	var cs []core.Capabilities
	for _, u := range []core.Unsettled{core.UnsettledOnResume, core.UnsettledOnDisconnect, core.UnsettledOnTimeout} {
		for _, reject := range []core.RejectMode{core.RejectDrops, core.RejectDeadLetters} {
			for _, hold := range []bool{false, true} {
				if u == core.UnsettledOnTimeout && !hold {
					continue
				}
				c := core.Capabilities{
					Ack: core.AckSingle, Requeue: core.RequeueDelayed, Reject: reject, Counts: core.CountNative,
					Address: settings.Own, Unsettled: u, Durable: true, Order: core.OrderTotal,
				}
				if hold {
					c.MaxHold, c.Extend = anything, true
				}
				cs = append(cs, c)
			}
		}
		c := core.Capabilities{
			Ack: core.AckCumulative, Counts: core.CountNative, Address: settings.Own, Unsettled: u,
			Durable: true, Order: core.OrderTotal,
		}
		if u == core.UnsettledOnTimeout {
			c.MaxHold, c.Extend = anything, true
		}
		cs = append(cs, c)
	}
	return append(cs, core.Capabilities{Address: settings.Own, Durable: true, Order: core.OrderTotal})
}

// Configure binds the settings.
func (t *Transport) Configure(s pluginapi.Settings) (pluginapi.Endpoint, error) {
	var set settings.Settings
	if err := s.Bind(&set); err != nil {
		return nil, err
	}
	if err := check(set); err != nil {
		return nil, err
	}
	e := &endpoint{transport: t, settings: set, name: s.Endpoint, generation: s.Generation, log: s.Logger}
	ctx := context.Background() // Configure has none; the host's limit ends the process
	switch {
	case t.early != nil:
		e.link = t.early
		e.link.log = e.logger()
		if err := e.link.rename(ctx, s.Endpoint, s.Generation); err != nil {
			return nil, err
		}
	case set.Control:
		e.link = newLink(t, set.Address, e.logger())
		if err := e.link.open(ctx, s.Endpoint, s.Generation); err != nil {
			return nil, unavailable("dial the memory broker", err)
		}
	}
	if err := e.link.at(ctx, memory.AtConfigure, ""); err != nil {
		return nil, err
	}
	return e, nil
}

// check reads every source and destination once.
func check(set settings.Settings) error {
	var wrong []core.Diagnostic
	add := func(err error) {
		var f *core.Fault
		if errors.As(err, &f) {
			wrong = append(wrong, f.Diagnostics...)
		}
	}
	for name, src := range set.Sources {
		for i, p := range src.Profiles {
			_, err := p.Capabilities(name, fmt.Sprintf("sources.%s.profiles[%d]", name, i))
			add(err)
		}
		for i, p := range src.Started {
			_, err := p.Capabilities(name, fmt.Sprintf("sources.%s.started[%d]", name, i))
			add(err)
		}
	}
	for name, d := range set.Destinations {
		_, err := d.Publishing("destinations." + name)
		add(err)
	}
	if len(wrong) > 0 {
		return &core.Fault{Code: core.FaultInvalid, Message: "read memory settings", Diagnostics: wrong}
	}
	return nil
}

// unavailable is the fault of a broker that cannot be reached.
func unavailable(doing string, err error) *core.Fault {
	return &core.Fault{Code: core.FaultUnavailable, Message: doing + ": " + err.Error(), Transient: true}
}
