// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"slices"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// Plugin says which transport an endpoint is attached to and how its process is
// run.
type Plugin struct {
	// Name is the transport's name; its file is longshore-transport-<name>.
	Name string
	// Path is the file. The default is the first of $LONGSHORE_PLUGIN_DIR, the
	// executable's folder, $XDG_DATA_HOME/longshore/plugins and PATH that has it.
	Path string
	// Checksum is what the file must have, "sha256:" and the sum in hex. The
	// default is not to check.
	Checksum string
	// Env names variables of the host's environment that are passed on, beside
	// the few that every plugin gets.
	Env []string
	// Stdio hands the host's standard input and output to the plugin; one
	// endpoint of a host can have them.
	Stdio *Stdio
	// Optional keeps the host running while the plugin cannot be kept alive: it
	// is not ready then, and tries once a minute.
	Optional bool
	// InProcess runs this transport within the host, without a process; all the
	// fields above but Optional and Stdio are not used.
	InProcess pluginapi.Transport
}

// Stdio is a standard input and output. What is nil is the process's own.
type Stdio struct{ In, Out *os.File }

// files returns the two files.
func (s *Stdio) files() (in, out *os.File) {
	in, out = s.In, s.Out
	if in == nil {
		in = os.Stdin
	}
	if out == nil {
		out = os.Stdout
	}
	return in, out
}

// Endpoint is one attached, configured transport, as [Host.Endpoint] returns it.
type Endpoint struct {
	host     *Host
	name     string
	plugin   Plugin
	settings any
	place    place
	subs     []*Subscription
	defaults []Rule
}

// Endpoint attaches a transport under a name. settings is a struct of the
// transport's settings package, a map, or nil for none. The name stands in logs
// and errors and in destinations; it is given once.
func (h *Host) Endpoint(name string, p Plugin, settings any) *Endpoint {
	h.registering("Endpoint")
	e := &Endpoint{host: h, name: name, plugin: p, settings: settings, place: caller()}
	if name == "" {
		h.complain(Finding{
			Option: "Endpoint", Message: "an endpoint has no name", Fix: "give it one", Places: places(e.place),
		})
		return e
	}
	if p.Name == "" && p.InProcess == nil {
		h.complain(Finding{
			Endpoint: name, Option: "Plugin.Name", Message: "names no transport", Fix: "set Plugin.Name", Places: places(e.place),
		})
		return e
	}
	if former, ok := h.byName[name]; ok {
		h.complain(Finding{
			Endpoint: name, Option: "Endpoint", Message: "attached twice", Fix: "give the second one a name of its own",
			Places: places(former.place, e.place),
		})
		return e
	}
	if replace := h.options.plugins; replace != nil {
		e.plugin, e.settings = replace(name, p, settings)
	}
	h.byName[name] = e
	h.endpoints = append(h.endpoints, e)
	return e
}

// made panics where no host has made the endpoint, or where that runs.
func (e *Endpoint) made(what string) {
	e.exists(what)
	e.host.registering(what)
}

// exists panics where no host has made the endpoint.
func (e *Endpoint) exists(what string) {
	if e == nil || e.host == nil {
		panic("longshore: " + what + " of an Endpoint that no Host made; use what Host.Endpoint returned")
	}
}

// Name returns the endpoint's name. It panics for one that no host has made.
func (e *Endpoint) Name() string {
	e.exists("Endpoint.Name")
	return e.name
}

// Addresses returns where the endpoint listens, for what others dial: its plugin
// says so, with the ports that were chosen, once it is connected. It returns nil
// while the endpoint is not up and where it listens nowhere; a plugin that was
// started again may listen elsewhere. It may be called from any goroutine. It
// panics for an endpoint that no host has made.
func (e *Endpoint) Addresses() []string {
	e.exists("Endpoint.Addresses")
	r := e.host.run.Load()
	if r == nil {
		return nil
	}
	a := r.byName[e.name]
	if a == nil || a.endpoint != e {
		return nil
	}
	g := a.current()
	if g == nil {
		return nil
	}
	return slices.Clone(g.addresses)
}

// To returns the destination with this name (topic, key, queue) on the endpoint.
// It panics for one that no host has made.
func (e *Endpoint) To(name string) core.Destination {
	e.exists("Endpoint.To")
	return core.Destination{Endpoint: e.name, Name: name}
}

// Subscription is what an endpoint reads under one name.
type Subscription struct {
	endpoint *Endpoint
	name     string
	options  any
	window   window
	place    place
	handled  *handled
	pausing  pausing
}

// window bounds unsettled deliveries; zero values are the defaults.
type window struct {
	messages int
	bytes    int64
}

// SubscriptionOption tunes a subscription.
type SubscriptionOption func(*Subscription)

// Options gives the transport's own options of the subscription: a struct of
// its settings package or a map. The default is none.
func Options(v any) SubscriptionOption {
	return func(s *Subscription) { s.options = v }
}

// Window bounds what may be unsettled at a time, in messages and in bytes of
// payload and headers; bytes are exceeded by one message at most. 0 is the
// default: 64 messages where unsettled deliveries are lost with the process,
// else 1024 messages and 8 MiB.
func Window(messages int, bytes int64) SubscriptionOption {
	return func(s *Subscription) { s.window = window{messages, bytes} }
}

// Subscription declares what to read: a topic, key, queue or filter, as the
// transport understands it. It needs a handler, see [Handle].
func (e *Endpoint) Subscription(name string, opts ...SubscriptionOption) *Subscription {
	e.made("Endpoint.Subscription")
	s := &Subscription{endpoint: e, name: name, place: caller()}
	for _, o := range opts {
		if o != nil {
			o(s)
		}
	}
	if s.window.messages < 0 || s.window.bytes < 0 {
		e.host.complain(Finding{
			Endpoint: e.name, Subscription: name, Option: "Window",
			Message: "is below 0", Fix: "use 0 for the default, or more", Places: places(s.place),
		})
	}
	if name == "" {
		e.host.complain(Finding{
			Endpoint: e.name, Option: "Subscription", Message: "a subscription has no name", Fix: "give the name to read",
			Places: places(s.place),
		})
		return s
	}
	for _, former := range e.subs {
		if former.name == name {
			e.host.complain(Finding{
				Endpoint: e.name, Subscription: name, Option: "Subscription", Message: "declared twice on its endpoint",
				Fix: "keep one, or attach a second endpoint", Places: places(former.place, s.place),
			})
			return s
		}
	}
	e.subs = append(e.subs, s)
	return s
}

// Name returns the name that is read. It panics for a Subscription that no
// endpoint has made.
func (s *Subscription) Name() string {
	s.exists("Subscription.Name")
	return s.name
}

// exists panics where no endpoint has made the subscription.
func (s *Subscription) exists(what string) {
	if s == nil || s.endpoint == nil {
		panic("longshore: " + what + " of a Subscription that no Endpoint made; use what Endpoint.Subscription returned")
	}
}
