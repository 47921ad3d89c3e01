// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// who is one line of the table of who may publish where.
type who struct {
	name    string
	set     settings.Settings
	reader  string // the endpoint's subscription, "" = none
	to      string
	want    string // words of the refusal, "" = none
	own     bool   // it comes back
	exactly bool   // to a subscription of the same name
}

// publishers is the table of who may publish where.
func publishers() []who {
	queueBind, queueDial := sides(settings.PatternQueue)
	fanBind, fanDial := sides(settings.PatternFanOut)
	rpcBind, rpcDial := sides(settings.PatternRPC)
	reply := "zmq-reply:" + "000102030405060708090a0b0c0d0e0f"
	return []who{
		{name: "a bound queue, own name", set: queueBind, reader: "jobs", to: "jobs", own: true, exactly: true},
		{name: "S-ZMQ-10", set: queueBind, reader: "jobs", to: "q", want: "jobs; " + anyPort + "; q; another endpoint"},
		{name: "a bound queue, longer name", set: queueBind, reader: "jobs", to: "jobs.dead", want: "jobs; jobs.dead; another endpoint"},
		{name: "S-ZMQ-16", set: queueDial, reader: "jobs", to: "t", want: "jobs; t; PUSH; " + closed + "; another endpoint"},
		{name: "a dialed queue, own name", set: queueDial, reader: "jobs", to: "jobs", want: "jobs; PUSH"},
		{name: "a bound queue without a subscription", set: queueBind, to: "anything"},
		{name: "a dialed queue without a subscription", set: queueDial, to: "anything"},
		{name: "a bound fan-out, own name", set: fanBind, reader: "events", to: "events", own: true, exactly: true},
		{name: "S-ZMQ-24", set: fanBind, reader: "events", to: "events.dead", own: true},
		{name: "S-ZMQ-25", set: fanBind, reader: "events", to: "dead", want: "events; dead; prefix; another endpoint"},
		{name: "a dialed fan-out", set: fanDial, reader: "events", to: "events", want: "events; PUB"},
		{name: "a bound fan-out without a subscription", set: fanBind, to: "anything"},
		{name: "a dialed fan-out without a subscription", set: fanDial, to: "anything"},
		{name: "a reply", set: rpcBind, reader: "calc", to: reply},
		{name: "a reply, dialed", set: rpcDial, reader: "calc", to: reply},
		{name: "S-ZMQ-30", set: rpcBind, reader: "calc", to: "x", want: "calc; x; zmq-reply:; Request"},
		{name: "S-ZMQ-30, own name", set: rpcBind, reader: "calc", to: "calc", want: "calc; zmq-reply:; Request"},
		{name: "a reply, odd digits", set: rpcBind, reader: "calc", to: "zmq-reply:abc", want: "zmq-reply:abc; even number"},
		{name: "a reply, no digits", set: rpcBind, reader: "calc", to: "zmq-reply:", want: "zmq-reply:; even number"},
		{name: "a reply, no hexadecimal digits", set: rpcBind, reader: "calc", to: "zmq-reply:xy", want: "zmq-reply:xy; hexadecimal"},
		{name: "a reply, a long identity", set: rpcBind, reader: "calc", to: "zmq-reply:" + strings.Repeat("00", 256), want: "2 to 510 hexadecimal digits"},
		{name: "rpc without a subscription", set: rpcDial, to: "calc", want: "calc; requests only; Request"},
	}
}

// publishes is what a destination of the table can do.
func (w who) publishes() core.Publishing {
	p := core.Publishing{
		Confirms: core.ConfirmHandedOver, Headers: core.HeadersNativeText, Repeats: true, MaxBytes: 64 << 20, MaxHeaders: 1 << 16,
	}
	switch {
	case w.own:
		p.Retains = core.RetainProcess
	case w.set.Pattern == settings.PatternFanOut, w.set.Pattern == settings.PatternRPC:
		p.Confirms = core.ConfirmQueued
	}
	return p
}

func TestInspectDestinations(t *testing.T) {
	for _, w := range publishers() {
		t.Run(w.name, func(t *testing.T) {
			var u pluginapi.Usage
			if w.reader != "" {
				u.Registrations = registrations(w.reader)
			}
			for _, p := range []pluginapi.Purpose{pluginapi.PurposeDeadLetter, pluginapi.PurposeRetry, pluginapi.PurposeReply} {
				u.Destinations = append(u.Destinations, pluginapi.Target{Name: w.to, Purpose: p})
			}
			got := configure(t, w.set, nil).Inspect(u)
			for i, d := range got.Destinations {
				if w.want != "" {
					if wrong := finds(d.Findings, false, w.want); wrong != "" || len(d.ReturnsTo) > 0 {
						t.Errorf("%v: %s, returns to %v", u.Destinations[i].Purpose, wrong, d.ReturnsTo)
					}
					continue
				}
				want := pluginapi.TargetReport{Publishing: w.publishes()}
				if w.own {
					want.ReturnsTo = []uint32{0}
				}
				if w.exactly {
					want.Exactly = []uint32{0}
				}
				if diff := cmp.Diff(want, d); diff != "" {
					t.Errorf("%v: %s", u.Destinations[i].Purpose, diff)
				}
			}
		})
	}
}

// A host asks about requests as about publishes of an application: there a
// warning says that only the former work.
func TestInspectRequests(t *testing.T) {
	_, dial := sides(settings.PatternRPC)
	got := configure(t, dial, nil).Inspect(pluginapi.Usage{Destinations: []pluginapi.Target{
		{Name: "calc", Purpose: pluginapi.PurposeApplication},
	}}).Destinations[0]
	if wrong := finds(got.Findings, true, "calc; requests only; Request"); wrong != "" {
		t.Error(wrong)
	}
	if p := got.Publishing; p.MaxBytes != 64<<20-1<<10 || p.MaxHeaders != 1<<16-2 || p.Confirms != core.ConfirmHandedOver {
		t.Errorf("%+v", p)
	}
}

// What was inspected before with the same registrations stays as it is when a
// host asks about a single destination.
func TestInspectAgain(t *testing.T) {
	bind, _ := sides(settings.PatternQueue)
	e := configure(t, bind, nil)
	u := pluginapi.Usage{Registrations: registrations("jobs"), Destinations: []pluginapi.Target{{Name: "jobs"}, {Name: "q"}}}
	first := e.Inspect(u)
	u.Destinations = u.Destinations[1:]
	again := e.Inspect(u)
	if diff := cmp.Diff(first.Destinations[1:], again.Destinations); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(first.Registrations, again.Registrations); diff != "" {
		t.Error(diff)
	}
}

// Other transports have patterns; here a name with one would get nothing.
func TestInspectPatterns(t *testing.T) {
	for _, tt := range []struct{ pattern, name, want string }{
		{settings.PatternFanOut, "sport.*", "sport.*; just these characters; write sport.:"},
		{settings.PatternFanOut, "*", "*; give a prefix"},
		{settings.PatternFanOut, "sport.", ""},
		{settings.PatternFanOut, "*.sport", ""},
		{settings.PatternQueue, "sport.*", ""}, // its name is no filter
	} {
		bind, _ := sides(tt.pattern)
		got := configure(t, bind, nil).Inspect(reading(tt.name)).Registrations[0].Findings
		if wrong := finds(got, true, tt.want); tt.want != "" && wrong != "" || tt.want == "" && len(got) > 0 {
			t.Errorf("%s of a %s: got %+v", tt.name, tt.pattern, got)
		}
	}
}

// The limit of messages is the endpoint's, within the protocol's.
func TestInspectMaxMessage(t *testing.T) {
	for _, pattern := range []string{settings.PatternQueue, settings.PatternRPC} {
		bind, _ := sides(pattern)
		bind.MaxMessage = 1 << 20
		got := configure(t, bind, nil).Inspect(pluginapi.Usage{Destinations: []pluginapi.Target{{Name: "jobs", Purpose: pluginapi.PurposeApplication}}})
		if n := got.Destinations[0].Publishing.MaxBytes; n != 1<<20 {
			t.Errorf("%s: %d", pattern, n)
		}
	}
}
