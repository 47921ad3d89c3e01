// SPDX-License-Identifier: Apache-2.0

// Package schemacheck checks settings against the JSON Schemas that plugins give.
package schemacheck

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	neturl "net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/spelling"
)

// Schema is a JSON Schema that a plugin gave. It may be used by any goroutine.
type Schema struct {
	compiled *jsonschema.Schema
	doc      any
}

// Compile reads a schema. None describes an object without any field.
func Compile(schema []byte) (*Schema, error) {
	if len(schema) == 0 {
		schema = []byte(`{"type":"object","additionalProperties":false}`)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, fmt.Errorf("read the transport's schema: %w", err)
	}
	const name = "schema.json"
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // a schema of a plugin reads no files
	if err := c.AddResource(name, doc); err != nil {
		return nil, fmt.Errorf("read the transport's schema: %w", err)
	}
	compiled, err := c.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("compile the transport's schema: %w", err)
	}
	return &Schema{compiled, doc}, nil
}

// Check returns what is wrong with a JSON object under a schema. See
// [Schema.Check].
func Check(schema, object []byte) ([]core.Diagnostic, error) {
	s, err := Compile(schema)
	if err != nil {
		return nil, err
	}
	return s.Check(object)
}

// Check returns what is wrong with a JSON object. Values never stand in what it
// returns: they may be secrets.
func (s *Schema) Check(object []byte) ([]core.Diagnostic, error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	var wrong *jsonschema.ValidationError
	if err := s.compiled.Validate(value); err == nil {
		return nil, nil
	} else if !errors.As(err, &wrong) {
		return nil, fmt.Errorf("check settings: %w", err)
	}
	var out []core.Diagnostic
	collect(wrong, s.doc, &out)
	slices.SortStableFunc(out, func(a, b core.Diagnostic) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// collect adds the innermost causes of a validation error under a schema.
func collect(e *jsonschema.ValidationError, schema any, out *[]core.Diagnostic) {
	if len(e.Causes) > 0 {
		switch e.ErrorKind.(type) {
		case *kind.AnyOf, *kind.OneOf, *kind.Not: // the branches' causes contradict each other
		default:
			for _, c := range e.Causes {
				collect(c, schema, out)
			}
			return
		}
	}
	where := fieldPath(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			*out = append(*out, core.Diagnostic{Path: joinPath(where, name), Message: "is required", Fix: "set it"})
		}
	case *kind.AdditionalProperties:
		known := fields(schema, e.SchemaURL)
		not, _ := at(schema, e.SchemaURL)["x-longshore-unsupported"].(map[string]any)
		for _, name := range k.Properties {
			d := core.Diagnostic{Path: joinPath(where, name), Message: "is no known field", Fix: unknownFix(name, known)}
			if fix, ok := not[name].(string); ok {
				d.Message, d.Fix = "is not supported", fix
			}
			*out = append(*out, d)
		}
	default:
		message, fix := schemaMessage(e.ErrorKind)
		if _, ok := e.ErrorKind.(*kind.Type); ok {
			if doc, _ := at(schema, e.SchemaURL)["description"].(string); doc != "" {
				fix += ": " + doc
			}
		}
		if like := examples(schema, e.SchemaURL); len(like) > 0 {
			switch e.ErrorKind.(type) {
			case *kind.Pattern, *kind.Type:
				fix = "write it like " + strings.Join(like, " or ")
			}
		}
		*out = append(*out, core.Diagnostic{Path: where, Message: message, Fix: fix})
	}
}

// shownFields is how many known fields an error lists.
const shownFields = 12

// unknownFix says what to do about a field that is none of these.
func unknownFix(name string, known []string) string {
	if meant := spelling.Nearest(name, known); meant != "" {
		return "did you mean " + meant + "?"
	}
	switch n := len(known); {
	case n == 0:
		return "remove it: nothing can be set here"
	case n > shownFields:
		return "remove it, or look for a typing error"
	}
	return "remove it, or use one of " + strings.Join(known, ", ")
}

// fields returns the names of the properties at a place of a schema, sorted.
func fields(schema any, url string) []string {
	known, _ := at(schema, url)["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(known))
}

// examples returns the texts that a place of a schema gives as examples.
func examples(schema any, url string) (texts []string) {
	list, _ := at(schema, url)["examples"].([]any)
	for _, v := range list {
		if s, ok := v.(string); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// at returns the part of a schema that url ends with a JSON pointer to (RFC
// 6901), nil where there is none.
func at(schema any, url string) map[string]any {
	_, pointer, _ := strings.Cut(url, "#")
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if part == "" {
			continue
		}
		if plain, err := neturl.PathUnescape(part); err == nil {
			part = plain
		}
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch at := schema.(type) {
		case map[string]any:
			schema = at[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			schema = at[i]
		}
	}
	part, _ := schema.(map[string]any)
	return part
}

// schemaMessage says in words which keyword a value fails, without the value.
func schemaMessage(k jsonschema.ErrorKind) (message, fix string) {
	switch k := k.(type) {
	case *kind.Type:
		return "has the type " + k.Got, "use the type " + strings.Join(k.Want, " or ")
	case *kind.Enum:
		words := make([]string, len(k.Want))
		for i, w := range k.Want {
			words[i] = fmt.Sprint(w)
		}
		return "is none of the values that it may have", "use one of " + strings.Join(words, ", ")
	case *kind.Minimum:
		return "is too small", "use " + k.Want.RatString() + " or more"
	case *kind.ExclusiveMinimum:
		return "is too small", "use more than " + k.Want.RatString()
	case *kind.Maximum:
		return "is too large", "use " + k.Want.RatString() + " or less"
	case *kind.ExclusiveMaximum:
		return "is too large", "use less than " + k.Want.RatString()
	case *kind.MinLength:
		if k.Got == 0 {
			return "is empty", "give it a value"
		}
		return "is too short", fmt.Sprintf("use %d characters or more", k.Want)
	case *kind.MaxLength:
		return "is too long", fmt.Sprintf("use %d characters or less", k.Want)
	case *kind.MinItems:
		return "has too few entries", fmt.Sprintf("give %d or more", k.Want)
	case *kind.MaxItems:
		return "has too many entries", fmt.Sprintf("give %d or less", k.Want)
	case *kind.Pattern:
		return "does not have the form that it must have", "write it to match " + k.Want
	case *kind.Format:
		return "does not have the form that it must have", "write it as a " + k.Want
	default:
		keyword := strings.Join(k.KeywordPath(), ".")
		if keyword == "" {
			keyword = "the transport's schema"
		}
		return "does not satisfy " + keyword, "see what the transport's documentation says of it"
	}
}

// fieldPath writes a location as people write it, "tls.ca_file" or "topics[2]".
func fieldPath(location []string) string {
	path := ""
	for _, part := range location {
		if _, err := strconv.ParseUint(part, 10, 32); err == nil && path != "" {
			path += "[" + part + "]"
			continue
		}
		path = joinPath(path, part)
	}
	return path
}

// joinPath adds a field to a path.
func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
