// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// What a subscription can do depends on its type and on an ack timeout.
func TestInspectProfiles(t *testing.T) {
	const timeout = 10 * time.Second
	counting := core.Capabilities{
		Ack: core.AckSingle, Requeue: core.RequeueDelayed, Counts: core.CountNative, Recounts: true, Unsettled: core.UnsettledOnDisconnect, Durable: true,
	}
	keyed := counting
	keyed.Order = core.OrderPerScope
	plain := keyed
	plain.Counts, plain.Recounts, plain.Rewinds = core.CountNone, false, true
	timed := func(c core.Capabilities) core.Capabilities {
		c.MaxDelay, c.MaxHold, c.Unsettled = timeout, timeout, core.UnsettledOnTimeout
		return c
	}
	for _, tt := range []struct {
		name string
		reg  string
		o    settings.SubscribeOptions
		want core.Capabilities
	}{
		{"by default", "jobs", settings.SubscribeOptions{}, counting},
		{"S-PUL-06, shared with a timeout", "jobs", settings.SubscribeOptions{AckTimeout: core.Duration(timeout)}, timed(counting)},
		{"key_shared", "jobs", settings.SubscribeOptions{Type: "key_shared"}, keyed},
		{"key_shared with a timeout", "jobs", settings.SubscribeOptions{Type: "key_shared", AckTimeout: core.Duration(timeout)}, timed(keyed)},
		{"S-PUL-36, exclusive", "jobs", settings.SubscribeOptions{Type: "exclusive"}, plain},
		{"failover", "jobs", settings.SubscribeOptions{Type: "failover"}, plain},
		{"S-PUL-07, failover with a timeout", "jobs", settings.SubscribeOptions{Type: "failover", AckTimeout: core.Duration(timeout)}, timed(plain)},
		{"a pattern", "public/default/jobs-.*", settings.SubscribeOptions{Pattern: true}, counting},
		{"many topics", "jobs", settings.SubscribeOptions{Topics: []string{"mails", "acme/eu/bills"}}, counting},
		{"a partition", "jobs-partition-3", settings.SubscribeOptions{}, counting},
		{"the longest timeout", "jobs", settings.SubscribeOptions{AckTimeout: core.Duration(24 * time.Hour)}, func() core.Capabilities {
			c := timed(counting)
			c.MaxDelay, c.MaxHold = 24*time.Hour, 24*time.Hour
			return c
		}()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := configure(t, nowhere()).Inspect(usage(registration(t, tt.reg, tt.o))).Registrations[0]
			if diff := cmp.Diff([]core.Capabilities{tt.want}, got.Profiles); diff != "" || len(got.Findings)+len(got.Shares) > 0 {
				t.Errorf("%s %+v", diff, got)
			}
			within := false
			for _, c := range pulsar.New().Describe().Ceilings {
				within = within || tt.want.Wider(c) == ""
			}
			if !within {
				t.Errorf("%+v is wider than every ceiling", tt.want)
			}
		})
	}
}

func TestInspectRefusesSubscriptions(t *testing.T) {
	pattern := settings.SubscribeOptions{Pattern: true}
	for _, tt := range []struct {
		name, reg string
		o         settings.SubscribeOptions
		words     string // of the finding
	}{
		{"no name", "", settings.SubscribeOptions{}, "name; empty; letters"},
		{"a pattern that is not said to be one", "orders-.*", settings.SubscribeOptions{}, "name; orders-.*; pattern: true"},
		{"non-persistent", "non-persistent://public/default/jobs", settings.SubscribeOptions{}, "name; non-persistent; persistent topic"},
		{"another kind", "mqtt://public/default/jobs", settings.SubscribeOptions{}, "name; mqtt; persistent://"},
		{"no namespace", "acme/jobs", settings.SubscribeOptions{}, "name; acme/jobs; tenant/namespace/name"},
		{"a bad character", "jobs/*", settings.SubscribeOptions{}, "name; jobs/*; tenant/namespace/name"},
		{"a wildcard", "jobs-*", settings.SubscribeOptions{}, "name; jobs-*; '*'; letters"},
		{"a long name", strings.Repeat("n", 1025), settings.SubscribeOptions{}, "name; 1025 bytes; 1024"},
		{"a bad partition", "jobs-partition-x", settings.SubscribeOptions{}, "name; jobs-partition-x; partition; another name"},
		{"a bad topic beside", "jobs", settings.SubscribeOptions{Topics: []string{"mails", "a b"}}, "topics[1]; a b; letters"},
		{"a topic twice", "jobs", settings.SubscribeOptions{Topics: []string{"persistent://public/default/jobs"}}, "topics[0]; public/default/jobs; once"},
		{"a partition of it", "jobs", settings.SubscribeOptions{Topics: []string{"jobs-partition-1"}}, "topics[0]; jobs-partition-1; once"},
		{"a bad pattern", "public/default/jobs-(", pattern, "name; jobs-(; RE2"},
		{"a pattern of namespaces", "public/.*/jobs", pattern, "name; public/.*/jobs; namespace; letters"},
		{"a non-persistent pattern", "non-persistent://public/default/.*", pattern, "name; non-persistent"},
		{"pattern and topics", "public/default/.*", settings.SubscribeOptions{Pattern: true, Topics: []string{"a"}}, "topics; beside pattern; leave one"},
		{"no such type", "jobs", settings.SubscribeOptions{Type: "queue"}, "type; queue; shared; key_shared"},
		{"the type in capitals", "jobs", settings.SubscribeOptions{Type: "Exclusive"}, "type; exclusive"},
		{"no such position", "jobs", settings.SubscribeOptions{InitialPosition: "first"}, "initial_position; first; earliest"},
		{"a short timeout", "jobs", settings.SubscribeOptions{AckTimeout: core.Duration(time.Millisecond)}, "ack_timeout; at least 100ms"},
		{"a long timeout", "jobs", settings.SubscribeOptions{AckTimeout: core.Duration(25 * time.Hour)}, "ack_timeout; at most 24h"},
		{"a negative queue", "jobs", settings.SubscribeOptions{ReceiverQueue: -1}, "receiver_queue; at least 1"},
		{"a bad subscription", "jobs", settings.SubscribeOptions{Subscription: "a\n"}, "subscription; control; text"},
		{"a bad consumer", "jobs", settings.SubscribeOptions{ConsumerName: "a\x00"}, "consumer_name; control; text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := configure(t, nowhere()).Inspect(usage(registration(t, tt.reg, tt.o))).Registrations
			if wrong := finds(got[0].Findings, false, tt.words); wrong != "" || len(got[0].Profiles) > 0 {
				t.Error(wrong)
			}
		})
	}
	for options, words := range map[string]string{
		`{"subscription":""}`:      "subscription; at least 1",
		`{"read_compacted":true}`:  "read_compacted; not supported; whole",
		`{"chunking":{}}`:          "chunking; not supported; max_message_size",
		`{"encryption":{}}`:        "encryption; not supported",
		`{"schema":"json"}`:        "schema; not supported; content-type",
		`{"subscription_type":""}`: "subscription_type; not known",
	} {
		got := configure(t, nowhere()).Inspect(usage(pluginapi.Registration{Name: "a", Options: pluginapi.NewOptions([]byte(options))})).Registrations
		if wrong := finds(got[0].Findings, false, words); wrong != "" {
			t.Errorf("%s: %s", options, wrong)
		}
	}
}

// A bare topic needs a subscription, of its own or the endpoint's.
func TestInspectNeedsSubscription_S_PUL_17(t *testing.T) {
	without := nowhere()
	without.DefaultSubscription = ""
	for _, tt := range []struct {
		set   settings.Settings
		o     settings.SubscribeOptions
		words string
	}{
		{without, settings.SubscribeOptions{}, "subscription; jobs; default_subscription; option subscription"},
		{without, settings.SubscribeOptions{Subscription: "shop"}, ""},
		{nowhere(), settings.SubscribeOptions{}, ""}, // S-PUL-18
	} {
		got := configure(t, tt.set).Inspect(usage(registration(t, "jobs", tt.o))).Registrations[0].Findings
		if wrong := finds(got, false, tt.words); tt.words == "" && len(got) > 0 || tt.words != "" && wrong != "" {
			t.Errorf("%+v: %+v", tt.o, got)
		}
	}
}

// What a registration declares, and of what type it is, fit together.
func TestInspectDeclarations(t *testing.T) {
	timed := settings.SubscribeOptions{AckTimeout: core.Duration(10 * time.Second)}
	of := func(kind string) settings.SubscribeOptions { return settings.SubscribeOptions{Type: kind} }
	both := pluginapi.Registration{Attempts: 3, DeadLetter: "q"}
	for _, tt := range []struct {
		name  string
		o     settings.SubscribeOptions
		g     pluginapi.Registration
		words string // of the finding, "" = none
	}{
		{"nothing", of("shared"), pluginapi.Registration{}, ""},
		{"both", of("shared"), both, ""},
		{"both, key_shared", of("key_shared"), both, ""},
		{"a dead letter elsewhere", of("shared"), pluginapi.Registration{Attempts: 3, DeadLetter: "q@mqtt"}, ""},
		{"S-PUL-13", of("shared"), pluginapi.Registration{Attempts: 3}, "shop; jobs; DeadLetterTo"},
		{"S-PUL-13, key_shared", of("key_shared"), pluginapi.Registration{Attempts: 1}, "shop; jobs; DeadLetterTo"},
		{"S-PUL-14", of("shared"), pluginapi.Registration{DeadLetter: "q"}, "shop; jobs; MaxAttempts"},
		{"S-PUL-15, exclusive", of("exclusive"), both, "type; exclusive; shared; key_shared; MaxAttempts"},
		{"S-PUL-15, failover", of("failover"), both, "type; failover; shared; key_shared"},
		{"S-PUL-15, a cap alone", of("exclusive"), pluginapi.Registration{Attempts: 3}, "type; exclusive; shared; key_shared"},
		{"S-PUL-15, a dead letter alone", of("failover"), pluginapi.Registration{DeadLetter: "q"}, "type; failover; shared"},
		{"S-PUL-19", of("shared"), pluginapi.Registration{RetryTo: "t"}, "shop; RetryTo; MaxAttempts; DeadLetterTo"},
		{"S-PUL-19, exclusive", of("exclusive"), pluginapi.Registration{RetryTo: "t"}, "shop; RetryTo; MaxAttempts; DeadLetterTo"},
		{"S-PUL-19, with both", of("key_shared"), pluginapi.Registration{RetryTo: "t", Attempts: 3, DeadLetter: "q"}, "shop; RetryTo; MaxAttempts; DeadLetterTo"},
		{"S-PUL-37", timed, pluginapi.Registration{Backoff: 10 * time.Second}, "shop; ack_timeout; Backoff; 10s"},
		{"S-PUL-37, longer", timed, pluginapi.Registration{Backoff: time.Minute, Attempts: 3, DeadLetter: "q"}, "shop; ack_timeout; Backoff; 1m0s; 10s"},
		{"S-PUL-37, just below", timed, pluginapi.Registration{Backoff: 10*time.Second - 1}, ""},
		{"a time as the cap", of("shared"), pluginapi.Registration{Elapsed: time.Hour, DeadLetter: "q"}, ""},
		{"both caps", of("shared"), pluginapi.Registration{Elapsed: time.Hour, Attempts: 3, DeadLetter: "q"}, ""},
		{"a time without a dead letter", of("shared"), pluginapi.Registration{Elapsed: time.Hour}, "shop; jobs; DeadLetterTo"},
		{"a time, exclusive", of("exclusive"), pluginapi.Registration{Elapsed: time.Hour, DeadLetter: "q"}, "type; exclusive; MaxElapsed; key_shared"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := registration(t, "jobs", tt.o)
			g.Attempts, g.DeadLetter, g.RetryTo, g.Backoff, g.Elapsed = tt.g.Attempts, tt.g.DeadLetter, tt.g.RetryTo, tt.g.Backoff, tt.g.Elapsed
			got := configure(t, nowhere()).Inspect(usage(g)).Registrations[0].Findings
			if wrong := finds(got, false, tt.words); tt.words == "" && len(got) > 0 || tt.words != "" && wrong != "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A subscription has one type, and an exclusive one has one consumer.
func TestInspectSameSubscription(t *testing.T) {
	of := func(kind string) settings.SubscribeOptions { return settings.SubscribeOptions{Type: kind} }
	for _, tt := range []struct {
		name          string
		first, second pluginapi.Registration
		words         string // of the second one's finding, "" = none
	}{
		{"shared twice", registration(t, "a", of("shared")), registration(t, "a", of("shared")), ""},
		{"failover twice", registration(t, "a", of("failover")), registration(t, "a", of("failover")), ""},
		{"two types", registration(t, "a", of("shared")), registration(t, "a", of("key_shared")), "type; a; shop; shared; key_shared; another subscription"},
		{"exclusive twice", registration(t, "a", of("exclusive")), registration(t, "public/default/a", of("exclusive")), "type; exclusive; another subscription"},
		{"two topics", registration(t, "a", of("exclusive")), registration(t, "b", of("exclusive")), ""},
		{"two subscriptions", registration(t, "a", of("exclusive")), registration(t, "a", settings.SubscribeOptions{Type: "shared", Subscription: "other"}), ""},
		{"two partitions", registration(t, "a-partition-0", of("exclusive")), registration(t, "a-partition-1", of("exclusive")), ""},
		{"a partition of it", registration(t, "a", of("exclusive")), registration(t, "a-partition-1", of("exclusive")), "type; exclusive"},
		{"one in common", registration(t, "a", of("exclusive")), registration(t, "b", settings.SubscribeOptions{Type: "exclusive", Topics: []string{"a"}}), "type; exclusive"},
		{"a pattern", registration(t, "a", of("shared")), registration(t, "public/default/[ab]", settings.SubscribeOptions{Type: "failover", Pattern: true}), "type; shared; failover"},
		{"one pattern twice", registration(t, "public/default/.*", settings.SubscribeOptions{Pattern: true}),
			registration(t, "public/default/.*", settings.SubscribeOptions{Pattern: true, Type: "exclusive"}), "type; shared; exclusive"},
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

// Consumers of one subscription share its messages.
func TestInspectShares(t *testing.T) {
	got := configure(t, nowhere()).Inspect(usage(
		registration(t, "a", settings.SubscribeOptions{}), registration(t, "b", settings.SubscribeOptions{Topics: []string{"a"}}),
		registration(t, "b", settings.SubscribeOptions{}), registration(t, "a", settings.SubscribeOptions{Subscription: "other"}),
	)).Registrations
	for i, want := range [][]uint32{{1}, {0, 2}, {1}, nil} {
		if diff := cmp.Diff(want, got[i].Shares); diff != "" {
			t.Errorf("registration %d: %s", i, diff)
		}
	}
}

// Who gets what is published to a topic. A pattern matches whole names.
func TestInspectDestinations_S_PUL_20(t *testing.T) {
	u := usage(
		registration(t, "orders", settings.SubscribeOptions{}),                                                // 0
		registration(t, "public/default/orders.*", settings.SubscribeOptions{Pattern: true}),                  // 1
		registration(t, "public/default/orders", settings.SubscribeOptions{Pattern: true, Subscription: "p"}), // 2
		registration(t, "mails", settings.SubscribeOptions{Topics: []string{"orders-partition-2"}}),           // 3
		registration(t, "acme/eu/orders", settings.SubscribeOptions{Type: "failover"}),                        // 4
	)
	for _, tt := range []struct {
		name    string
		to      []uint32
		exactly []uint32
		delays  bool
	}{
		{"orders", []uint32{0, 1, 2, 3}, []uint32{0, 3}, true},
		{"persistent://public/default/orders", []uint32{0, 1, 2, 3}, []uint32{0, 3}, true},
		{"orders-partition-2", []uint32{0, 1, 2, 3}, []uint32{0, 3}, true},
		{"orders-partition-1", []uint32{0, 1, 2}, []uint32{0}, true},
		{"orders-dead", []uint32{1}, nil, true},
		{"old-orders", nil, nil, true},
		{"mails", []uint32{3}, []uint32{3}, true},
		{"acme/eu/orders", []uint32{4}, []uint32{4}, false}, // the broker delays nothing there
	} {
		u.Destinations = []pluginapi.Target{{Name: tt.name, Purpose: pluginapi.PurposeDeadLetter, For: []uint32{0}}}
		got := configure(t, nowhere()).Inspect(u).Destinations[0]
		if diff := cmp.Diff(tt.to, got.ReturnsTo); diff != "" || len(got.Findings) > 0 {
			t.Errorf("%s: %s %+v", tt.name, diff, got.Findings)
		}
		if diff := cmp.Diff(tt.exactly, got.Exactly); diff != "" {
			t.Errorf("%s, exactly: %s", tt.name, diff)
		}
		want := core.Publishing{
			Confirms: core.ConfirmStored, Retains: core.RetainTransport, Headers: core.HeadersNativeText, MaxBytes: 5<<20 - 512, MaxHeaders: pulsar.MaxHeaders,
		}
		if tt.delays {
			want.MaxDelay = pulsar.MaxDelay
		}
		if diff := cmp.Diff(want, got.Publishing); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestInspectRefusesDestinations_S_PUL_16(t *testing.T) {
	for _, tt := range []struct{ name, options, words string }{
		{"", `{}`, "name; empty"},
		{"a b", `{}`, "name; a b; letters"},
		{"orders-.*", `{}`, "name; orders-.*; letters"},
		{"acme/orders", `{}`, "name; acme/orders; tenant/namespace/name"},
		{"non-persistent://public/default/a", `{}`, "name; non-persistent"},
		{"a", `{"ttl":"1s"}`, "ttl; not known"},
		{"a", `{"chunking":true}`, "chunking; not supported"},
		{"a", `{"deliver_after":"-1s"}`, "deliver_after; at least 0s"},
		{"a", `{"deliver_after":"8760h"}`, "deliver_after; 8760h; less than"},
		{"a", `{"sequence_id":1}`, "sequence_id; producer_name"},
		{"a", `{"sequence_id":-1}`, "sequence_id; at least 0"},
		{"a", `{"event_time":"yesterday"}`, "event_time"},
		{"a", `{"event_time":"1969-01-01T00:00:00Z"}`, "event_time; 1969; 1970"},
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

// P-08: where nothing sees to it that a dead letter is kept there is a warning.
func TestInspectWarnsOfDeadLettersThatNobodyKeeps(t *testing.T) {
	set := nowhere()
	set.DeadLetterSubscription = new("")
	u := usage(registration(t, "orders", settings.SubscribeOptions{}), registration(t, "read", settings.SubscribeOptions{}),
		registration(t, "public/default/matched", settings.SubscribeOptions{Pattern: true}))
	for name, words := range map[string]string{
		"dead": "dead; dead_letter_subscription; keeps nothing", "matched": "matched; dead_letter_subscription", "read": "",
	} {
		u.Destinations = []pluginapi.Target{{Name: name, Purpose: pluginapi.PurposeDeadLetter, For: []uint32{0}}}
		got := configure(t, set).Inspect(u).Destinations[0].Findings
		if wrong := finds(got, true, words); words == "" && len(got) > 0 || words != "" && wrong != "" {
			t.Errorf("%s: %+v", name, got)
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
	if again := e.Inspect(u); len(again.Destinations[1].ReturnsTo) > 0 {
		t.Errorf("%+v", again)
	}
}
