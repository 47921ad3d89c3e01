// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

func TestDescribe(t *testing.T) {
	spec := zmq.New().Describe()
	if spec.Name != "zmq" || spec.NeverRestart || spec.WantsStdio || !spec.Requests || !spec.LinkStates || spec.Seeks {
		t.Errorf("spec %+v", spec)
	}
	for _, c := range spec.Ceilings {
		if err := c.Valid(); err != nil {
			t.Error(err)
		}
	}
	for name := range strings.FieldsSeq("pattern bind connect max_message send_queue send_queue_bytes send_total_bytes max_peers handshake_timeout peer_wait linger heartbeat security") {
		if !strings.Contains(string(spec.Settings.JSON()), `"`+name+`":`) {
			t.Errorf("the schema has no %s", name)
		}
	}
}

// All that is wrong with settings is said at once, by field, before any I/O.
func TestConfigureRefuses(t *testing.T) {
	const queue = `"pattern":"queue",`
	for _, tt := range []struct {
		name, json string
		want       []string // path: what message and fix speak of, by semicolons
	}{
		{"nothing", `{}`, []string{"pattern: queue"}},
		{"no such pattern", `{"pattern":"pubsub","bind":"tcp://*:0"}`, []string{"pattern: pubsub; fan-out"}},
		{"S-ZMQ-37, none", `{"pattern":"queue"}`, []string{"bind: there is no address; tcp and ipc"}},
		{"S-ZMQ-37, inproc", `{` + queue + `"bind":"inproc://x"}`, []string{"bind: inproc://x; tcp; ipc"}},
		{"S-ZMQ-37, udp", `{` + queue + `"bind":"udp://127.0.0.1:5555"}`, []string{"bind: udp://127.0.0.1:5555; tcp; ipc"}},
		{"S-ZMQ-37, dialed", `{` + queue + `"connect":["tcp://a:1","pgm://b:2","inproc://c"]}`,
			[]string{"connect[1]: pgm://b:2; tcp; ipc", "connect[2]: inproc://c; tcp; ipc"}},
		{"a bare port", `{` + queue + `"bind":"5555"}`, []string{"bind: 5555; tcp"}},
		{"port 0 dialed", `{` + queue + `"connect":["tcp://127.0.0.1:0"]}`, []string{"connect[0]: tcp://127.0.0.1:0; port"}},
		{"all interfaces dialed", `{` + queue + `"connect":["tcp://*:5555"]}`, []string{"connect[0]: tcp://*:5555"}},
		{"an abstract socket", `{` + queue + `"bind":"ipc://@jobs"}`, []string{"bind: ipc://@jobs"}},
		{"both sides", `{` + queue + `"bind":"tcp://*:0","connect":["tcp://a:1"]}`, []string{"connect: beside bind; two endpoints"}},
		{"twice", `{` + queue + `"connect":["tcp://a:1","tcp://a:1"]}`, []string{"connect[1]: tcp://a:1; twice"}},
		{"Z-14, CURVE", `{` + queue + `"bind":"tcp://*:0","security":"curve"}`, []string{"security: CURVE; not offered; tunnel"}},
		{"Z-14, PLAIN", `{` + queue + `"bind":"tcp://*:0","security":"PLAIN"}`, []string{"security: PLAIN; not offered; tunnel"}},
		{"Z-14, another", `{` + queue + `"bind":"tcp://*:0","security":"gssapi"}`, []string{"security: gssapi; null"}},
		{"Z-14, keys", `{` + queue + `"bind":"tcp://*:0","curve_server_key":"x","password":"y"}`, []string{"curve_server_key: not known", "password: not known"}},
		{"a quick heartbeat", `{` + queue + `"bind":"tcp://*:0","heartbeat":"5ms"}`, []string{"heartbeat: 5ms; 100ms"}},
		{"limits", `{` + queue + `"bind":"tcp://*:0","max_message":67108865,"send_queue":0,"max_peers":0,"peer_wait":"11s"}`,
			[]string{"max_message: at most 67108864", "send_queue: at least 1", "max_peers: at least 1", "peer_wait: at most 10s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := zmq.New().Configure(pluginapi.Settings{Options: pluginapi.NewOptions([]byte(tt.json))})
			f, ok := errors.AsType[*core.Fault](err)
			if !ok || f.Code != core.FaultInvalid || len(f.Diagnostics) != len(tt.want) {
				t.Fatalf("got %+v", err)
			}
			for i, d := range f.Diagnostics {
				path, words, _ := strings.Cut(tt.want[i], ": ")
				if d.Path != path || d.Message == "" || d.Fix == "" {
					t.Errorf("got %+v, want %s", d, tt.want[i])
				}
				for w := range strings.SplitSeq(words, "; ") {
					if !strings.Contains(d.Message+" "+d.Fix, w) {
						t.Errorf("got %+v, which lacks %q", d, w)
					}
				}
			}
		})
	}
}

func TestConfigureTakes(t *testing.T) {
	for _, s := range []string{
		`"bind":"tcp://*:5555"`, `"bind":"tcp://127.0.0.1:0"`, `"bind":"tcp://[::1]:5555"`, `"bind":"ipc:///run/jobs.sock"`, `"bind":"ipc://jobs.sock"`,
		`"connect":["tcp://broker.example:5555","ipc:///run/jobs.sock"]`, `"connect":["tcp://[::1]:5555"],"security":"null","heartbeat":"1s"`,
	} {
		for _, pattern := range []string{"queue", "fan-out", "rpc"} {
			raw := fmt.Sprintf(`{"pattern":%q,%s}`, pattern, s)
			if _, err := zmq.New().Configure(pluginapi.Settings{Options: pluginapi.NewOptions([]byte(raw))}); err != nil {
				t.Errorf("%s: %v", raw, err)
			}
		}
	}
}

// sides are the settings of the two sides of a pattern.
func sides(pattern string) (bind, dial settings.Settings) {
	return settings.Settings{Pattern: pattern, Bind: anyPort}, settings.Settings{Pattern: pattern, Connect: []string{closed}}
}

// registrations are those with these names.
func registrations(names ...string) []pluginapi.Registration {
	var rs []pluginapi.Registration
	for i, n := range names {
		rs = append(rs, pluginapi.Registration{ID: uint32(i), Name: n})
	}
	return rs
}

// What a subscription can do depends on pattern and side: only one that binds a
// queue or a fan-out has an address.
func TestInspectProfiles(t *testing.T) {
	for _, pattern := range []string{settings.PatternQueue, settings.PatternFanOut, settings.PatternRPC} {
		bind, dial := sides(pattern)
		several := settings.Settings{Pattern: pattern, Connect: []string{closed, "tcp://127.0.0.1:2"}}
		bound := core.Capabilities{Address: "jobs"}
		if pattern == settings.PatternRPC {
			bound.Address = ""
		}
		for _, tt := range []struct {
			set  settings.Settings
			want core.Capabilities
		}{{bind, bound}, {dial, core.Capabilities{Order: core.OrderTotal}}, {several, core.Capabilities{}}} {
			got := configure(t, tt.set, nil).Inspect(pluginapi.Usage{Registrations: registrations("jobs")}).Registrations[0]
			if diff := cmp.Diff([]core.Capabilities{tt.want}, got.Profiles); diff != "" || len(got.Findings)+len(got.Shares) > 0 {
				t.Errorf("%s, %+v: %s %+v", pattern, tt.set, diff, got)
			}
		}
	}
}

// Copies of what has no address need a destination: the engine refuses the rest.
func TestInspectWithoutAddress_S_ZMQ_15_S_ZMQ_27_S_ZMQ_29(t *testing.T) {
	_, queue := sides(settings.PatternQueue)
	_, fanout := sides(settings.PatternFanOut)
	rpc, _ := sides(settings.PatternRPC)
	for row, set := range map[string]settings.Settings{"S-ZMQ-15": queue, "S-ZMQ-27": fanout, "S-ZMQ-29": rpc} {
		t.Run(row, func(t *testing.T) {
			got := configure(t, set, nil).Inspect(pluginapi.Usage{Registrations: registrations("jobs")}).Registrations[0]
			for _, p := range []core.Policy{{}, {MaxAttempts: 3}} {
				found := core.Check(p, got.Profiles, core.Route{}, core.Route{}, core.Declared{Cap: p.MaxAttempts > 0})
				if len(found) == 0 || found[0].Warning || found[0].Option != "RetryTo" {
					t.Errorf("%+v: got %v", p, found)
				}
			}
		})
	}
}

// finds says what is wrong with findings that should be one refusal which names
// all words.
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

func TestInspectRefusesSubscriptions(t *testing.T) {
	bind, dial := sides(settings.PatternQueue)
	rpc, _ := sides(settings.PatternRPC)
	batch := registrations("calc")
	batch[0].Batch = true
	for _, tt := range []struct {
		name  string
		set   settings.Settings
		rs    []pluginapi.Registration
		words string // of the last one's finding
	}{
		{"S-ZMQ-36", bind, registrations("jobs", "mails"), "jobs; mails; endpoint in; " + anyPort + "; another endpoint"},
		{"S-ZMQ-36, one name", bind, registrations("jobs", "jobs"), "jobs; endpoint in; another endpoint"},
		{"S-ZMQ-36, dialing", dial, registrations("jobs", "mails"), "jobs; mails; endpoint in; " + closed},
		{"S-ZMQ-38", rpc, batch, "HandleBatch; calc; HandleReply"},
		{"no name", bind, registrations(""), "no name"},
		{"a long name", bind, registrations(strings.Repeat("n", 1<<16+1)), "65537 bytes; 65536"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := configure(t, tt.set, nil).Inspect(pluginapi.Usage{Registrations: tt.rs}).Registrations
			for _, r := range got[:len(got)-1] {
				if len(r.Findings) > 0 {
					t.Errorf("the first: %+v", r.Findings)
				}
			}
			if wrong := finds(got[len(got)-1].Findings, false, tt.words); wrong != "" {
				t.Error(wrong)
			}
		})
	}
	batch[0].Name = "jobs"
	if got := configure(t, bind, nil).Inspect(pluginapi.Usage{Registrations: batch}).Registrations[0]; len(got.Findings) > 0 {
		t.Errorf("a batch of a queue: %+v", got.Findings)
	}
}
