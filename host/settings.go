// SPDX-License-Identifier: Apache-2.0

package host

import (
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/schemacheck"
	"github.com/longshore-go/longshore/pluginapi"
)

// noSettings is the JSON object of settings that were not given.
const noSettings = "{}"

// encodeSettings returns v as one JSON object with its secrets in clear, nil as
// the empty one.
func encodeSettings(v any) ([]byte, error) {
	if v == nil {
		return []byte(noSettings), nil
	}
	b, err := pluginapi.EncodeSettings(v)
	if err != nil {
		return nil, err
	}
	if len(b) == 0 || string(b) == "null" {
		return []byte(noSettings), nil
	}
	return b, nil
}

// settingFindings turns diagnostics about settings into findings. prefix is
// what their paths start with, "settings" or "options".
func settingFindings(at Finding, prefix string, ds []core.Diagnostic) []Finding {
	out := make([]Finding, 0, len(ds))
	for _, d := range ds {
		f := at
		f.Option, f.Message, f.Fix = joinOption(prefix, shorten(d.Path)), shorten(d.Message), shorten(d.Fix)
		out = append(out, f)
	}
	return out
}

// joinOption writes "settings" and "tls.ca_file" as "settings.tls.ca_file".
func joinOption(prefix, path string) string {
	if path == "" {
		return prefix
	}
	return prefix + "." + path
}

// checkSettings returns what an object has wrong under a schema as findings,
// but for the fields that known already speaks of: the transport's own words
// are better.
func checkSettings(at Finding, prefix string, schema *schemacheck.Schema, object []byte, known []Finding) []Finding {
	ds, err := schema.Check(object)
	if err != nil {
		return []Finding{brokenSchema(at, prefix, err)}
	}
	spoken := make(map[string]bool, len(known))
	for _, f := range known {
		spoken[f.Option] = true
	}
	var out []Finding
	for _, f := range settingFindings(at, prefix, ds) {
		if !spoken[f.Option] {
			out = append(out, f)
		}
	}
	return out
}

// brokenSchema is the finding of a schema that is none.
func brokenSchema(at Finding, option string, err error) Finding {
	at.Option, at.Message, at.Err = option, err.Error(), err
	at.Fix = "this is a defect of the transport; ask its author"
	return at
}
