// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/schemacheck"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// Digest returns "sha256:" and the hex digest of what a plugin promises of one
// subscription and one destination, so that a host can see whether what Inspect
// answers is what a card was made for. It is made of this text, each line ended
// by a newline, words as core prints them, limits in nanoseconds:
//
//	longshore capabilities 1
//	profile ack=single requeue=none max_delay=0 max_hold=0 extend=false reject=drops counts=none address=true unsettled=lost durable=false order=total
//	publishing confirms=stored retains=transport max_delay=0 dedups=false headers=native-bytes repeats=true max_bytes=0 max_headers=0
//
// There is one line for each profile, sorted, doubles left out, since the order
// of profiles promises nothing; the last line is "publishing none" where nothing
// can be published. Of an address only whether there is one counts: it is
// another one for every name.
func Digest(profiles []core.Capabilities, publishing *core.Publishing) string {
	lines := make([]string, len(profiles))
	for i, c := range profiles {
		lines[i] = fmt.Sprintf("profile ack=%v requeue=%v max_delay=%d max_hold=%d extend=%t reject=%v counts=%v address=%t unsettled=%v durable=%t order=%v",
			c.Ack, c.Requeue, c.MaxDelay.Nanoseconds(), c.MaxHold.Nanoseconds(), c.Extend, c.Reject, c.Counts, c.Address != "", c.Unsettled, c.Durable, c.Order)
	}
	slices.Sort(lines)
	lines = append([]string{"longshore capabilities 1"}, slices.Compact(lines)...)
	if p := publishing; p == nil {
		lines = append(lines, "publishing none")
	} else {
		lines = append(lines, fmt.Sprintf("publishing confirms=%v retains=%v max_delay=%d dedups=%t headers=%v repeats=%t max_bytes=%d max_headers=%d",
			p.Confirms, p.Retains, p.MaxDelay.Nanoseconds(), p.Dedups, p.Headers, p.Repeats, p.MaxBytes, p.MaxHeaders))
	}
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n") + "\n"))
	return "sha256:" + hex.EncodeToString(sum[:])
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
