// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/rows"
)

var update = flag.Bool("update", false, "write the golden files of testdata/explain")

// explained are the registrations of the golden tables.
var explained = []struct {
	name     string
	p        core.Policy
	profiles []core.Capabilities
	retry    core.Route
	dead     core.Route
	d        core.Declared
}{
	{
		"pipe", core.Policy{MaxAttempts: 3, DeadLetter: true, RetryTo: true, Backoff: true},
		[]core.Capabilities{{Order: core.OrderTotal}},
		core.Route{To: core.Destination{Endpoint: "in", Name: "orders"}, State: core.RouteOpen, Own: true, Caps: core.Publishing{Confirms: core.ConfirmHandedOver, Headers: core.HeadersEnveloped}},
		core.Route{To: core.Destination{Endpoint: "in", Name: "dead"}, State: core.RouteOpen, Own: true, Caps: core.Publishing{Confirms: core.ConfirmHandedOver, Headers: core.HeadersEnveloped}},
		core.Declared{Cap: true, RetryTo: true, DeadLetter: true, LongestBackoff: 5 * time.Second},
	},
	{
		"lease", core.Policy{MaxAttempts: 3, DeadLetter: true},
		[]core.Capabilities{{Ack: core.AckSingle, Requeue: core.RequeueDelayed, MaxDelay: 10 * time.Second, MaxHold: 10 * time.Second, Counts: core.CountNative, Unsettled: core.UnsettledOnTimeout, Durable: true}},
		core.Route{},
		core.Route{To: core.Destination{Endpoint: "in", Name: "q"}, State: core.RouteOpen, Own: true, Restarts: true, Caps: rows.Stored()},
		core.Declared{Cap: true, DeadLetter: true},
	},
	{ // its copies would have a way, and it makes none
		"group", core.Policy{MaxAttempts: 3, DeadLetter: true, Backoff: true},
		[]core.Capabilities{{Ack: core.AckSingle, Requeue: core.RequeueDelayed, Counts: core.CountNative, Address: "own", Unsettled: core.UnsettledOnResume, Durable: true, Order: core.OrderTotal}},
		core.Route{To: core.Destination{Endpoint: "in", Name: "own"}, State: core.RouteOpen, Own: true, Restarts: true, Caps: core.Publishing{Confirms: core.ConfirmHandedOver, Retains: core.RetainTransport, Headers: core.HeadersEnveloped}},
		core.Route{To: core.Destination{Endpoint: "in", Name: "dead"}, State: core.RouteOpen, Own: true, Restarts: true, Caps: core.Publishing{Confirms: core.ConfirmHandedOver, Retains: core.RetainTransport, Headers: core.HeadersEnveloped}},
		core.Declared{Cap: true, DeadLetter: true, LongestBackoff: 5 * time.Second},
	},
	{
		"journal", core.Policy{},
		[]core.Capabilities{rows.Kinds()["M"], {Address: "own"}},
		core.Route{To: core.Destination{Endpoint: "in", Name: "own"}, State: core.RouteOpen, Own: true, Restarts: true, Caps: rows.Stored()},
		core.Route{},
		core.Declared{Floor: time.Second, Journal: true},
	},
	{
		"log", core.Policy{RetryTo: true},
		[]core.Capabilities{{Ack: core.AckCumulative, Unsettled: core.UnsettledOnDisconnect, Durable: true, Order: core.OrderPerScope}},
		core.Route{To: core.Destination{Endpoint: "other", Name: "t"}, State: core.RouteOpen, Caps: core.Publishing{Confirms: core.ConfirmStored, Retains: core.RetainTransport, MaxDelay: time.Minute}},
		core.Route{},
		core.Declared{RetryTo: true, Workers: 4, ByKey: true},
	},
	{
		"forward", core.Policy{MaxAttempts: 3},
		[]core.Capabilities{rows.Kinds()["A"]},
		core.Route{To: core.Destination{Endpoint: "in", Name: "own"}, State: core.RouteOpen, Own: true, Restarts: true, Caps: rows.Stored()},
		core.Route{},
		core.Declared{Cap: true, Forward: core.Route{To: core.Destination{Endpoint: "other", Name: "next"}, State: core.RouteOpen, Restarts: true, Caps: rows.Stored()}},
	},
	{
		"reactions", core.Policy{DeadLetter: true, Backoff: true, Elapsed: true},
		[]core.Capabilities{{Ack: core.AckSingle, Requeue: core.RequeueNow, Reject: core.RejectDrops, MaxHold: 30 * time.Second, Address: "own", Unsettled: core.UnsettledOnTimeout, Durable: true, Order: core.OrderTotal}},
		core.Route{To: core.Destination{Endpoint: "in", Name: "own"}, State: core.RouteOpen, Own: true, Restarts: true, Caps: rows.Stored()},
		core.Route{To: core.Destination{Endpoint: "in", Name: "q"}, State: core.RouteOpen, Own: true, Restarts: true, Caps: rows.Stored()},
		core.Declared{
			DeadLetter: true, LongestBackoff: time.Minute, MaxElapsed: time.Hour, Workers: 8, Batch: 64,
			Panic:       core.Reaction{Outcome: core.Outcome{Kind: core.OutcomeFailFast}},
			Undecodable: core.Reaction{Outcome: core.Outcome{Kind: core.OutcomeDeadLetter}},
			Errors: []core.ErrorClass{
				{Match: "Is(file does not exist)", Reaction: core.Reaction{Outcome: core.Outcome{Kind: core.OutcomeRetry}, Spent: true}},
				{Match: "As(*net.OpError)", Reaction: core.Reaction{Outcome: core.Outcome{Kind: core.OutcomeRetryAfter, After: 5 * time.Second}}},
				{Match: "When(main.go:12)", Reaction: core.Reaction{Outcome: core.Outcome{Kind: core.OutcomeAck}}},
			},
			Snooze: core.Snooze{Times: 100, Total: time.Hour},
			Reply:  core.Route{State: core.RouteOpen, Restarts: true, Own: true, Caps: core.Publishing{Confirms: core.ConfirmStored, Retains: core.RetainTransport}},
			Publishes: []core.Route{
				{To: core.Destination{Endpoint: "other", Name: "audit"}, State: core.RouteOpen, Restarts: true, Caps: core.Publishing{Confirms: core.ConfirmQueued, Retains: core.RetainTransport}},
			},
		},
	},
	{ // a requeue takes its partition back
		"rewinds", core.Policy{},
		[]core.Capabilities{{Ack: core.AckSingle, Requeue: core.RequeueDelayed, Unsettled: core.UnsettledOnDisconnect, Durable: true, Order: core.OrderPerScope, Rewinds: true}},
		core.Route{}, core.Route{}, core.Declared{},
	},
	{
		"budget", core.Policy{MaxAttempts: 5, Elapsed: true},
		[]core.Capabilities{rows.Kinds()["C"]}, core.Route{}, core.Route{},
		core.Declared{Cap: true, MaxElapsed: 10 * time.Minute, Workers: 4, ByKey: true, Snooze: core.Snooze{Times: 3, Total: time.Minute}},
	},
}

func TestExplainGolden(t *testing.T) {
	for _, e := range explained {
		t.Run(e.name, func(t *testing.T) {
			table := core.Explain(e.p, e.profiles, e.retry, e.dead, e.d)
			table.Endpoint, table.Subscription = "in", "orders"
			js, err := json.MarshalIndent(table, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, e.name+".txt", table.String())
			golden(t, e.name+".brief.txt", table.Brief())
			golden(t, e.name+".md", table.Markdown())
			golden(t, e.name+".json", string(js)+"\n")
		})
	}
}

// What is explained is what is decided: the row of a plain retry is its plan.
func TestExplainPrintsThePlan(t *testing.T) {
	p := core.Policy{MaxAttempts: 3}
	c := core.Case{Source: rows.Kinds()["A"], Retry: open, Outcome: core.Outcome{Kind: core.OutcomeRetry}}
	var plan core.Plan
	core.Decide(&p, &c, &plan)
	table := core.Explain(p, []core.Capabilities{c.Source}, c.Retry, core.Route{}, core.Declared{Cap: true})
	want := plan.Path(func(core.Step) core.Result { return core.ResultDone }, nil).Text(core.Names{
		Retry: open.To.String(),
		Count: func(uint64) string { return "n" },
	})
	for _, row := range table.Profiles[0].Rows {
		if row.Outcome == "retry" && strings.HasPrefix(row.Attempt, "first") {
			if row.Plan != want {
				t.Errorf("explained as %s, decided as %s", row.Plan, want)
			}
			return
		}
	}
	t.Error("there is no row for a first retry")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "explain", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs; run with -update where that is meant (-want +got):\n%s", file, d)
	}
}

// A copy that only this process reads does not wait behind what others send: it
// comes behind what is under way.
func TestExplainOrderOfOwnCopies(t *testing.T) {
	for retains, want := range map[core.Retention]string{
		core.RetainProcess:   "the copy comes behind those under way",
		core.RetainTransport: "the copy joins the tail of its destination",
	} {
		own := core.Route{
			To: core.Destination{Endpoint: "in", Name: "own"}, State: core.RouteOpen, Own: true,
			Caps: core.Publishing{Confirms: core.ConfirmHandedOver, Retains: retains, Headers: core.HeadersNativeText},
		}
		table := core.Explain(core.Policy{MaxAttempts: 3}, []core.Capabilities{{Address: "own"}}, own, core.Route{}, core.Declared{Cap: true})
		copies := 0
		for _, r := range table.Profiles[0].Rows {
			if r.Copy == "" {
				continue
			}
			copies++
			if r.Order != want {
				t.Errorf("%v: %s, %s", retains, r.Outcome, r.Order)
			}
		}
		if copies == 0 {
			t.Errorf("%v: no copy in %+v", retains, table)
		}
	}
}
