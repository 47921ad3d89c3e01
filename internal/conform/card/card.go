// SPDX-License-Identifier: Apache-2.0

// Package card writes what a conformance run has found: as JSON for programs
// and as Markdown for people.
package card

import (
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/conform"
)

// Format is the version of the JSON form. A reader refuses a higher one; fields
// may be added within one.
const Format = 1

// Card is what a run has found of one plugin with one set of settings.
// Durations are texts such as "1.5s", "" and 0 are left out where they say
// nothing.
type Card struct {
	Format       int          `json:"format"`
	Plugin       Plugin       `json:"plugin"`
	Subject      Subject      `json:"subject"`
	Capabilities Capabilities `json:"capabilities"`
	Run          Run          `json:"run"`
	Cases        []Case       `json:"cases"` // in the order of the suite
}

// Plugin says which file was proved.
type Plugin struct {
	Name     string `json:"name"`
	Version  string `json:"version,omitempty"`
	Checksum string `json:"checksum,omitempty"` // of the file: "sha256:" and hex
	Protocol int    `json:"protocol"`           // version that plugin and suite spoke
}

// Subject says what the plugin was given. Secrets are left out, {case} and {dir}
// stand for a word and a folder of each case.
type Subject struct {
	Settings     map[string]any `json:"settings,omitempty"`
	Subscription string         `json:"subscription"`
	Options      map[string]any `json:"options,omitempty"` // of the subscription
	Destination  string         `json:"destination,omitempty"`
}

// Capabilities are what the plugin promises of that subscription and that
// destination.
type Capabilities struct {
	Digest     string      `json:"digest"`               // see conform.Digest
	Profiles   []Profile   `json:"profiles"`             // none: nothing can be read there
	Publishing *Publishing `json:"publishing,omitempty"` // none: nothing can be published there
}

// Profile is one set of capabilities of deliveries. Limits are exclusive, none
// where they are left out.
type Profile struct {
	Ack       core.AckMode     `json:"ack"`
	Requeue   core.RequeueMode `json:"requeue"`
	MaxDelay  core.Duration    `json:"max_delay,omitzero"`
	MaxHold   core.Duration    `json:"max_hold,omitzero"`
	Extend    bool             `json:"extend"`
	Reject    core.RejectMode  `json:"reject"`
	Counts    core.CountMode   `json:"counts"`
	Recounts  bool             `json:"recounts,omitempty"` // in the source's memory
	Address   bool             `json:"address"`            // it has one of its own
	Unsettled core.Unsettled   `json:"unsettled"`
	Durable   bool             `json:"durable"`
	Order     core.OrderMode   `json:"order"`
	Rewinds   bool             `json:"rewinds,omitempty"` // a requeue takes the scope back to it
}

// Publishing is what the destination can do.
type Publishing struct {
	Confirms   core.Confirm    `json:"confirms"`
	Retains    core.Retention  `json:"retains"`
	MaxDelay   core.Duration   `json:"max_delay,omitzero"` // none: it cannot deliver later
	Dedups     bool            `json:"dedups"`
	Headers    core.HeaderMode `json:"headers"`
	Repeats    bool            `json:"repeats"`
	MaxBytes   int64           `json:"max_bytes,omitempty"`
	MaxHeaders int             `json:"max_headers,omitempty"`
}

// Run sums up.
type Run struct {
	Started       time.Time     `json:"started,omitzero"` // UTC, whole seconds
	Time          core.Duration `json:"time,omitzero"`
	Selected      bool          `json:"selected,omitempty"` // only some of the cases were asked for
	Passed        int           `json:"passed"`
	Failed        int           `json:"failed"`
	NotApplicable int           `json:"not_applicable"`
	NotRun        int           `json:"not_run"`
}

// Case is what became of one case.
type Case struct {
	ID      string         `json:"id"` // "area/what"
	Claim   string         `json:"claim"`
	Section string         `json:"section,omitempty"` // of docs/protocol.md
	Status  conform.Status `json:"status"`
	Reason  string         `json:"reason,omitempty"` // why it does not apply or was not run
	Faults  []string       `json:"faults,omitempty"`
	Notes   []string       `json:"notes,omitempty"`
	Log     []string       `json:"log,omitempty"` // last lines of the plugin's log, of a failed case
	Time    core.Duration  `json:"time,omitzero"` // none where it was not run
}

// From returns the card of a report.
func From(r *conform.Report) *Card {
	p := &r.Plugin
	c := &Card{
		Format:  Format,
		Plugin:  Plugin{Name: p.Name, Version: p.Version, Checksum: p.Checksum, Protocol: p.Protocol},
		Subject: Subject{Settings: p.Settings, Subscription: p.Subscription, Options: p.Options, Destination: p.Destination},
		Capabilities: Capabilities{
			Digest: p.Digest, Profiles: make([]Profile, len(p.Profiles)), Publishing: publishing(p.Publishing),
		},
		Run: Run{
			Started: r.Started.UTC().Truncate(time.Second), Time: shown(r.Time), Selected: r.Selected,
			Passed: r.Count(conform.Passed), Failed: r.Count(conform.Failed),
			NotApplicable: r.Count(conform.NotApplicable), NotRun: r.Count(conform.NotRun),
		},
		Cases: make([]Case, len(r.Results)),
	}
	for i := range p.Profiles {
		c.Capabilities.Profiles[i] = profile(&p.Profiles[i])
	}
	for i := range r.Results {
		c.Cases[i] = result(&r.Results[i])
	}
	return c
}

func profile(c *core.Capabilities) Profile {
	return Profile{
		Ack: c.Ack, Requeue: c.Requeue, MaxDelay: core.Duration(c.MaxDelay), MaxHold: core.Duration(c.MaxHold), Extend: c.Extend,
		Reject: c.Reject, Counts: c.Counts, Recounts: c.Recounts, Address: c.Address != "", Unsettled: c.Unsettled, Durable: c.Durable, Order: c.Order,
		Rewinds: c.Rewinds,
	}
}

func publishing(p *core.Publishing) *Publishing {
	if p == nil {
		return nil
	}
	return &Publishing{
		Confirms: p.Confirms, Retains: p.Retains, MaxDelay: core.Duration(p.MaxDelay), Dedups: p.Dedups, Headers: p.Headers,
		Repeats: p.Repeats, MaxBytes: p.MaxBytes, MaxHeaders: p.MaxHeaders,
	}
}

func result(r *conform.Result) Case {
	c := Case{
		ID: r.Case, Claim: r.Claim, Section: r.Section, Status: r.Status, Reason: r.Reason,
		Faults: r.Faults, Notes: r.Notes, Log: r.Log,
	}
	if r.Status == conform.Passed || r.Status == conform.Failed {
		c.Time = shown(r.Time)
	}
	return c
}

// shown rounds a time to what is worth showing: milliseconds, at least one.
func shown(d time.Duration) core.Duration {
	return core.Duration(max(d.Round(time.Millisecond), time.Millisecond))
}

// Stable returns the card without what differs between two runs that found the
// same: times, notes, logs, and the version and checksum of the file. Two cards
// can then be compared, and one can be kept beside the code that it was made of.
func (c *Card) Stable() *Card {
	s := *c
	s.Plugin.Version, s.Plugin.Checksum = "", ""
	s.Run.Started, s.Run.Time = time.Time{}, 0
	s.Cases = make([]Case, len(c.Cases))
	for i, one := range c.Cases {
		one.Time, one.Notes, one.Log = 0, nil, nil
		s.Cases[i] = one
	}
	return &s
}
