// SPDX-License-Identifier: Apache-2.0

// Package describe shows what a plugin says of itself.
package describe

import (
	"encoding/json"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// Plugin is what a plugin says of itself.
type Plugin struct {
	Name       string      `json:"name"`
	Version    string      `json:"version"`
	Restarts   bool        `json:"restarts"`    // after a crash
	WantsStdio bool        `json:"wants_stdio"` // it needs the standard input and output of its host
	Requests   bool        `json:"requests"`
	Seeks      bool        `json:"seeks"`
	LinkStates bool        `json:"link_states"`
	Sources    []Source    `json:"sources"`    // the most that subscriptions can do
	Publishing Destination `json:"publishing"` // the most that destinations can do
	Schemas    Schemas     `json:"schemas"`
}

// Schemas are JSON Schemas of settings; nil where there are none.
type Schemas struct {
	Settings     json.RawMessage `json:"settings"`
	Subscription json.RawMessage `json:"subscription"`
	Publish      json.RawMessage `json:"publish"`
}

// Source is a set of capabilities. Durations are texts; "" is no limit.
type Source struct {
	Ack        core.AckMode     `json:"ack"`
	Requeue    core.RequeueMode `json:"requeue"`
	MaxDelay   string           `json:"max_delay,omitempty"`
	MaxHold    string           `json:"max_hold,omitempty"`
	Extend     bool             `json:"extend"`
	Reject     core.RejectMode  `json:"reject"`
	Counts     core.CountMode   `json:"counts"`
	Recounts   bool             `json:"recounts,omitempty"` // in the source's memory
	OwnAddress bool             `json:"own_address"`        // publishing there returns to the subscription
	Unsettled  core.Unsettled   `json:"unsettled"`
	Durable    bool             `json:"durable"`
	Order      core.OrderMode   `json:"order"`
	Rewinds    bool             `json:"rewinds,omitempty"` // a requeue takes the scope back to it
}

// Destination is what destinations can do.
type Destination struct {
	Confirms   core.Confirm    `json:"confirms"`
	Retains    core.Retention  `json:"retains"`
	MaxDelay   string          `json:"max_delay,omitempty"`
	Dedups     bool            `json:"dedups"`
	Headers    core.HeaderMode `json:"headers"`
	MaxBytes   int64           `json:"max_bytes,omitempty"`
	MaxHeaders int             `json:"max_headers,omitempty"`
}

// From reads the answer to Describe.
func From(d *transportpb.DescribeResponse) Plugin {
	p := Plugin{
		Name:       d.GetName(),
		Version:    d.GetVersion(),
		Restarts:   d.GetRestart() != transportpb.RestartMode_RESTART_MODE_NEVER,
		WantsStdio: d.GetWantsStdio(),
		Requests:   d.GetRequests(),
		Seeks:      d.GetSeeks(),
		LinkStates: d.GetLinkStates(),
		Sources:    []Source{},
		Publishing: destination(convert.ToPublishing(d.GetPublishing())),
		Schemas: Schemas{
			Settings:     schema(d.GetSettingsSchema()),
			Subscription: schema(d.GetSubscriptionSchema()),
			Publish:      schema(d.GetPublishSchema()),
		},
	}
	for _, c := range convert.ToProfiles(d.GetCeilings()) {
		p.Sources = append(p.Sources, source(c))
	}
	return p
}

// schema passes on what is JSON; anything else would break the output.
func schema(b []byte) json.RawMessage {
	if !json.Valid(b) {
		return nil
	}
	return b
}

func source(c core.Capabilities) Source {
	return Source{
		Ack: c.Ack, Requeue: c.Requeue, MaxDelay: limit(c.MaxDelay), MaxHold: limit(c.MaxHold), Extend: c.Extend,
		Reject: c.Reject, Counts: c.Counts, Recounts: c.Recounts, OwnAddress: c.Address != "", Unsettled: c.Unsettled, Durable: c.Durable,
		Order: c.Order, Rewinds: c.Rewinds,
	}
}

func destination(p core.Publishing) Destination {
	return Destination{
		Confirms: p.Confirms, Retains: p.Retains, MaxDelay: limit(p.MaxDelay), Dedups: p.Dedups, Headers: p.Headers,
		MaxBytes: p.MaxBytes, MaxHeaders: p.MaxHeaders,
	}
}

// limit is a limit as text, "" for none.
func limit(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}
