// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/longshore-go/longshore/core"
)

// settings has one field of every kind.
type settings struct {
	URL     string            `json:"url" doc:"where the broker is" required:"true" min:"3" max:"40"`
	Port    uint16            `json:"port" default:"1883" min:"1"`
	Ratio   float64           `json:"ratio" default:"0.5" min:"0" max:"1"`
	Big     int64             `json:"big"`
	Clean   *bool             `json:"clean" default:"true"`
	Level   string            `json:"level" enum:"low, high" default:"low"`
	Token   core.Secret       `json:"token"`
	Wait    core.Duration     `json:"wait" default:"1.5s" min:"1s" max:"1m"`
	Addr    netip.Addr        `json:"addr"`
	TLS     tlsSettings       `json:"tls" doc:"how to trust"`
	Proxy   *tlsSettings      `json:"proxy"`
	Topics  []topic           `json:"topics" max:"3"`
	Labels  map[string]string `json:"labels"`
	Queues  map[string]topic  `json:"queues"`
	Words   []string          `json:"words" default:"[\"a\",\"b\"]" min:"1"`
	Ignored chan int          `json:"-"`
	_       struct{}          `unsupported:"oauth2" fix:"use token"`
	base
}

type base struct {
	Zone string `json:"zone"`
}

type tlsSettings struct {
	CA  string      `json:"ca_file" required:"true"`
	Key core.Secret `json:"key"`
	Min string      `json:"min_version" default:"1.2"`
}

type topic struct {
	Name string `json:"name" required:"true"`
	QoS  int8   `json:"qos" max:"2"`
}

func of[T any](tb testing.TB) *Type {
	tb.Helper()
	t, err := Of(reflect.TypeFor[T]())
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func bind(tb testing.TB, raw string) (settings, []core.Diagnostic) {
	tb.Helper()
	var s settings
	ds := of[settings](tb).Bind([]byte(raw), reflect.ValueOf(&s).Elem())
	return s, ds
}

func TestBindDefaults(t *testing.T) {
	yes := true
	want := settings{
		URL: "tcp", Port: 1883, Ratio: 0.5, Clean: &yes, Level: "low", Wait: core.Duration(1500 * time.Millisecond),
		TLS: tlsSettings{Min: "1.2"}, Words: []string{"a", "b"},
	}
	for _, raw := range []string{`{"url":"tcp"}`, ` {"url":"tcp","port":null,"tls":null} `} {
		got, ds := bind(t, raw)
		if len(ds) > 0 {
			t.Fatalf("%s: %v", raw, ds)
		}
		if d := cmp.Diff(want, got, compare()...); d != "" {
			t.Errorf("%s (-want +got):\n%s", raw, d)
		}
	}
}

func compare() cmp.Options {
	return cmp.Options{
		cmp.AllowUnexported(settings{}),
		cmp.Comparer(func(a, b core.Secret) bool { return a.Reveal() == b.Reveal() }),
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	}
}

func TestBindEverything(t *testing.T) {
	got, ds := bind(t, `{
		"url": "tcp://a", "port": 65535, "ratio": 1e-2, "big": -9223372036854775808, "clean": false, "level": "high",
		"token": "t", "wait": "1m", "addr": "::1", "tls": {"ca_file": "c", "key": "k"}, "proxy": {"ca_file": "p"},
		"topics": [{"name": "x", "qos": 2}, {"name": "y"}], "labels": {"a": "b"}, "queues": {"q": {"name": "n"}},
		"words": ["z"], "zone": "eu"}`)
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	no := false
	want := settings{
		URL: "tcp://a", Port: 65535, Ratio: 0.01, Big: -1 << 63, Clean: &no, Level: "high",
		Token: core.NewSecret("t"), Wait: core.Duration(time.Minute), Addr: netip.IPv6Loopback(),
		TLS: tlsSettings{CA: "c", Key: core.NewSecret("k"), Min: "1.2"}, Proxy: &tlsSettings{CA: "p", Min: "1.2"},
		Topics: []topic{{"x", 2}, {"y", 0}}, Labels: map[string]string{"a": "b"},
		Queues: map[string]topic{"q": {"n", 0}}, Words: []string{"z"}, base: base{"eu"},
	}
	if d := cmp.Diff(want, got, compare()...); d != "" {
		t.Errorf("bound (-want +got):\n%s", d)
	}
}

// E-12: each wrong field is named by its path, with what to do.
func TestDiagnostics(t *testing.T) {
	for _, tc := range []struct {
		name string
		raw  string
		want []core.Diagnostic
	}{
		{"nothing", ``, []core.Diagnostic{{Path: "url", Message: "is missing", Fix: "set it: where the broker is"}}},
		{"null", `null`, []core.Diagnostic{{Message: "is nothing", Fix: "give an object"}}},
		{"a list", `[]`, []core.Diagnostic{{Message: "is a list", Fix: "give an object"}}},
		{"no JSON", `{"url":`, []core.Diagnostic{{Message: "cannot be read as JSON: it ends too early", Fix: "give one JSON object"}}},
		{"two values", `{} {}`, []core.Diagnostic{{Message: "cannot be read as JSON: something follows the value", Fix: "give one JSON object"}}},
		{"no UTF-8", "{\"url\":\"\xff\"}", []core.Diagnostic{{Message: "is not UTF-8", Fix: "write it in UTF-8"}}},
		{"twice", `{"url":"abc","url":"abd"}`, []core.Diagnostic{{Path: "url", Message: "is given twice", Fix: "give it once"}}},
		{"unknown", `{"url":"abc","ulr":"x","flavour":"x","tls":{"ca_file":"x","ca-file":"y"}}`, []core.Diagnostic{
			{Path: "tls.ca-file", Message: "is not known", Fix: "write ca_file"},
			{Path: "flavour", Message: "is not known", Fix: "leave it out, or use one of url, port, ratio, big, clean, level, token, wait, addr, tls, proxy, topics, labels, queues, words, zone"},
			{Path: "ulr", Message: "is not known", Fix: "did you mean url?"},
		}},
		{"not supported", `{"url":"abc","oauth2":{"issuer":"x"}}`, []core.Diagnostic{{Path: "oauth2", Message: "is not supported", Fix: "use token"}}},
		{"case counts", `{"URL":"abc"}`, []core.Diagnostic{
			{Path: "url", Message: "is missing", Fix: "set it: where the broker is"},
			{Path: "URL", Message: "is not known", Fix: "write url"},
		}},
		{"wrong types", `{"url":1,"port":"x","ratio":[],"clean":"yes","token":{},"wait":5,"topics":{},"labels":[],"tls":"x"}`, []core.Diagnostic{
			{Path: "url", Message: "is a number", Fix: "give a text"},
			{Path: "port", Message: "is a text", Fix: "give a whole number"},
			{Path: "ratio", Message: "is a list", Fix: "give a number"},
			{Path: "clean", Message: "is a text", Fix: "give true or false"},
			{Path: "token", Message: "is an object", Fix: "give a text"},
			{Path: "wait", Message: "is a number", Fix: "write it like 250ms, 1.5s or 2m"},
			{Path: "tls", Message: "is a text", Fix: "give an object"},
			{Path: "topics", Message: "is an object", Fix: "give a list"},
			{Path: "labels", Message: "is a list", Fix: "give a map"},
		}},
		{"out of range", `{"url":"ab","port":0,"ratio":1.01,"wait":"1h","topics":[{"name":"a","qos":3},{},{"name":"c"},{"name":"d"}],"words":[]}`, []core.Diagnostic{
			{Path: "url", Message: "is below 3 characters", Fix: "give at least 3 characters"},
			{Path: "port", Message: "is below 1", Fix: "give at least 1"},
			{Path: "ratio", Message: "is above 1", Fix: "give at most 1"},
			{Path: "wait", Message: "is above 1m", Fix: "give at most 1m"},
			{Path: "topics", Message: "is above 3 entries", Fix: "give at most 3 entries"},
			{Path: "topics[0].qos", Message: "is above 2", Fix: "give at most 2"},
			{Path: "topics[1].name", Message: "is missing", Fix: "set it: it is a text"},
			{Path: "words", Message: "is empty", Fix: "give at least 1 entry"},
		}},
		{"does not fit", `{"url":"abc","port":65536,"big":1e30,"ratio":1e999}`, []core.Diagnostic{
			{Path: "port", Message: "is out of range", Fix: "give a number that fits uint16"},
			{Path: "ratio", Message: "is out of range", Fix: "give a number of usual size"},
			{Path: "big", Message: "is out of range", Fix: "give a number that fits int64"},
		}},
		{"fraction, enum, duration, text", `{"url":"abc","port":1.5,"level":"middle","wait":"soon","addr":"nowhere"}`, []core.Diagnostic{
			{Path: "port", Message: "is a fraction", Fix: "give a whole number"},
			{Path: "level", Message: `is "middle"`, Fix: "give one of low, high"},
			{Path: "wait", Message: "is no duration", Fix: "write it like 250ms, 1.5s or 2m"},
			{Path: "addr", Message: `cannot be read: ParseAddr("nowhere"): unable to parse IP`, Fix: "see the documentation of addr"},
		}},
		{"given in part", `{"url":"abc","proxy":{}}`, []core.Diagnostic{{Path: "proxy.ca_file", Message: "is missing", Fix: "set it: it is a text"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ds := bind(t, tc.raw)
			if d := cmp.Diff(tc.want, ds); d != "" {
				t.Errorf("diagnostics (-want +got):\n%s", d)
			}
			if d := cmp.Diff(settings{}, got, compare()...); d != "" {
				t.Errorf("the target has changed:\n%s", d)
			}
		})
	}
}

func TestDepthIsBounded(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", 100_000)
	if _, ds := bind(t, deep); len(ds) != 1 || !strings.Contains(ds[0].Message, "levels deep") {
		t.Errorf("diagnostics %v", ds)
	}
}

// Mistakes in the struct itself are found when the schema is derived.
func TestTypesThatCannotBeSettings(t *testing.T) {
	type self struct {
		Inner []self `json:"inner"`
	}
	for _, tc := range []struct {
		name string
		typ  reflect.Type
		want string
	}{
		{"no struct", reflect.TypeFor[string](), "want a struct"},
		{"a channel", reflect.TypeFor[struct{ C chan int }](), "field C"},
		{"an interface", reflect.TypeFor[struct{ A any }](), "field A"},
		{"a plain duration", reflect.TypeFor[struct{ D time.Duration }](), "core.Duration"},
		{"keys", reflect.TypeFor[struct{ M map[int]string }](), "keys"},
		{"itself", reflect.TypeFor[self](), "holds itself"},
		{"one name twice", reflect.StructOf([]reflect.StructField{
			{Name: "A", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
			{Name: "B", Type: reflect.TypeFor[int](), Tag: `json:"x"`},
		}), `"x"`},
		{"a bad default", reflect.TypeFor[struct {
			A int `default:"x"`
		}](), "tag default"},
		{"a default out of range", reflect.TypeFor[struct {
			A int `default:"3" max:"2"`
		}](), "above 2"},
		{"a default not in enum", reflect.TypeFor[struct {
			A string `default:"c" enum:"a,b"`
		}](), `is "c"`},
		{"required with a default", reflect.TypeFor[struct {
			A int `default:"3" required:"true"`
		}](), "exclude"},
		{"required maybe", reflect.TypeFor[struct {
			A int `required:"yes"`
		}](), "tag required"},
		{"a bad bound", reflect.TypeFor[struct {
			A int `min:"x"`
		}](), "tag min"},
		{"bounds that cross", reflect.TypeFor[struct {
			A int `min:"3" max:"2"`
		}](), "above max"},
		{"a bound on a switch", reflect.TypeFor[struct {
			A bool `min:"3"`
		}](), "does not fit"},
		{"unsupported and there", reflect.TypeFor[struct {
			A int      `json:"a"`
			_ struct{} `unsupported:"a" fix:"b"`
		}](), `"a"`},
		{"unsupported and nothing to do", reflect.TypeFor[struct {
			_ struct{} `unsupported:"a"`
		}](), "tag unsupported"},
		{"an enum of numbers", reflect.TypeFor[struct {
			A int `enum:"1,2"`
		}](), "for texts"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Of(tc.typ)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// compiled returns the schema as an independent implementation reads it.
func compiled(tb testing.TB, t *Type) *jsonschema.Schema {
	tb.Helper()
	raw, err := t.JSON()
	if err != nil {
		tb.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		tb.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("settings.json", doc); err != nil {
		tb.Fatal(err)
	}
	s, err := c.Compile("settings.json")
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// The JSON Schema means what Bind does, as far as JSON Schema has words for it.
func TestJSONSchemaAgreesWithBind(t *testing.T) {
	typ := of[settings](t)
	s := compiled(t, typ)
	for raw, good := range map[string]bool{
		`{"url":"abc"}`:               true,
		`{}`:                          false,
		`{"url":"ab"}`:                false,
		`{"url":"abc","x":1}`:         false,
		`{"url":"abc","port":0}`:      false,
		`{"url":"abc","port":1.0}`:    true,
		`{"url":"abc","port":1.5}`:    false,
		`{"url":"abc","level":"mid"}`: false,
		`{"url":"abc","wait":"2s"}`:   true,
		`{"url":"abc","wait":"P1D"}`:  false,
		`{"url":"abc","wait":"1.s"}`:  true,
		`{"url":"abc","tls":{}}`:      false,
		`{"url":"abc","topics":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}]}`: false,
		`{"url":"abc","queues":{"q":{}}}`:                                              false,
		`{"url":"abc","queues":{"q":{"name":"n"}}}`:                                    true,
		`{"url":"abc","words":[]}`:                                                     false,
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Validate(v) == nil; got != good {
			t.Errorf("schema accepts %s: %v, want %v", raw, got, good)
		}
		if ds := typ.Check([]byte(raw)); (len(ds) == 0) != good {
			t.Errorf("Check of %s: %v, want accepted %v", raw, ds, good)
		}
	}
}

func TestJSONSchemaIsStable(t *testing.T) {
	type small struct {
		A string      `json:"a" doc:"first" default:"x" enum:"x,y"`
		B core.Secret `json:"b" required:"true"`
		C []int       `json:"c" min:"1" default:"[1]"`
	}
	raw, err := of[small](t).JSON()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{` +
		`"a":{"description":"first","type":"string","enum":["x","y"],"default":"x"},` +
		`"b":{"type":"string","writeOnly":true,"x-longshore-secret":true},` +
		`"c":{"type":"array","items":{"type":"integer"},"minItems":1,"default":[1]}},` +
		`"required":["b"],"additionalProperties":false}`
	if d := cmp.Diff(want, string(raw)); d != "" {
		t.Errorf("schema (-want +got):\n%s", d)
	}
}

func TestRedact(t *testing.T) {
	typ := of[settings](t)
	for raw, want := range map[string]string{
		`{"url":"u","token":"s3cret","port":1}`:                   `{"port":1,"token":"[redacted]","url":"u"}`,
		`{"tls":{"key":"s3cret","ca_file":"c"}}`:                  `{"tls":{"ca_file":"c","key":"[redacted]"}}`,
		`{"tokn":"s3cret","zzz":{"a":["s3cret",1,null]}}`:         `{"tokn":"[redacted]","zzz":{"a":["[redacted]","[redacted]",null]}}`,
		`{"port":"s3cret","token":{"deep":"s3cret"},"wait":"2s"}`: `{"port":"[redacted]","token":{"deep":"[redacted]"},"wait":"2s"}`,
		`{"url":"mqtt://ann:s3cret@host","labels":{"a":"b"}}`:     `{"labels":{"a":"b"},"url":"mqtt://ann:[redacted]@host"}`,
		`{"url":"s3cr`: `[redacted]`,
		`{"labels":{"a":"b"},"topics":[{"name":"n","qos":1}]}`: `{"labels":{"a":"b"},"topics":[{"name":"n","qos":1}]}`,
	} {
		if got := typ.Redact([]byte(raw)); got != want {
			t.Errorf("redacted %s: %s, want %s", raw, got, want)
		}
	}
	var unknown *Type
	if got := unknown.Redact([]byte(`{"a":"s3cret","b":2}`)); strings.Contains(got, "s3cret") || strings.Contains(got, "2") {
		t.Errorf("without a type: %s", got)
	}
}

func TestEncode(t *testing.T) {
	no := false
	for _, tc := range []struct {
		name string
		v    any
		want string
	}{
		{"nil", nil, `{}`},
		{"nil pointer", (*settings)(nil), `{}`},
		{"zero", settings{}, `{}`},
		{"struct", &settings{
			URL: "u", Token: core.NewSecret("t"), Wait: core.Duration(time.Second), Clean: &no,
			TLS: tlsSettings{Key: core.NewSecret("k")}, Topics: []topic{{Name: "n"}}, base: base{"z"},
			Addr: netip.IPv6Loopback(), Labels: map[string]string{"a": ""},
		}, `{"addr":"::1","clean":false,"labels":{"a":""},"tls":{"key":"k"},"token":"t","topics":[{"name":"n"}],"url":"u","wait":"1s","zone":"z"}`},
		{"map", map[string]any{
			"a": 1, "b": []any{true, nil, 1.5}, "c": map[any]any{"d": core.NewSecret("s")}, "e": time.Minute, "f": json.Number("7"),
		}, `{"a":1,"b":[true,null,1.5],"c":{"d":"s"},"e":"1m0s","f":7}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Encode(tc.v)
			if err != nil || string(got) != tc.want {
				t.Errorf("encoded %s, %v, want %s", got, err, tc.want)
			}
		})
	}
	type ring struct{ R []any }
	loop := &ring{R: make([]any, 1)}
	loop.R[0] = loop.R
	for name, v := range map[string]any{
		"a text": "x", "a list": []int{1}, "a channel": map[string]any{"c": make(chan int)},
		"other keys": map[int]string{1: "x"}, "mixed keys": map[any]any{1: "x"}, "a loop": map[string]any{"l": loop.R},
	} {
		if got, err := Encode(v); err == nil {
			t.Errorf("%s is encoded as %s", name, got)
		}
	}
}

// What a struct encodes to, Bind reads back.
func TestEncodeAndBind(t *testing.T) {
	raw, err := Encode(settings{URL: "abc", Token: core.NewSecret("t"), TLS: tlsSettings{CA: "c"}, Big: 1 << 62})
	if err != nil {
		t.Fatal(err)
	}
	got, ds := bind(t, string(raw))
	if len(ds) > 0 || got.Token.Reveal() != "t" || got.TLS.CA != "c" || got.Big != 1<<62 || got.Port != 1883 {
		t.Errorf("bound %+v, %v", got, ds)
	}
}

// Whatever comes, Bind neither panics nor changes its target beside an error,
// and shows no secret; what it accepts the JSON Schema accepts too.
func FuzzBind(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `{"url":"abc"}`, `{"url":"abc","token":"s3cret"}`, `{"url":1e999}`, `{"port":1e-99999999}`,
		`{"url":"abc","port":0.9999999999999999999999}`, `{"url":"abc","big":9223372036854775808}`, `[[[[`,
		`{"url":"abc","wait":"1h1m","topics":[{"name":"x","qos":-1}],"labels":{"":""}}`, `{"url":"abc","clean":null}`,
	} {
		f.Add([]byte(s))
	}
	typ := of[settings](f)
	s := compiled(f, typ)
	f.Fuzz(func(t *testing.T, raw []byte) {
		var into settings
		ds := typ.Bind(raw, reflect.ValueOf(&into).Elem())
		_ = typ.Redact(raw)
		if len(ds) > 0 {
			if d := cmp.Diff(settings{}, into, compare()...); d != "" {
				t.Fatalf("the target has changed: %s", d)
			}
			return
		}
		if len(strings.TrimSpace(string(raw))) == 0 || strings.Contains(string(raw), "null") {
			return // null is "not given" here, and JSON Schema has no such word
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
		if err != nil {
			t.Fatalf("accepted, but no JSON: %v", err)
		}
		if err := s.Validate(v); err != nil {
			t.Fatalf("accepted, but not by the schema: %v", err)
		}
	})
}
