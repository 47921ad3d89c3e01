// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"encoding/json"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/schemacheck"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// checkSettings checks settings against the plugin's own schema, as a host does
// before it hands them over.
func checkSettings(d *transportpb.DescribeResponse, settings []byte) error {
	found, err := schemacheck.Check(d.GetSettingsSchema(), settings)
	if err != nil {
		found = []core.Diagnostic{{Message: err.Error(), Fix: "the plugin's author has to mend its schema"}}
	}
	if len(found) == 0 {
		return nil
	}
	return &SettingsError{Plugin: d.GetName(), Step: "settings", Fault: &core.Fault{Code: core.FaultInvalid, Message: "the schema refuses", Diagnostics: found}}
}

// secretMark is the schema's word for a value that is never shown.
const secretMark = "writeOnly"

// redact hides the values of an object that its schema marks, and passwords of URLs.
func redact(object, schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	for name, value := range object {
		s, ok := properties[name].(map[string]any)
		if !ok {
			s, _ = schema["additionalProperties"].(map[string]any)
		}
		if hidden, _ := s[secretMark].(bool); hidden {
			object[name] = core.NewSecret("").String()
			continue
		}
		object[name] = redactValue(value, s)
	}
}

// redactValue returns a value without what is not shown.
func redactValue(value any, schema map[string]any) any {
	switch v := value.(type) {
	case string:
		return core.RedactURL(v)
	case map[string]any:
		redact(v, schema)
	case []any:
		items, _ := schema["items"].(map[string]any)
		for i := range v {
			if hidden, _ := items[secretMark].(bool); hidden {
				v[i] = core.NewSecret("").String()
			} else {
				v[i] = redactValue(v[i], items)
			}
		}
	}
	return value
}

// shown is a JSON object without its secrets.
func shown(v any, schema []byte) (map[string]any, error) {
	if v == nil {
		return nil, nil
	}
	raw, err := encode("settings", v)
	if err != nil {
		return nil, err
	}
	object := map[string]any{}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	var s map[string]any
	if len(schema) > 0 && json.Unmarshal(schema, &s) == nil {
		redact(object, s)
	}
	return object, nil
}
