// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
)

type brokerSettings struct {
	URL   string        `json:"url" required:"true"`
	Token core.Secret   `json:"token"`
	Wait  core.Duration `json:"wait" default:"1s"`
}

func TestSettingsTravel(t *testing.T) {
	raw, err := EncodeSettings(brokerSettings{URL: "u", Token: core.NewSecret("s3cret")})
	if err != nil {
		t.Fatal(err)
	}
	o, wrong := SchemaOf[brokerSettings]().options(raw)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	var got brokerSettings
	if err := o.Bind(&got); err != nil {
		t.Fatal(err)
	}
	if got.URL != "u" || got.Token.Reveal() != "s3cret" || got.Wait != core.Duration(time.Second) {
		t.Errorf("bound %+v", got)
	}
	// Options without a schema bind as well.
	if err := NewOptions(raw).Bind(&got); err != nil {
		t.Error(err)
	}
}

func TestBindFaults(t *testing.T) {
	into := brokerSettings{URL: "before"}
	err := NewOptions([]byte(`{"wait":"x"}`)).Bind(&into)
	var f *core.Fault
	if !errors.As(err, &f) || f.Code != core.FaultInvalid || len(f.Diagnostics) != 2 {
		t.Fatalf("error %#v", err)
	}
	if want := "bind options: url: is missing; set it: it is a text"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	if into.URL != "before" {
		t.Errorf("target is %+v", into)
	}
	for _, bad := range []any{nil, brokerSettings{}, (*brokerSettings)(nil), new(int), &struct{ C chan int }{}} {
		if err := NewOptions(nil).Bind(bad); !errors.As(err, &f) || f.Code != core.FaultInternal {
			t.Errorf("bind into %T: %v", bad, err)
		}
	}
}

// Nothing that prints settings shows a secret.
func TestSecretsAreNotShown(t *testing.T) {
	o, _ := SchemaOf[brokerSettings]().options([]byte(`{"url":"u","token":"s3cret"}`))
	s := Settings{Options: o, Endpoint: "e"}
	unknown := NewOptions([]byte(`{"token":"s3cret"}`))
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	log.Info("dump", "options", o, "settings", s, "unknown", unknown)
	for _, v := range []any{o, s, unknown, &o, []Options{o}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	if b, err := json.Marshal(map[string]any{"o": o, "s": o.String()}); err == nil {
		out.Write(b)
	}
	if strings.Contains(out.String(), "s3cret") || strings.Contains(out.String(), fmt.Sprintf("%x", "s3cret")) {
		t.Errorf("a secret is shown:\n%s", out.String())
	}
	if want := `{"token":"[redacted]","url":"u"}`; o.String() != want {
		t.Errorf("options print %s, want %s", o, want)
	}
	if string(o.JSON()) != `{"url":"u","token":"s3cret"}` {
		t.Errorf("JSON is %s", o.JSON())
	}
}

func TestEmptyOptions(t *testing.T) {
	var o Options
	if !o.IsEmpty() || string(o.JSON()) != "{}" || o.String() != "{}" {
		t.Errorf("zero options: %v %s %s", o.IsEmpty(), o.JSON(), o)
	}
	e, err := EncodeOptions(map[string]any{"a": 1})
	if err != nil || e.IsEmpty() || string(e.JSON()) != `{"a":1}` {
		t.Errorf("encoded options: %v %s %v", e.IsEmpty(), e.JSON(), err)
	}
	if _, wrong := (Schema{}).options([]byte(`{"a":1}`)); len(wrong) != 1 {
		t.Errorf("options of no schema: %v", wrong)
	}
}

func TestSchemaOf(t *testing.T) {
	b, err := json.Marshal([]Schema{{}, SchemaOf[struct {
		A int `json:"a"`
	}]()})
	want := `[null,{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}]`
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(b)); d != "" {
		t.Errorf("schemas (-want +got):\n%s", d)
	}
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "field C") {
			t.Errorf("panic %v, want one that names the field", v)
		}
	}()
	SchemaOf[struct{ C chan int }]()
}

func TestOptionsEqual(t *testing.T) {
	raw := []byte(`{"qos":2}`)
	o := NewOptions(raw)
	kept := o.Clone()
	if !kept.Equal(o) {
		t.Error("a copy is not equal")
	}
	raw[7] = '1'
	if kept.Equal(o) || string(kept.JSON()) != `{"qos":2}` {
		t.Errorf("a copy has become %s", kept.JSON())
	}
	if empty := NewOptions([]byte("{}")); !empty.Equal(Options{}) || empty.Equal(o) {
		t.Error("options without anything are equal to each other, and to no others")
	}
}
