// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"context"
	"log/slog"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/streamkey"
	"github.com/longshore-go/longshore/plugins/pipe/settings"
)

// endpoint is the configured transport.
type endpoint struct {
	transport *Transport
	settings  settings.Settings
	stdio     *pluginapi.Stdio
	log       *slog.Logger
}

// Inspect says what lines can carry and refuses keys that cannot stand in one.
func (e *endpoint) Inspect(u pluginapi.Usage) pluginapi.Inspection {
	var in pluginapi.Inspection
	for _, r := range u.Registrations {
		in.Registrations = append(in.Registrations, pluginapi.RegistrationReport{
			Profiles: []core.Capabilities{e.capabilities(r.Name)},
			Shares:   others(u.Registrations, r.ID),
			Findings: keyFindings(r.Name),
		})
	}
	for _, t := range u.Destinations {
		report := pluginapi.TargetReport{Publishing: e.publishing(false), Findings: keyFindings(t.Name)}
		if e.settings.Loopback {
			for _, r := range u.Registrations {
				if r.Name == t.Name {
					report.ReturnsTo = append(report.ReturnsTo, r.ID)
				}
			}
			report.Exactly = report.ReturnsTo
			report.Publishing = e.publishing(len(report.ReturnsTo) > 0)
		}
		in.Destinations = append(in.Destinations, report)
	}
	return in
}

// others returns the ids of the other registrations: one reader serves all.
func others(rs []pluginapi.Registration, id uint32) []uint32 {
	var ids []uint32
	for _, r := range rs {
		if r.ID != id {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

func keyFindings(key string) []pluginapi.Finding {
	if streamkey.Valid(key) {
		return nil
	}
	return []pluginapi.Finding{{Option: "name", Message: quote(key) + " is no stream key", Fix: streamkey.Fix}}
}

// capabilities are those of one subscription: nothing is acknowledged.
func (e *endpoint) capabilities(key string) core.Capabilities {
	c := core.Capabilities{Order: core.OrderTotal}
	if e.settings.Loopback {
		c.Address = key
	}
	return c
}

// publishing is what a destination can do: one that comes back never leaves the
// process.
func (e *endpoint) publishing(loops bool) core.Publishing {
	p := core.Publishing{
		Confirms: core.ConfirmHandedOver, Headers: core.HeadersEnveloped, Repeats: true,
		MaxBytes: int64(MaxPublish), MaxHeaders: MaxPublishHeaders,
	}
	switch {
	case loops:
		p.Confirms, p.Retains = core.ConfirmQueued, core.RetainProcess
	case e.settings.PlainOutput:
		p.Headers, p.Repeats = core.HeadersNone, false
	}
	return p
}

// Connect starts the reader and the writer. The input is not touched before a
// subscription asks for it.
func (e *endpoint) Connect(context.Context, []byte) (pluginapi.Conn, error) {
	log := e.log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &conn{endpoint: e, log: log}
	c.writer = newWriter(e.stdio.Out, e.settings.PlainOutput, e.transport.now, log, c.broken)
	c.intake = newIntake(e.stdio.In, e.settings, e.transport.maxLine, log)
	return c, nil
}
