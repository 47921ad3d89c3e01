// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"slices"
	"time"

	"github.com/longshore-go/longshore/core"
)

// Profile is a capability set as text. An empty mode is the weakest.
type Profile struct {
	Ack       string        `json:"ack,omitempty" enum:"none,single,cumulative"`
	Requeue   string        `json:"requeue,omitempty" enum:"none,now,delayed"`
	MaxDelay  core.Duration `json:"max_delay,omitzero"`
	MaxHold   core.Duration `json:"max_hold,omitzero"`
	Extend    bool          `json:"extend,omitempty"`
	Reject    string        `json:"reject,omitempty" enum:"none,drops,dead-letters"`
	Counts    string        `json:"counts,omitempty" enum:"none,native"`
	Address   string        `json:"address,omitempty" doc:"A name, or own for the subscription's."`
	Unsettled string        `json:"unsettled,omitempty" enum:"lost,on-resume,on-disconnect,on-timeout"`
	Durable   bool          `json:"durable,omitempty"`
	Order     string        `json:"order,omitempty" enum:"none,per-scope,total"`
}

// The texts, in the order of core's constants.
var (
	ackModes     = [...]string{"none", "single", "cumulative"}
	requeueModes = [...]string{"none", "now", "delayed"}
	rejectModes  = [...]string{"none", "drops", "dead-letters"}
	countModes   = [...]string{"none", "native"}
	unsettleds   = [...]string{"lost", "on-resume", "on-disconnect", "on-timeout"}
	orders       = [...]string{"none", "per-scope", "total"}
	confirms     = [...]string{"nothing", "queued", "handed-over", "stored"}
	retentions   = [...]string{"nothing", "process", "transport"}
	headerModes  = [...]string{"none", "native-text", "native-bytes", "enveloped"}
)

// ProfileOf writes a capability set as text.
func ProfileOf(c core.Capabilities) Profile {
	return Profile{
		Ack:       ackModes[c.Ack],
		Requeue:   requeueModes[c.Requeue],
		MaxDelay:  core.Duration(c.MaxDelay),
		MaxHold:   core.Duration(c.MaxHold),
		Extend:    c.Extend,
		Reject:    rejectModes[c.Reject],
		Counts:    countModes[c.Counts],
		Address:   c.Address,
		Unsettled: unsettleds[c.Unsettled],
		Durable:   c.Durable,
		Order:     orders[c.Order],
	}
}

// Capabilities reads the profile of the subscription called name. Its error is
// a *core.Fault whose diagnostics name the fields below path.
func (p Profile) Capabilities(name, path string) (core.Capabilities, error) {
	r := reader{path: path}
	c := core.Capabilities{
		Ack:       core.AckMode(r.mode("ack", p.Ack, ackModes[:], 0)),
		Requeue:   core.RequeueMode(r.mode("requeue", p.Requeue, requeueModes[:], 0)),
		MaxDelay:  r.limit("max_delay", p.MaxDelay),
		MaxHold:   r.limit("max_hold", p.MaxHold),
		Extend:    p.Extend,
		Reject:    core.RejectMode(r.mode("reject", p.Reject, rejectModes[:], 0)),
		Counts:    core.CountMode(r.mode("counts", p.Counts, countModes[:], 0)),
		Address:   p.Address,
		Unsettled: core.Unsettled(r.mode("unsettled", p.Unsettled, unsettleds[:], 0)),
		Durable:   p.Durable,
		Order:     core.OrderMode(r.mode("order", p.Order, orders[:], 0)),
	}
	if c.Address == Own {
		c.Address = name
	}
	return c, r.err()
}

// Publishing reads what the destination can do. Its error is a *core.Fault
// whose diagnostics name the fields below path.
func (d Destination) Publishing(path string) (core.Publishing, error) {
	r := reader{path: path}
	p := core.Publishing{
		Confirms:   core.Confirm(r.mode("confirms", d.Confirms, confirms[:], int(core.ConfirmStored))),
		Retains:    core.Retention(r.mode("retains", d.Retains, retentions[:], int(core.RetainTransport))),
		MaxDelay:   r.limit("max_delay", d.MaxDelay),
		Dedups:     d.Dedups,
		Headers:    core.HeaderMode(r.mode("headers", d.Headers, headerModes[:], int(core.HeadersNativeBytes))),
		Repeats:    !d.NoRepeats,
		MaxBytes:   d.MaxBytes,
		MaxHeaders: d.MaxHeaders,
	}
	if d.MaxBytes < 0 {
		r.bad("max_bytes", "is negative", "give 0 for no limit")
	}
	if d.MaxHeaders < 0 {
		r.bad("max_headers", "is negative", "give 0 for no limit")
	}
	return p, r.err()
}

// DestinationOf writes what a destination can do as text.
func DestinationOf(p core.Publishing) Destination {
	return Destination{
		Confirms: confirms[p.Confirms], Retains: retentions[p.Retains], Headers: headerModes[p.Headers],
		MaxDelay: core.Duration(p.MaxDelay), Dedups: p.Dedups, NoRepeats: !p.Repeats,
		MaxBytes: p.MaxBytes, MaxHeaders: p.MaxHeaders,
	}
}

// reader collects what is wrong.
type reader struct {
	path  string
	found []core.Diagnostic
}

func (r *reader) bad(field, message, fix string) {
	r.found = append(r.found, core.Diagnostic{Path: r.path + "." + field, Message: message, Fix: fix})
}

func (r *reader) mode(field, text string, texts []string, empty int) int {
	if text == "" {
		return empty
	}
	i := slices.Index(texts, text)
	if i < 0 {
		r.bad(field, fmt.Sprintf("%q is unknown", text), fmt.Sprintf("give one of %q", texts))
		return 0
	}
	return i
}

func (r *reader) limit(field string, d core.Duration) time.Duration {
	if d < 0 {
		r.bad(field, "is negative", "give 0 for no limit")
		return 0
	}
	return time.Duration(d)
}

func (r *reader) err() error {
	if len(r.found) == 0 {
		return nil
	}
	return &core.Fault{Code: core.FaultInvalid, Message: "read memory settings", Diagnostics: r.found}
}
