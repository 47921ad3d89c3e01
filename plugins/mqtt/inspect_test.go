// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt"
	"github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// nowhere are settings of an endpoint that is not connected.
func nowhere() settings.Settings {
	return settings.Settings{URL: "mqtt://127.0.0.1:1", ClientID: "shop"}
}

// configure configures an endpoint that logs nowhere.
func configure(t testing.TB, set settings.Settings) pluginapi.Endpoint {
	t.Helper()
	return servicetest.Configure(t, mqtt.New(), set, nil, nil)
}

// registration is one with options.
func registration(t testing.TB, name string, o settings.SubscribeOptions) pluginapi.Registration {
	t.Helper()
	options, err := pluginapi.EncodeOptions(o)
	if err != nil {
		t.Fatal(err)
	}
	return pluginapi.Registration{Name: name, Options: options}
}

// usage is that of a service with these subscriptions.
func usage(rs ...pluginapi.Registration) pluginapi.Usage {
	for i := range rs {
		rs[i].ID = uint32(i)
	}
	return pluginapi.Usage{Registrations: rs}
}

// finds says what is wrong with findings that should be one which names all
// words.
func finds(got []pluginapi.Finding, warning bool, words string) string {
	if len(got) != 1 || got[0].Warning != warning || got[0].Fix == "" {
		return fmt.Sprintf("got %+v", got)
	}
	for w := range strings.SplitSeq(words, "; ") {
		if !strings.Contains(got[0].Option+" "+got[0].Message+" "+got[0].Fix, w) {
			return fmt.Sprintf("got %+v, which lacks %q", got[0], w)
		}
	}
	return ""
}

// What a subscription can do depends on its QoS, its kind of name, and whether
// the server keeps the session.
func TestInspectProfiles_S_MQT_37(t *testing.T) {
	kept := kept(nowhere())
	resumed := nowhere()
	resumed.SessionExpiry = core.Duration(3600e9)
	reused := nowhere()
	reused.CleanStart = new(false)
	lost := core.Capabilities{Ack: core.AckSingle, Address: "jobs", Order: core.OrderTotal}
	returning := lost
	returning.Unsettled = core.UnsettledOnResume
	without := core.Capabilities{Address: "jobs", Order: core.OrderTotal}
	for _, tt := range []struct {
		name string
		set  settings.Settings
		reg  string
		o    settings.SubscribeOptions
		want []core.Capabilities
	}{
		{"by default", nowhere(), "jobs", settings.SubscribeOptions{}, []core.Capabilities{lost, without}},
		{"kept", kept, "jobs", settings.SubscribeOptions{}, []core.Capabilities{returning, without}},
		{"kept, QoS 2", kept, "jobs", settings.SubscribeOptions{QoS: new(2)}, []core.Capabilities{returning, without}},
		{"an expiry alone", resumed, "jobs", settings.SubscribeOptions{}, []core.Capabilities{lost, without}},
		{"clean_start alone", reused, "jobs", settings.SubscribeOptions{}, []core.Capabilities{lost, without}},
		{"QoS 0", kept, "jobs", settings.SubscribeOptions{QoS: new(0)}, []core.Capabilities{without}},
		{"shared", kept, "jobs", settings.SubscribeOptions{Group: "workers"}, []core.Capabilities{returning, without}},
		{"a filter", kept, "jobs/+", settings.SubscribeOptions{Filter: true}, []core.Capabilities{{Ack: core.AckSingle, Unsettled: core.UnsettledOnResume}, {}}},
		{"a filter without wildcards", nowhere(), "jobs", settings.SubscribeOptions{Filter: true}, []core.Capabilities{{Ack: core.AckSingle}, {}}},
		{"nothing local", nowhere(), "jobs", settings.SubscribeOptions{NoLocal: true, QoS: new(0)}, []core.Capabilities{{Order: core.OrderTotal}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := configure(t, tt.set).Inspect(usage(registration(t, tt.reg, tt.o))).Registrations[0]
			if diff := cmp.Diff(tt.want, got.Profiles); diff != "" || len(got.Findings)+len(got.Shares) > 0 {
				t.Errorf("%s %+v", diff, got)
			}
			ceilings := mqtt.New().Describe().Ceilings
			for _, p := range got.Profiles {
				if p.Address != "" {
					p.Address = ceilings[0].Address // stands for any
				}
				if p.Wider(ceilings[0]) != "" && p.Wider(ceilings[1]) != "" && p.Wider(ceilings[2]) != "" {
					t.Errorf("%+v is wider than every ceiling", p)
				}
			}
		})
	}
}

// Copies of what a filter delivers need a destination: the engine refuses the
// rest.
func TestInspectFilters_S_MQT_17_S_MQT_41(t *testing.T) {
	for row, o := range map[string]settings.SubscribeOptions{"S-MQT-17": {Filter: true}, "S-MQT-41": {Filter: true, Group: "g"}} {
		got := configure(t, nowhere()).Inspect(usage(registration(t, "a/+", o))).Registrations[0]
		for _, p := range []core.Policy{{}, {MaxAttempts: 3}} {
			found := core.Check(p, got.Profiles, core.Route{}, core.Route{}, core.Declared{Cap: p.MaxAttempts > 0})
			if len(found) == 0 || found[0].Warning || found[0].Option != "RetryTo" {
				t.Errorf("%s, %+v: got %v", row, p, found)
			}
		}
	}
}

func TestInspectRefusesSubscriptions(t *testing.T) {
	filter := settings.SubscribeOptions{Filter: true}
	for _, tt := range []struct {
		name, reg string
		o         settings.SubscribeOptions
		words     string // of the finding
	}{
		{"S-MQT-21, +", "a/+", settings.SubscribeOptions{}, "name; a/+; filter: true"},
		{"S-MQT-21, #", "#", settings.SubscribeOptions{}, "name; #; filter: true"},
		{"no name", "", settings.SubscribeOptions{}, "name; empty"},
		{"no filter", "", filter, "name; empty"},
		{"a long name", strings.Repeat("n", 1<<16), settings.SubscribeOptions{}, "name; 65536 bytes; 65535"},
		{"a control character", "a\x07", settings.SubscribeOptions{}, "name; U+0007"},
		{"M-06, # before the end", "a/#/b", filter, "name; a/#/b; last level"},
		{"a part of a level", "a/b+", filter, "name; a/b+; alone"},
		{"a group in the name", "$share/g/a", settings.SubscribeOptions{}, "name; $share/g/a; option group"},
		{"a group in the filter", "$share/g/a/+", filter, "name; $share/g/a/+; option group"},
		{"S-MQT-22, /", "a", settings.SubscribeOptions{Group: "g/h"}, "group; g/h; without /"},
		{"S-MQT-22, +", "a", settings.SubscribeOptions{Group: "g+"}, "group; g+; without /"},
		{"S-MQT-22, #", "a/+", settings.SubscribeOptions{Filter: true, Group: "#"}, "group; #; without /"},
		{"nothing local in a group", "a", settings.SubscribeOptions{Group: "g", NoLocal: true}, "no_local; a; g; leave out"},
		{"a bad connection", "a", settings.SubscribeOptions{Connection: "x\x00"}, "connection; U+0000; client id"},
		{"QoS 3", "a", settings.SubscribeOptions{QoS: new(3)}, "qos; at most 2"},
		{"no such handling", "a", settings.SubscribeOptions{RetainHandling: "once"}, "retain_handling; once; always; never"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := configure(t, nowhere()).Inspect(usage(registration(t, tt.reg, tt.o))).Registrations
			if wrong := finds(got[0].Findings, false, tt.words); wrong != "" {
				t.Error(wrong)
			}
		})
	}
	// An empty group given as such is another thing than none.
	empty := pluginapi.Registration{Name: "a", Options: pluginapi.NewOptions([]byte(`{"group":""}`))}
	got := configure(t, nowhere()).Inspect(usage(empty)).Registrations
	if wrong := finds(got[0].Findings, false, "group; at least 1"); wrong != "" {
		t.Errorf("S-MQT-22, empty: %s", wrong)
	}
}

// collision are two topics with one subscription identifier.
var collision = [...]string{"t/4458", "t/78842"}

// A connection subscribes to a filter once: its subscriptions take turns, and
// must want the same of the server.
func TestInspectSameFilter_S_MQT_28(t *testing.T) {
	plain := settings.SubscribeOptions{}
	for _, tt := range []struct {
		name          string
		first, second pluginapi.Registration
		words         string // of the second one's finding, "" = none
	}{
		{"alike", registration(t, "a", plain), registration(t, "a", settings.SubscribeOptions{QoS: new(1), RetainHandling: "new"}), ""},
		{"topic and filter", registration(t, "a", plain), registration(t, "a", settings.SubscribeOptions{Filter: true}), ""},
		{"another QoS", registration(t, "a", plain), registration(t, "a", settings.SubscribeOptions{QoS: new(2)}), "a; different options; qos; connection of its own"},
		{"another handling", registration(t, "a", plain), registration(t, "a", settings.SubscribeOptions{RetainHandling: "never"}), "a; retain_handling"},
		{"one as published", registration(t, "a", plain), registration(t, "a", settings.SubscribeOptions{RetainAsPublished: true}), "a; retain_as_published"},
		{"one in a group", registration(t, "a", plain), registration(t, "a", settings.SubscribeOptions{QoS: new(2), Group: "g"}), ""},
		{"two groups", registration(t, "a", settings.SubscribeOptions{Group: "g"}), registration(t, "a", settings.SubscribeOptions{QoS: new(2), Group: "h"}), ""},
		{"two connections", registration(t, "a", plain), registration(t, "a", settings.SubscribeOptions{QoS: new(2), Connection: "b"}), ""},
		{"overlapping", registration(t, "a/b", plain), registration(t, "a/#", settings.SubscribeOptions{QoS: new(2), Filter: true}), ""}, // known when connected
		{"one identifier", registration(t, collision[0], plain), registration(t, collision[1], plain), collision[0] + "; " + collision[1] + "; identifier; connection"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := configure(t, nowhere()).Inspect(usage(tt.first, tt.second)).Registrations
			if len(got[0].Findings) > 0 {
				t.Errorf("the first: %+v", got[0].Findings)
			}
			if wrong := finds(got[1].Findings, false, tt.words); tt.words != "" && wrong != "" || tt.words == "" && len(got[1].Findings) > 0 {
				t.Errorf("the second: %+v", got[1].Findings)
			}
		})
	}
}

// Subscriptions of one connection share what may be unsettled on it.
func TestInspectShares(t *testing.T) {
	own := settings.SubscribeOptions{Connection: "own"}
	got := configure(t, nowhere()).Inspect(usage(
		registration(t, "a", settings.SubscribeOptions{}), registration(t, "+", settings.SubscribeOptions{}), registration(t, "b", own),
		registration(t, "c", settings.SubscribeOptions{}), registration(t, "d", own), registration(t, "e", settings.SubscribeOptions{Connection: "alone"}),
	)).Registrations
	for i, want := range [][]uint32{{3}, nil, {4}, {0}, {2}, nil} {
		if diff := cmp.Diff(want, got[i].Shares); diff != "" {
			t.Errorf("registration %d: %s", i, diff)
		}
	}
}

// Who gets what is published to a topic.
func TestInspectDestinations_S_MQT_20(t *testing.T) {
	filter := func(o settings.SubscribeOptions) settings.SubscribeOptions { o.Filter = true; return o }
	plain := settings.SubscribeOptions{}
	u := usage(
		registration(t, "orders/new", plain), // 0
		registration(t, "orders/#", filter(plain)),
		registration(t, "+/new", filter(settings.SubscribeOptions{Group: "g"})),                      // 2
		registration(t, "orders/new", settings.SubscribeOptions{Group: "g"}),                         // 3
		registration(t, "orders/new", settings.SubscribeOptions{NoLocal: true, Connection: "quiet"}), // 4
		registration(t, "mails", settings.SubscribeOptions{NoLocal: true, Connection: "quiet"}),      // 5
		registration(t, "orders/late", settings.SubscribeOptions{NoLocal: true}),                     // 6
		registration(t, "#", filter(settings.SubscribeOptions{Connection: "all", QoS: new(0)})),      // 7
		registration(t, "orders", settings.SubscribeOptions{Connection: "other"}),                    // 8
	)
	for _, tt := range []struct {
		name    string
		purpose pluginapi.Purpose
		users   []uint32
		to      []uint32
		exactly []uint32
	}{
		{"orders/new", pluginapi.PurposeApplication, nil, []uint32{0, 1, 2, 3, 4, 7}, []uint32{0, 3, 4}},
		{"orders/new", pluginapi.PurposeRetry, []uint32{0}, []uint32{0, 1, 2, 3, 4, 7}, []uint32{0, 3, 4}},
		{"orders/new", pluginapi.PurposeRetry, []uint32{4}, []uint32{0, 1, 2, 3, 7}, []uint32{0, 3}},
		{"orders/new", pluginapi.PurposeDeadLetter, []uint32{4, 0}, []uint32{0, 1, 2, 3, 4, 7}, []uint32{0, 3, 4}},
		{"mails", pluginapi.PurposeDeadLetter, []uint32{4}, []uint32{7}, nil},
		{"mails", pluginapi.PurposeReply, nil, []uint32{5, 7}, []uint32{5}},
		{"orders/late", pluginapi.PurposeApplication, nil, []uint32{1, 7}, nil},
		{"orders/late", pluginapi.PurposeRetry, []uint32{8}, []uint32{1, 6, 7}, []uint32{6}},
		{"orders", pluginapi.PurposeDeadLetter, []uint32{0}, []uint32{1, 7, 8}, []uint32{8}}, // a/# matches a
		{"$SYS/x", pluginapi.PurposeApplication, nil, nil, nil},
	} {
		u.Destinations = []pluginapi.Target{{Name: tt.name, Purpose: tt.purpose, For: tt.users}}
		got := configure(t, nowhere()).Inspect(u).Destinations[0]
		if diff := cmp.Diff(tt.to, got.ReturnsTo); diff != "" || len(got.Findings) > 0 {
			t.Errorf("%s for %v of %v: %s %+v", tt.name, tt.purpose, tt.users, diff, got.Findings)
		}
		if diff := cmp.Diff(tt.exactly, got.Exactly); diff != "" {
			t.Errorf("%s for %v of %v, exactly: %s", tt.name, tt.purpose, tt.users, diff)
		}
	}
}

// A receipt means that the server has the message, but for one of QoS 0; it is
// kept for those that are away where their session is.
func TestInspectPublishing(t *testing.T) {
	kept := kept(nowhere())
	kept.MaxPacketSize = 64 << 10
	for _, tt := range []struct {
		name string
		set  settings.Settings
		o    settings.PublishOptions
		qos  int // of who reads it, -1: nobody here
		want core.Publishing
	}{
		{"elsewhere", nowhere(), settings.PublishOptions{}, -1, core.Publishing{Confirms: core.ConfirmStored, Retains: core.RetainTransport, MaxBytes: 1<<20 - 512}},
		{"elsewhere, QoS 0", nowhere(), settings.PublishOptions{QoS: new(0)}, -1, core.Publishing{Confirms: core.ConfirmHandedOver, Retains: core.RetainTransport, MaxBytes: 1<<20 - 512}},
		{"here", nowhere(), settings.PublishOptions{}, 1, core.Publishing{Confirms: core.ConfirmStored, Retains: core.RetainNothing, MaxBytes: 1<<20 - 512}},
		{"here, retained", nowhere(), settings.PublishOptions{Retain: true}, 1, core.Publishing{Confirms: core.ConfirmStored, Retains: core.RetainTransport, MaxBytes: 1<<20 - 512}},
		{"here, kept", kept, settings.PublishOptions{QoS: new(2)}, 1, core.Publishing{Confirms: core.ConfirmStored, Retains: core.RetainTransport, MaxBytes: 64<<10 - 512}},
		{"here, kept, QoS 0", kept, settings.PublishOptions{}, 0, core.Publishing{Confirms: core.ConfirmStored, Retains: core.RetainNothing, MaxBytes: 64<<10 - 512}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var u pluginapi.Usage
			if tt.qos >= 0 {
				u = usage(registration(t, "a", settings.SubscribeOptions{QoS: &tt.qos}))
			}
			options, err := pluginapi.EncodeOptions(tt.o)
			if err != nil {
				t.Fatal(err)
			}
			u.Destinations = []pluginapi.Target{{Name: "a", Purpose: pluginapi.PurposeApplication, Options: options}}
			tt.want.Headers, tt.want.Repeats, tt.want.MaxHeaders = core.HeadersNativeText, true, int(tt.want.MaxBytes+512)/64
			got := configure(t, tt.set).Inspect(u).Destinations[0]
			if diff := cmp.Diff(tt.want, got.Publishing); diff != "" || len(got.Findings) > 0 {
				t.Errorf("%s %+v", diff, got.Findings)
			}
		})
	}
}

func TestInspectRefusesDestinations_S_MQT_23(t *testing.T) {
	for _, tt := range []struct{ name, options, words string }{
		{"", `{}`, "name; empty"},
		{"a/+", `{}`, "name; a/+; one topic"},
		{"#", `{}`, "name; #; one topic"},
		{"a\x07", `{}`, "name; U+0007"},
		{"$share/g/a", `{}`, "name; $share/g/a"},
		{"a", `{"qos":3}`, "qos; at most 2"},
		{"a", `{"expiry":"1ms"}`, "expiry; 1ms; whole seconds"},
		{"a", `{"content_type":"\u0001"}`, "content_type; U+0001"},
		{"a", `{"ttl":"1s"}`, "ttl; not known"},
	} {
		for _, p := range []pluginapi.Purpose{pluginapi.PurposeApplication, pluginapi.PurposeRetry, pluginapi.PurposeDeadLetter} {
			got := configure(t, nowhere()).Inspect(pluginapi.Usage{Destinations: []pluginapi.Target{
				{Name: tt.name, Purpose: p, Options: pluginapi.NewOptions([]byte(tt.options))},
			}}).Destinations[0]
			if wrong := finds(got.Findings, false, tt.words); wrong != "" || len(got.ReturnsTo) > 0 {
				t.Errorf("%q %s for %v: %s, returns to %v", tt.name, tt.options, p, wrong, got.ReturnsTo)
			}
		}
	}
}

// The last Inspect counts.
func TestInspectAgain(t *testing.T) {
	e := configure(t, nowhere())
	u := usage(registration(t, "a", settings.SubscribeOptions{}), registration(t, "b", settings.SubscribeOptions{}))
	u.Destinations = []pluginapi.Target{{Name: "a"}, {Name: "b"}}
	first := e.Inspect(u)
	if diff := cmp.Diff(first, e.Inspect(u)); diff != "" {
		t.Error(diff)
	}
	u.Registrations = u.Registrations[:1]
	again := e.Inspect(u)
	if len(again.Registrations[0].Shares) > 0 || len(again.Destinations[1].ReturnsTo) > 0 {
		t.Errorf("%+v", again)
	}
}
