// SPDX-License-Identifier: Apache-2.0

package pipe_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/transportpb"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/pluginapi/inproc"
	"github.com/longshore-go/longshore/plugins/pipe"
	"github.com/longshore-go/longshore/plugins/pipe/settings"
)

func inspect(t *testing.T, set settings.Settings, u pluginapi.Usage) pluginapi.Inspection {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	stdio, err := pluginapi.NewStdio(r, w)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdio.Close() }()
	return configure(t, set, stdio, io.Discard).Inspect(u)
}

func TestDescribe(t *testing.T) {
	spec := pipe.New().Describe()
	if !spec.NeverRestart || !spec.WantsStdio || spec.Name != "pipe" {
		t.Errorf("spec %+v", spec)
	}
	for _, c := range spec.Ceilings {
		if err := c.Valid(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"loopback", "plain_input", "plain_output"} {
		if !strings.Contains(string(spec.Settings.JSON()), name) {
			t.Errorf("the schema has no %s", name)
		}
	}
}

func TestConfigureNeedsStdio(t *testing.T) {
	var f *core.Fault
	_, err := pipe.New().Configure(pluginapi.Settings{})
	if !errors.As(err, &f) || f.Code != core.FaultInvalid || !strings.Contains(f.Error(), "stdio: true") {
		t.Errorf("got %v", err)
	}
	_, err = pipe.New().Configure(pluginapi.Settings{Options: pluginapi.NewOptions([]byte(`{"plain":true}`))})
	if !errors.As(err, &f) || len(f.Diagnostics) != 1 || f.Diagnostics[0].Path != "plain" {
		t.Errorf("an unknown option: %v", err)
	}
}

// S-STD-02 and S-STD-15 rest on what Inspect says: no address and nothing that
// returns without loopback, both with it.
func TestInspect_S_STD_02_S_STD_15(t *testing.T) {
	usage := pluginapi.Usage{
		Registrations: []pluginapi.Registration{{ID: 0, Name: "orders"}, {ID: 1, Name: "dead"}, {ID: 2, Name: "orders"}},
		Destinations: []pluginapi.Target{
			{Name: "orders", Purpose: pluginapi.PurposeDeadLetter, For: []uint32{0}},
			{Name: "else", Purpose: pluginapi.PurposeApplication},
		},
	}
	printed := core.Publishing{
		Confirms: core.ConfirmHandedOver, Headers: core.HeadersEnveloped, Repeats: true, MaxBytes: 64<<20 - 35, MaxHeaders: 1<<16 - 1,
	}
	looped := printed
	looped.Confirms, looped.Retains = core.ConfirmQueued, core.RetainProcess
	plain := printed
	plain.Headers, plain.Repeats = core.HeadersNone, false
	for _, tt := range []struct {
		name          string
		set           settings.Settings
		address       string
		returns       []uint32
		orders, other core.Publishing
	}{
		{"by default", settings.Settings{}, "", nil, printed, printed},
		{"with loopback", settings.Settings{Loopback: true}, "orders", []uint32{0, 2}, looped, printed},
		{"plain", settings.Settings{PlainOutput: true}, "", nil, plain, plain},
		{"plain with loopback", settings.Settings{PlainOutput: true, Loopback: true}, "orders", []uint32{0, 2}, looped, plain},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := inspect(t, tt.set, usage)
			profile := core.Capabilities{Order: core.OrderTotal, Address: tt.address}
			if diff := cmp.Diff([]core.Capabilities{profile}, got.Registrations[0].Profiles); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]uint32{1, 2}, got.Registrations[0].Shares); diff != "" {
				t.Error(diff)
			}
			want := []pluginapi.TargetReport{
				{Publishing: tt.orders, ReturnsTo: tt.returns, Exactly: tt.returns},
				{Publishing: tt.other},
			}
			if diff := cmp.Diff(want, got.Destinations); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInspectRefusesBadKeys(t *testing.T) {
	got := inspect(t, settings.Settings{}, pluginapi.Usage{
		Registrations: []pluginapi.Registration{{Name: "a b"}},
		Destinations:  []pluginapi.Target{{Name: "dead/letters"}, {Name: "fine"}},
	})
	for name, fs := range map[string][]pluginapi.Finding{"a b": got.Registrations[0].Findings, "dead/letters": got.Destinations[0].Findings} {
		if len(fs) != 1 || fs[0].Warning || !strings.Contains(fs[0].Message, name) || fs[0].Fix == "" {
			t.Errorf("%s: findings %+v", name, fs)
		}
	}
	if fs := got.Destinations[1].Findings; len(fs) != 0 {
		t.Errorf("findings %+v", fs)
	}
}

func TestSubscribeRefusesABadKey(t *testing.T) {
	b := open(t, settings.Settings{})
	var f *core.Fault
	if _, err := b.conn.Subscribe(b.ctx, pluginapi.Registration{Name: "a b"}); !errors.As(err, &f) || f.Code != core.FaultInvalid {
		t.Errorf("got %v", err)
	}
	b.end()
	if _, err := b.conn.Subscribe(b.ctx, pluginapi.Registration{Name: "k"}); !errors.As(err, &f) || f.Code != core.FaultClosed {
		t.Errorf("after the close: %v", err)
	}
}

// What Inspect says keeps to what Describe promises, as the SDK checks it, under
// every combination of settings.
func TestInspectKeepsToDescribe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	for bits := range 8 {
		set := settings.Settings{Loopback: bits&1 != 0, PlainInput: bits&2 != 0, PlainOutput: bits&4 != 0}
		stdio, err := pluginapi.NewStdio(r, w)
		if err != nil {
			t.Fatal(err)
		}
		g, err := inproc.New(pipe.New(), inproc.Options{Endpoint: "in", Stdio: stdio})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := pluginapi.EncodeSettings(set)
		if err != nil {
			t.Fatal(err)
		}
		c, err := g.Link().Configure(t.Context(), &transportpb.ConfigureRequest{Endpoint: "in", Generation: 1, Settings: raw, Stdio: true})
		if err != nil || c.GetFault() != nil {
			t.Fatalf("%+v: configure: %v, %v", set, err, c.GetFault())
		}
		in, err := g.Link().Inspect(t.Context(), &transportpb.InspectRequest{
			Registrations: []*transportpb.Registration{{Name: "k"}},
			Destinations:  []*transportpb.Target{{Name: "k", Purpose: transportpb.Purpose_PURPOSE_RETRY}, {Name: "out", Purpose: transportpb.Purpose_PURPOSE_APPLICATION}},
		})
		if err != nil {
			t.Fatalf("%+v: inspect: %v", set, err)
		}
		for _, f := range in.GetFindings() {
			t.Errorf("%+v: %v", set, f)
		}
		if err := g.End(t.Context()); err != nil {
			t.Error(err)
		}
		_ = stdio.Close()
	}
}
