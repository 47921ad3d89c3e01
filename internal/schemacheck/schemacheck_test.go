// SPDX-License-Identifier: Apache-2.0

package schemacheck

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
)

const testSchema = `{
	"type": "object", "additionalProperties": false, "required": ["address"], "x-longshore-unsupported": {"oauth": "use password"},
	"properties": {
		"address": {"type": "string", "pattern": "^tcp://"},
		"password": {"type": "string", "minLength": 20},
		"qos": {"enum": [0, 1, 2]},
		"tls": {"type": "object", "required": ["ca_file"], "properties": {"ca_file": {"type": "string"}}},
		"topics": {"type": "array", "maxItems": 3, "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
		"peers": {"type": "array", "items": {"type": "object", "additionalProperties": false, "properties": {"name": {}, "or/other": {}}}},
		"start": {"type": "string", "minLength": 1, "description": "Where to begin, as in sequence 7."},
		"wait": {"type": "string", "pattern": "^[0-9]+s$", "examples": ["3s", "10s"]},
		"limit": {"type": "integer", "minimum": 1, "maximum": 10}
	}
}`

func TestCheckSchemaNamesFieldPaths(t *testing.T) {
	for name, c := range map[string]struct {
		object string
		want   []core.Diagnostic
	}{
		"right":          {`{"address": "tcp://x", "qos": 1}`, nil},
		"missing":        {`{}`, []core.Diagnostic{{Path: "address", Message: "is required", Fix: "set it"}}},
		"unknown":        {`{"address": "tcp://x", "adddress": 1}`, []core.Diagnostic{{Path: "adddress", Message: "is no known field", Fix: "did you mean address?"}}},
		"unsupported":    {`{"address": "tcp://x", "oauth": {}}`, []core.Diagnostic{{Path: "oauth", Message: "is not supported", Fix: "use password"}}},
		"unknown within": {`{"address": "tcp://x", "peers": [{"host": "a"}]}`, []core.Diagnostic{{Path: "peers[0].host", Message: "is no known field", Fix: "remove it, or use one of name, or/other"}}},
		"nested":         {`{"address": "tcp://x", "tls": {}}`, []core.Diagnostic{{Path: "tls.ca_file", Message: "is required", Fix: "set it"}}},
		"in a list":      {`{"address": "tcp://x", "topics": [{"name": "a"}, {"name": 2}]}`, []core.Diagnostic{{Path: "topics[1].name", Message: "has the type number", Fix: "use the type string"}}},
		"with its doc":   {`{"address": "tcp://x", "start": 7}`, []core.Diagnostic{{Path: "start", Message: "has the type number", Fix: "use the type string: Where to begin, as in sequence 7."}}},
		"empty":          {`{"address": "tcp://x", "start": ""}`, []core.Diagnostic{{Path: "start", Message: "is empty", Fix: "give it a value"}}},
		"none of a kind": {`{"address": "tcp://x", "qos": 3}`, []core.Diagnostic{{Path: "qos", Message: "is none of the values that it may have", Fix: "use one of 0, 1, 2"}}},
		"too small":      {`{"address": "tcp://x", "limit": 0}`, []core.Diagnostic{{Path: "limit", Message: "is too small", Fix: "use 1 or more"}}},
		"too large":      {`{"address": "tcp://x", "limit": 11}`, []core.Diagnostic{{Path: "limit", Message: "is too large", Fix: "use 10 or less"}}},
		"another form":   {`{"address": "tcp://x", "wait": "3"}`, []core.Diagnostic{{Path: "wait", Message: "does not have the form that it must have", Fix: "write it like 3s or 10s"}}},
		"another type":   {`{"address": "tcp://x", "wait": 3}`, []core.Diagnostic{{Path: "wait", Message: "has the type number", Fix: "write it like 3s or 10s"}}},
		"all together": {`{"address": "udp://x", "limit": 0.5}`, []core.Diagnostic{
			{Path: "address", Message: "does not have the form that it must have", Fix: "write it to match ^tcp://"},
			{Path: "limit", Message: "has the type number", Fix: "use the type integer"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Check([]byte(testSchema), []byte(c.object))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckSchemaKeepsValuesToItself(t *testing.T) {
	got, err := Check([]byte(testSchema), []byte(`{"address": "hunter2", "password": "hunter2", "qos": "hunter2", "limit": "hunter2"}`))
	if err != nil || len(got) < 4 {
		t.Fatalf("got %v, %v; want four diagnostics", got, err)
	}
	for _, d := range got {
		if strings.Contains(d.Message+d.Fix, "hunter2") {
			t.Errorf("%+v shows the value", d)
		}
	}
}

func TestCheckSchemaWithoutOne(t *testing.T) {
	if got, err := Check(nil, []byte(`{}`)); err != nil || len(got) > 0 {
		t.Errorf("got %v, %v; want nothing", got, err)
	}
	got, err := Check(nil, []byte(`{"qos": 1}`))
	if err != nil || len(got) != 1 || got[0].Path != "qos" || got[0].Fix != "remove it: nothing can be set here" {
		t.Errorf("got %v, %v; want qos to be unknown", got, err)
	}
}

func TestCheckSchemaOfABrokenTransport(t *testing.T) {
	for name, schema := range map[string]string{
		"no JSON":         `{`,
		"no schema":       `{"type": 7}`,
		"reads a file":    `{"$ref": "file:///etc/passwd"}`,
		"reads the world": `{"$ref": "https://example.com/x.json"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Check([]byte(schema), []byte(`{}`)); err == nil {
				t.Error("no error")
			}
		})
	}
}
