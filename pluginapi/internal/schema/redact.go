// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"

	"github.com/longshore-go/longshore/core"
)

// Redact returns raw with the mark of core.Secret in place of every secret and
// of everything that the type does not know, since an unknown field may hold
// anything. Of a URL the password alone is replaced. What cannot be read becomes
// the mark as a whole.
func (t *Type) Redact(raw []byte) string {
	mark := core.NewSecret("?").String()
	v, found := parse(raw)
	if len(found) > 0 {
		return mark
	}
	b, err := json.Marshal(t.redact(v, mark))
	if err != nil {
		return mark
	}
	return string(b)
}

func (t *Type) redact(v any, mark string) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, inner := range v {
			out[name] = t.member(name).redact(inner, mark)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = t.elem().redact(inner, mark)
		}
		return out
	case nil:
		return nil
	case string:
		if t == nil || t.Kind == Secret || t.Kind == Custom || v != "" && !t.isText() {
			return mark
		}
		return core.RedactURL(v)
	default:
		if t == nil || t.Kind == Secret {
			return mark
		}
		return v
	}
}

// isText reports whether texts of the type may be shown.
func (t *Type) isText() bool { return t.Kind == Text || t.Kind == Duration }

// member returns the type of a field, nil when it is not known.
func (t *Type) member(name string) *Type {
	switch {
	case t == nil:
		return nil
	case t.Kind == Dict:
		return t.Elem
	case t.Kind == Object:
		for i := range t.Fields {
			if t.Fields[i].Name == name {
				return t.Fields[i].Type
			}
		}
	}
	return nil
}

// elem returns the type of a list's entries, nil when it is not known.
func (t *Type) elem() *Type {
	if t == nil || t.Kind != List {
		return nil
	}
	return t.Elem
}
