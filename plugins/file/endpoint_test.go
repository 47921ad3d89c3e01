// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

func TestDescribe(t *testing.T) {
	spec := file.New().Describe()
	if spec.Name != "file" || spec.NeverRestart || spec.WantsStdio || !spec.Seeks {
		t.Errorf("spec %+v", spec)
	}
	for _, c := range spec.Ceilings {
		if err := c.Valid(); err != nil {
			t.Error(err)
		}
	}
	for schema, names := range map[*pluginapi.Schema]string{
		&spec.Settings:     "path existing_only end_with_eos beacon_interval max_bytes fsync fsync_interval torn_tail rotate bytes age keep groups",
		&spec.Subscription: "replay start group",
	} {
		for name := range strings.FieldsSeq(names) {
			if !strings.Contains(string(schema.JSON()), `"`+name+`":`) {
				t.Errorf("the schema has no %s", name)
			}
		}
	}
}

// All that is wrong with settings is said at once, by field.
func TestConfigureRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, json string
		want       []string // path: what the fix speaks of
	}{
		{"no path", `{}`, []string{"path: set it"}},
		{"an empty path", `{"path":""}`, []string{"path: at least 1"}},
		{"a folder", `{"path":"dir/"}`, []string{"path: name of the file"}},
		{"dots", `{"path":"../.."}`, []string{"path: name of the file"}},
		{"a zero byte", `{"path":"a\u0000b"}`, []string{"path: zero byte"}},
		{"a long name", fmt.Sprintf(`{"path":"%s.ss"}`, strings.Repeat("n", 250)), []string{"path: at most 241"}},
		{"S-FIL-17", `{"path":"a.ss","beacon_interval":1000}`, []string{"beacon_interval: multiple of 1024"}},
		{"S-FIL-17, 0", `{"path":"a.ss","beacon_interval":0}`, []string{"beacon_interval: multiple of 1024"}},
		{"a large interval", `{"path":"a.ss","beacon_interval":4294967296}`, []string{"beacon_interval: multiple of 1024"}},
		{"keep without rotation", `{"path":"a.ss","rotate":{"keep":2}}`, []string{"rotate.keep: rotate.bytes"}},
		{"no such fsync", `{"path":"a.ss","fsync":"often"}`, []string{"fsync: interval"}},
		{"no such treatment", `{"path":"a.ss","torn_tail":"keep"}`, []string{"torn_tail: refuse"}},
		{"a small limit", `{"path":"a.ss","max_bytes":0}`, []string{"max_bytes: at least 1024"}},
		{"several", `{"path":"x/","beacon_interval":-1,"rotate":{"keep":1}}`, []string{"path: name of the file", "beacon_interval: multiple of 1024", "rotate.keep: rotate.bytes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := file.New().Configure(pluginapi.Settings{Options: pluginapi.NewOptions([]byte(tt.json))})
			f, ok := errors.AsType[*core.Fault](err)
			if !ok || f.Code != core.FaultInvalid || len(f.Diagnostics) != len(tt.want) {
				t.Fatalf("got %+v", err)
			}
			for i, d := range f.Diagnostics {
				path, fix, _ := strings.Cut(tt.want[i], ": ")
				if d.Path != path || !strings.Contains(d.Fix, fix) || d.Message == "" {
					t.Errorf("got %+v, want %s", d, tt.want[i])
				}
			}
		})
	}
}

// inspect asks an endpoint with default settings.
func inspect(t *testing.T, set settings.Settings, u pluginapi.Usage) pluginapi.Inspection {
	t.Helper()
	if set.Path == "" {
		set.Path = "orders.ss"
	}
	return configure(t, set, nil).Inspect(u)
}

// registration is one with options.
func registration(t testing.TB, id uint32, name string, o settings.Subscription) pluginapi.Registration {
	t.Helper()
	options, err := pluginapi.EncodeOptions(o)
	if err != nil {
		t.Fatal(err)
	}
	return pluginapi.Registration{ID: id, Name: name, Options: options}
}

func TestInspect(t *testing.T) {
	plain := func(address string) core.Capabilities {
		return core.Capabilities{Address: address, Order: core.OrderTotal}
	}
	group := core.Capabilities{
		Ack: core.AckSingle, Requeue: core.RequeueDelayed, Counts: core.CountNative, Address: "orders",
		Unsettled: core.UnsettledOnResume, Durable: true, Order: core.OrderTotal,
	}
	got := inspect(t, settings.Settings{}, pluginapi.Usage{
		Registrations: []pluginapi.Registration{
			registration(t, 0, "orders", settings.Subscription{}),
			registration(t, 1, "orders", settings.Subscription{Group: "g"}),
			registration(t, 2, "ord*", settings.Subscription{Replay: true}),
			registration(t, 3, "*", settings.Subscription{}),
		},
		Destinations: []pluginapi.Target{{Name: "orders"}, {Name: "order"}, {Name: "else"}},
	})
	for i, want := range []core.Capabilities{plain("orders"), group, plain(""), plain("")} {
		if diff := cmp.Diff([]core.Capabilities{want}, got.Registrations[i].Profiles); diff != "" {
			t.Error(diff)
		}
		if r := got.Registrations[i]; len(r.Findings)+len(r.Shares) > 0 {
			t.Errorf("registration %d: %+v", i, r)
		}
	}
	p := core.Publishing{
		Confirms: core.ConfirmHandedOver, Retains: core.RetainTransport, Headers: core.HeadersEnveloped, Repeats: true,
		MaxBytes: 64<<20 - 35, MaxHeaders: 1<<16 - 1,
	}
	want := []pluginapi.TargetReport{
		{Publishing: p, ReturnsTo: []uint32{0, 1, 2, 3}, Exactly: []uint32{0, 1}},
		{Publishing: p, ReturnsTo: []uint32{2, 3}},
		{Publishing: p, ReturnsTo: []uint32{3}},
	}
	if diff := cmp.Diff(want, got.Destinations); diff != "" {
		t.Error(diff)
	}
}

// What a receipt is worth is what fsync says.
func TestInspectConfirms(t *testing.T) {
	for fsync, want := range map[string]core.Confirm{
		settings.FsyncNone: core.ConfirmHandedOver, settings.FsyncInterval: core.ConfirmHandedOver, settings.FsyncEach: core.ConfirmStored,
	} {
		got := inspect(t, settings.Settings{Fsync: fsync}, pluginapi.Usage{Destinations: []pluginapi.Target{{Name: "k"}}})
		if got.Destinations[0].Publishing.Confirms != want {
			t.Errorf("%s: got %v, want %v", fsync, got.Destinations[0].Publishing.Confirms, want)
		}
	}
}

func TestInspectRefuses_S_FIL_08_S_FIL_18(t *testing.T) {
	long := strings.Repeat("k", 250)
	for _, tt := range []struct {
		name string
		o    settings.Subscription
		want string // option: message
	}{
		{"", settings.Subscription{}, `name: ""`},
		{" ", settings.Subscription{}, `name: " "`},
		{long, settings.Subscription{}, "name: kkk"},
		{"a/b", settings.Subscription{}, `name: "a/b"`},
		{"a*b", settings.Subscription{}, `name: "a*b"`},
		{"**", settings.Subscription{}, `name: "**"`},
		{"a *", settings.Subscription{}, `name: "a *"`},
		{"ruststream-internal", settings.Subscription{}, "name: the format's own"},
		{"SEA_STREAMER_INTERNAL", settings.Subscription{}, "name: the format's own"},
		{"a.*", settings.Subscription{Start: settings.Sequence(2)}, "start: several"},
		{"k", settings.Subscription{Group: "a/b"}, `group: "a/b"`},
		{"k", settings.Subscription{Group: ".."}, `group: ".."`},
	} {
		t.Run(tt.name+tt.o.Group, func(t *testing.T) {
			got := inspect(t, settings.Settings{}, pluginapi.Usage{Registrations: []pluginapi.Registration{registration(t, 0, tt.name, tt.o)}})
			refused(t, got.Registrations[0].Findings, tt.want)
		})
	}
	for _, name := range []string{"", " ", long, "a*", "dead/letters", "SEA_STREAMER_INTERNAL"} {
		t.Run("to "+name, func(t *testing.T) {
			got := inspect(t, settings.Settings{}, pluginapi.Usage{Destinations: []pluginapi.Target{{Name: name, Purpose: pluginapi.PurposeDeadLetter}}})
			refused(t, got.Destinations[0].Findings, "name: ")
		})
	}
}

// refused checks for one finding.
func refused(t *testing.T, fs []pluginapi.Finding, want string) {
	t.Helper()
	option, message, _ := strings.Cut(want, ": ")
	if len(fs) != 1 || fs[0].Warning || fs[0].Option != option || !strings.Contains(fs[0].Message, message) || fs[0].Fix == "" {
		t.Errorf("got %+v, want %s", fs, want)
	}
}

// One reader has the position of a group at a time, so two in one service are
// refused before anything is opened.
func TestInspectRefusesOnePositionTwice(t *testing.T) {
	in := func(group string) settings.Subscription { return settings.Subscription{Group: group} }
	got := inspect(t, settings.Settings{}, pluginapi.Usage{Registrations: []pluginapi.Registration{
		registration(t, 0, "k", in("g")), registration(t, 1, "k", in("h")), registration(t, 2, "*", in("g")), registration(t, 3, "k", in("g")),
	}})
	for i, r := range got.Registrations[:3] {
		if len(r.Findings) > 0 {
			t.Errorf("registration %d: %+v", i, r.Findings)
		}
	}
	refused(t, got.Registrations[3].Findings, "group: one reader")
}

// The writer is opened at Connect where something is sure to be published.
func TestWhatIsSureToBePublished(t *testing.T) {
	k := func(r pluginapi.Registration) []pluginapi.Registration {
		r.Name = "k"
		return []pluginapi.Registration{r}
	}
	group := func(r pluginapi.Registration) []pluginapi.Registration {
		r.Options = registration(t, 0, "k", settings.Subscription{Group: "g"}).Options
		return k(r)
	}
	own := []pluginapi.Target{{Name: "k", Purpose: pluginapi.PurposeRetry, For: []uint32{0}}}
	for _, tt := range []struct {
		name string
		u    pluginapi.Usage
		want bool
	}{
		{"nothing", pluginapi.Usage{Registrations: k(pluginapi.Registration{})}, false},
		{"a delayed retry, perhaps", pluginapi.Usage{Registrations: k(pluginapi.Registration{}), Destinations: own}, false},
		{"a cap", pluginapi.Usage{Registrations: k(pluginapi.Registration{Attempts: 2}), Destinations: own}, true},
		{"a backoff", pluginapi.Usage{Registrations: k(pluginapi.Registration{Backoff: time.Second}), Destinations: own}, true},
		{"a cap of a group", pluginapi.Usage{
			Registrations: k(pluginapi.Registration{Attempts: 2, Backoff: time.Second, DeadLetter: "q@other", Options: registration(t, 0, "k", billing).Options}),
			Destinations:  own,
		}, false},
		{"a dead letter of a group", pluginapi.Usage{
			Registrations: k(pluginapi.Registration{DeadLetter: "q", Options: registration(t, 0, "k", billing).Options}),
			Destinations:  append(own, pluginapi.Target{Name: "q", Purpose: pluginapi.PurposeDeadLetter, For: []uint32{0}}),
		}, true},
		{"copies elsewhere", pluginapi.Usage{Registrations: k(pluginapi.Registration{RetryTo: "t"}), Destinations: own}, true},
		{"a dead letter elsewhere", pluginapi.Usage{Registrations: k(pluginapi.Registration{DeadLetter: "q@other"}), Destinations: own}, true},
		{"a cap of a group", pluginapi.Usage{Registrations: group(pluginapi.Registration{Attempts: 2, Backoff: time.Second, DeadLetter: "q@other"}), Destinations: own}, false},
		{"copies elsewhere of a group", pluginapi.Usage{Registrations: group(pluginapi.Registration{RetryTo: "t"}), Destinations: own}, true},
		{"a publisher", pluginapi.Usage{Destinations: []pluginapi.Target{{Name: "k", Purpose: pluginapi.PurposeApplication}}}, true},
		{"another endpoint's copies", pluginapi.Usage{Destinations: []pluginapi.Target{{Name: "k", Purpose: pluginapi.PurposeRetry}}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// One who writes already shows whether the lock is wanted.
			path := newPath(t)
			holder := open(t, settings.Settings{Path: path}, writes("k"))
			_, err := connect(t, settings.Settings{Path: path}, tt.u)
			if locked := err != nil; locked != tt.want {
				t.Errorf("got %v", err)
			}
			holder.end()
		})
	}
}

// A replay that starts at the end has nothing to read; with a group it moves the
// position there.
func TestInspectWarnsOfAnEmptyReplay(t *testing.T) {
	for _, tt := range []struct {
		o    settings.Subscription
		warn bool
	}{
		{settings.Subscription{Replay: true, Start: settings.End()}, true},
		{settings.Subscription{Replay: true, Start: settings.End(), Group: "g"}, false},
		{settings.Subscription{Start: settings.End()}, false},
		{settings.Subscription{Replay: true}, false},
	} {
		got := inspect(t, settings.Settings{}, pluginapi.Usage{Registrations: []pluginapi.Registration{registration(t, 0, "k", tt.o)}})
		fs := got.Registrations[0].Findings
		if warns := len(fs) == 1 && fs[0].Warning && fs[0].Option == "start" && fs[0].Fix != ""; warns != tt.warn || len(fs) > 1 {
			t.Errorf("%+v: findings %+v", tt.o, fs)
		}
	}
}
