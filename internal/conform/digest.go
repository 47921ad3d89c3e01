// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/schemacheck"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// Digest is a checksum of what a plugin advertises: "sha256:hex" over its
// profiles in order, addresses left out but for whether there is one, and over
// what its destination can do. Two plugins of one digest are planned for alike.
func Digest(profiles []core.Capabilities, publishing *core.Publishing) string {
	h := sha256.New()
	for _, c := range profiles {
		fmt.Fprintf(h, "profile %d %d %d %d %t %d %d %t %d %t %d\n", c.Ack, c.Requeue, c.MaxDelay, c.MaxHold, c.Extend,
			c.Reject, c.Counts, c.Address != "", c.Unsettled, c.Durable, c.Order)
	}
	if p := publishing; p != nil {
		fmt.Fprintf(h, "publishing %d %d %d %t %d %t %d %d\n", p.Confirms, p.Retains, p.MaxDelay, p.Dedups, p.Headers, p.Repeats, p.MaxBytes, p.MaxHeaders)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// checksum is the checksum of a file, as process.Options takes it.
func checksum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

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

// redact hides the values of an object that its schema marks.
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
		redactValue(value, s)
	}
}

func redactValue(value any, schema map[string]any) {
	switch v := value.(type) {
	case map[string]any:
		redact(v, schema)
	case []any:
		items, _ := schema["items"].(map[string]any)
		for i := range v {
			if hidden, _ := items[secretMark].(bool); hidden {
				v[i] = core.NewSecret("").String()
			} else {
				redactValue(v[i], items)
			}
		}
	}
}
