// SPDX-License-Identifier: Apache-2.0

package card

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/conform"
	"github.com/longshore-go/longshore/internal/golden"
)

// everything is a report that has all there is.
func everything() *conform.Report {
	profiles := []core.Capabilities{
		{
			Ack: core.AckSingle, Requeue: core.RequeueDelayed, MaxDelay: time.Hour, MaxHold: 30 * time.Second, Extend: true,
			Reject: core.RejectDeadLetters, Counts: core.CountNative, Address: "conform-7", Unsettled: core.UnsettledOnTimeout,
			Durable: true, Order: core.OrderPerScope,
		},
		{Unsettled: core.UnsettledLost},
	}
	publishing := &core.Publishing{
		Confirms: core.ConfirmStored, Retains: core.RetainTransport, MaxDelay: time.Minute, Dedups: true,
		Headers: core.HeadersNativeText, Repeats: true, MaxBytes: 1 << 20, MaxHeaders: 100,
	}
	return &conform.Report{
		Plugin: conform.Plugin{
			Name: "test", Version: "1.2.3", Path: "/opt/longshore-transport-test", Checksum: "sha256:" + strings.Repeat("ab", 32), Protocol: 1,
			Digest: conform.Digest(profiles, publishing), Subscription: conform.DefaultSubscription, Destination: "conform-{case}",
			Settings: map[string]any{"url": "test://127.0.0.1:1", "group": "a|b", "deep": map[string]any{"dir": "{dir}/q"}},
			Options:  map[string]any{"from_start": true},
			Profiles: profiles, Publishing: publishing,
		},
		Started: time.Date(2026, 11, 30, 12, 0, 0, 5, time.FixedZone("", 3600)), Time: 83*time.Second + 4567*time.Microsecond,
		Results: []conform.Result{
			{Case: "lifecycle/describe", Claim: "Describe does no I/O and is quick.", Section: "Describe", Status: conform.Passed, Time: 200 * time.Microsecond},
			{Case: "credit/messages", Claim: "No more messages are unsettled than the window allows.", Section: "Credit", Status: conform.Passed, Time: 120 * time.Millisecond, Notes: []string{"2 messages came twice"}},
			{
				Case: "credit/bytes", Claim: "Bytes exceed the window by one message at most.", Section: "Credit", Status: conform.Failed, Time: 1234567 * time.Microsecond,
				Faults: []string{"delivery 7 came while 9 bytes of 8 were unsettled", "| **not** a [link](x) &amp; <b>no\ntag</b>, max_delay \x1b[31mred"},
				Log:    []string{"[warn] a line of the plugin"},
			},
			{Case: "settle/requeue", Claim: "A requeued delivery comes back.", Section: "Verdicts", Status: conform.NotApplicable, Reason: "no profile has a requeue"},
			{Case: "kill/disconnect", Claim: "Void tells the truth.", Section: "Void", Status: conform.NotRun, Reason: "Disconnect is not given"},
		},
	}
}

// least is a report of a plugin that can do nothing.
func least() *conform.Report {
	return &conform.Report{
		Plugin:   conform.Plugin{Name: "test", Protocol: 1, Digest: conform.Digest(nil, nil), Subscription: "x"},
		Selected: true,
		Results:  []conform.Result{{Case: "lifecycle/describe", Claim: "Describe is quick.", Status: conform.Passed, Time: time.Second}},
	}
}

func TestGolden(t *testing.T) {
	for name, c := range map[string]*Card{
		"everything": From(everything()),
		"stable":     From(everything()).Stable(),
		"least":      From(least()),
	} {
		t.Run(name, func(t *testing.T) {
			text, err := c.JSON()
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, "testdata/"+name+".json", text)
			golden.Compare(t, "testdata/"+name+".md", c.Markdown())
		})
	}
}

// What a run did not share with the next one does not make a stable card differ.
func TestStable(t *testing.T) {
	first, again := everything(), everything()
	again.Started, again.Time = time.Now(), time.Second
	again.Plugin.Version, again.Plugin.Checksum, again.Plugin.Path = "1.2.4", "sha256:00", "/elsewhere"
	for i := range again.Results {
		again.Results[i].Time *= 2
	}
	again.Results[1].Notes, again.Results[2].Log = nil, nil
	before := From(first)
	if diff := cmp.Diff(before.Stable(), From(again).Stable()); diff != "" {
		t.Errorf("stable cards differ:\n%s", diff)
	}
	if diff := cmp.Diff(From(first), before); diff != "" {
		t.Errorf("Stable changed the card itself:\n%s", diff)
	}
	again.Results[1].Status = conform.Failed
	if cmp.Equal(before.Stable(), From(again).Stable()) {
		t.Error("a failed case does not show in a stable card")
	}
}

func TestReadBack(t *testing.T) {
	for name, r := range map[string]*conform.Report{"everything": everything(), "least": least()} {
		t.Run(name, func(t *testing.T) {
			want := From(r)
			text, err := want.JSON()
			if err != nil {
				t.Fatal(err)
			}
			got, err := Read(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("card (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	const head = `{"format":1,"plugin":{"name":"x"},`
	for name, tt := range map[string]struct{ text, want string }{
		"nothing":          {"", "is it a card in JSON?"},
		"something else":   {"# Capability card", "is it a card in JSON?"},
		"other JSON":       {"{}", "format is missing"},
		"newer":            {`{"format":2}`, "format is 2, known is 1; use the longshore that wrote it"},
		"no plugin":        {`{"format":1}`, "plugin.name is missing"},
		"two of one id":    {head + `"run":{"passed":2},"cases":[{"id":"a/b","status":"passed"},{"id":"a/b","status":"passed"}]}`, `cases[1].id: "a/b" is there twice`},
		"unknown status":   {head + `"cases":[{"id":"a/b","status":"fine"}]}`, `cases[0].status: "fine" is none`},
		"failure left out": {head + `"run":{"passed":1},"cases":[{"id":"a/b","status":"failed"}]}`, "run counts 1 passed, 0 failed"},
		"unknown word":     {head + `"capabilities":{"profiles":[{"ack":"maybe"}]}}`, "read ack mode"},
		"too large":        {head + strings.Repeat(" ", maxCard), "is larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(strings.NewReader(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want it to say %q", err, tt.want)
			}
		})
	}
}

// What is read writes, and reads again as the same card; a page of it never
// breaks a line of the plugin's into a line of its own.
func FuzzRead(f *testing.F) {
	for _, r := range []*conform.Report{everything(), least()} {
		text, err := From(r).JSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"format":1,"plugin":{"name":"x\n# y"},"run":{"failed":1},"cases":[{"id":"","status":"failed","faults":["\u001b[2J"]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		page := c.Markdown()
		if bytes.ContainsAny(page, "\x1b\r\x00") {
			t.Errorf("a page holds control characters: %q", page)
		}
		out, err := c.JSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Read(bytes.NewReader(out))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("card read again (-want +got):\n%s", diff)
		}
	})
}
