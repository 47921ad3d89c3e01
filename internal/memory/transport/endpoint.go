// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"log/slog"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
	"github.com/longshore-go/longshore/pluginapi"
)

// endpoint is the configured transport.
type endpoint struct {
	transport  *Transport
	settings   settings.Settings
	name       string
	generation uint64
	log        *slog.Logger
	link       *link // nil before Connect, unless it is dialed early
}

func (e *endpoint) logger() *slog.Logger {
	if e.log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return e.log
}

// Inspect answers by the settings.
func (e *endpoint) Inspect(u pluginapi.Usage) pluginapi.Inspection {
	var in pluginapi.Inspection
	if err := e.link.at(context.Background(), memory.AtInspect, ""); err != nil {
		in.Findings = []pluginapi.Finding{{Message: err.Error(), Fix: "do not deny it"}}
	}
	for _, r := range u.Registrations {
		src := e.settings.Source(r.Name)
		report := pluginapi.RegistrationReport{
			Profiles: seen(src, capabilities(r.Name, src.Profiles)),
			Findings: findings(src.Refuse, src.Warn),
		}
		in.Registrations = append(in.Registrations, report)
	}
	for _, t := range u.Destinations {
		d := e.settings.Destination(t.Name)
		p, _ := d.Publishing(t.Name) // checked by Configure
		report := pluginapi.TargetReport{Publishing: p, Findings: findings(d.Refuse, d.Warn)}
		for _, r := range u.Registrations {
			if r.Name == t.Name || e.transport.match(r.Name, t.Name) {
				report.ReturnsTo = append(report.ReturnsTo, r.ID)
			}
			if r.Name == t.Name && !strings.HasSuffix(r.Name, "*") {
				report.Exactly = append(report.Exactly, r.ID)
			}
		}
		in.Destinations = append(in.Destinations, report)
	}
	return in
}

// capabilities reads profiles that Configure has checked.
func capabilities(name string, ps []settings.Profile) []core.Capabilities {
	cs := make([]core.Capabilities, len(ps))
	for i, p := range ps {
		cs[i], _ = p.Capabilities(name, "")
	}
	return cs
}

// seen is what a host sees of profiles under the helpers of the SDK.
func seen(src settings.Source, cs []core.Capabilities) []core.Capabilities {
	if src.Held {
		for i := range cs {
			cs[i] = pluginapi.HeldCapabilities(cs[i])
		}
	}
	return cs
}

func findings(refuse, warn string) []pluginapi.Finding {
	var fs []pluginapi.Finding
	if refuse != "" {
		fs = append(fs, pluginapi.Finding{Option: "refuse", Message: refuse, Fix: "take the setting away"})
	}
	if warn != "" {
		fs = append(fs, pluginapi.Finding{Warning: true, Option: "warn", Message: warn, Fix: "take the setting away"})
	}
	return fs
}

// Connect attaches the plugin to the broker. One that failed leaves no link
// behind, so that it can be called again.
func (e *endpoint) Connect(ctx context.Context, resume []byte) (pluginapi.Conn, error) {
	if e.link == nil {
		e.link = newLink(e.transport, e.settings.Address, e.logger())
		if err := e.link.open(ctx, e.name, e.generation); err != nil {
			e.drop()
			return nil, unavailable("dial the memory broker", err)
		}
	}
	c := &conn{endpoint: e, link: e.link}
	if err := c.link.at(ctx, memory.AtConnect, ""); err != nil {
		e.drop()
		return nil, err
	}
	session := string(resume)
	if session == "" {
		session = e.settings.Session
	}
	if err := c.link.attach(ctx, session); err != nil {
		e.drop()
		return nil, err
	}
	return c, nil
}

// drop ends the link.
func (e *endpoint) drop() {
	e.link.stop()
	e.link = nil
}
