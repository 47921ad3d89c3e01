// SPDX-License-Identifier: Apache-2.0

package describe

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/cmd/longshore/internal/term"
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/golden"
	"github.com/longshore-go/longshore/internal/transportpb"
	"github.com/longshore-go/longshore/pluginapi"
)

// settingsOfTest have every kind of setting.
type settingsOfTest struct {
	Address string             `json:"address" doc:"where the broker listens" required:"true"`
	Secret  core.Secret        `json:"password" doc:"never shown"`
	Wait    core.Duration      `json:"wait" doc:"longest wait" default:"5s" min:"1ms"`
	Mode    string             `json:"mode" doc:"how" enum:"fast,safe" default:"safe"`
	Plain   bool               `json:"plain" doc:"no TLS"`
	Names   []string           `json:"names" doc:"who" max:"5"`
	TLS     tlsOfTest          `json:"tls" doc:"how it is secured"`
	Queues  map[string]ofQueue `json:"queues" doc:"by name"`
	Peers   []ofQueue          `json:"peers" doc:"in order"`
}

type tlsOfTest struct {
	CA string `json:"ca_file" doc:"who may sign"`
}

type ofQueue struct {
	Size int `json:"size" doc:"how many" default:"7" max:"9"`
}

// response is a plugin's answer that has everything.
func response() *transportpb.DescribeResponse {
	return &transportpb.DescribeResponse{
		Name: "test", Version: "1.2.3", Restart: transportpb.RestartMode_RESTART_MODE_NEVER,
		WantsStdio: true, Requests: true, Seeks: true, LinkStates: true,
		SettingsSchema: pluginapi.SchemaOf[settingsOfTest]().JSON(),
		Ceilings: convert.FromProfiles([]core.Capabilities{
			{
				Ack: core.AckSingle, Requeue: core.RequeueDelayed, MaxDelay: time.Hour, MaxHold: 30 * time.Second, Extend: true,
				Reject: core.RejectDeadLetters, Counts: core.CountNative, Address: "own", Unsettled: core.UnsettledOnTimeout,
				Durable: true, Order: core.OrderPerScope,
			},
			{},
		}),
		Publishing: convert.FromPublishing(core.Publishing{
			Confirms: core.ConfirmStored, Retains: core.RetainTransport, MaxDelay: time.Minute, Dedups: true,
			Headers: core.HeadersNativeText, MaxBytes: 1 << 20, MaxHeaders: 100,
		}),
	}
}

func TestText(t *testing.T) {
	for name, r := range map[string]*transportpb.DescribeResponse{
		"everything": response(),
		"nothing":    {Name: "test", SettingsSchema: []byte("{broken")},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := From(r).Write(&b, term.Style{}); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, "testdata/"+name+".golden", b.Bytes())
		})
	}
}

// The JSON holds what the text holds, with the schemas as they are.
func TestJSON(t *testing.T) {
	b, err := json.Marshal(From(response()))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Sources []struct {
			Ack      string `json:"ack"`
			MaxDelay string `json:"max_delay"`
		} `json:"sources"`
		Publishing struct {
			Confirms string `json:"confirms"`
		} `json:"publishing"`
		Schemas struct {
			Settings     map[string]any `json:"settings"`
			Subscription map[string]any `json:"subscription"`
		} `json:"schemas"`
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Sources) != 2 || got.Sources[0].Ack != "single" || got.Sources[0].MaxDelay != "1h0m0s" || got.Publishing.Confirms != "stored" {
		t.Errorf("got %+v", got)
	}
	if got.Schemas.Settings["type"] != "object" || got.Schemas.Subscription != nil {
		t.Errorf("got schemas %+v, want that of the settings alone", got.Schemas)
	}
}

func TestOrderedKeys(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{`{"z": 1, "a": {"b": 2}, "m": [3]}`, []string{"z", "a", "m"}},
		{`{}`, nil}, {`[1]`, nil}, {`{"a": `, nil}, {``, nil},
	} {
		if diff := cmp.Diff(tt.want, orderedKeys(json.RawMessage(tt.in))); diff != "" {
			t.Errorf("keys of %s (-want +got):\n%s", tt.in, diff)
		}
	}
}
