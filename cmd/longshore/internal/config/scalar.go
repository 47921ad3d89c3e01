// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/longshore-go/longshore/internal/spelling"
)

// scalar decodes a text, number or truth value.
func (d *decoder) scalar(n *yaml.Node, path string, v reflect.Value, f field) {
	switch f.typ.Kind() {
	case reflect.Bool:
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
			d.fail(n, path, "write true or false", "is %s", kindOf(n))
			return
		}
		v.SetBool(n.Value[0] == 't' || n.Value[0] == 'T')
	case reflect.Int32, reflect.Int64:
		d.number(n, path, v, f)
	case reflect.Float64:
		d.fraction(n, path, v, f)
	default:
		d.text(n, path, v, f)
	}
}

// number decodes a whole number.
func (d *decoder) number(n *yaml.Node, path string, v reflect.Value, f field) {
	least, most := f.whole()
	fix := fmt.Sprintf("write a whole number from %d to %d", least, most)
	if most == math.MaxInt64 {
		fix = fmt.Sprintf("write a whole number from %d on", least)
	}
	if !f.required {
		fix += ", or leave it out for " + f.without()
	}
	var got int64
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" {
		d.fail(n, path, fix, "is %s", kindOf(n))
		return
	}
	if err := n.Decode(&got); err != nil || got < least || got > most {
		d.fail(n, path, fix, "is %s", kindOf(n))
		return
	}
	v.SetInt(got)
}

// fraction decodes a number that need not be whole.
func (d *decoder) fraction(n *yaml.Node, path string, v reflect.Value, f field) {
	fix := "write a number from " + f.min + " on"
	if f.max != "" {
		fix = "write a number from " + f.min + " to " + f.max
	}
	var got float64
	if n.Kind != yaml.ScalarNode || (n.ShortTag() != "!!int" && n.ShortTag() != "!!float") {
		d.fail(n, path, fix, "is %s", kindOf(n))
		return
	}
	least, _ := strconv.ParseFloat(f.min, 64)
	most, err := strconv.ParseFloat(f.max, 64)
	if err != nil {
		most = math.MaxFloat64
	}
	if err := n.Decode(&got); err != nil || !(got >= least && got <= most) { // nor is NaN
		d.fail(n, path, fix, "is %s", kindOf(n))
		return
	}
	v.SetFloat(got)
}

// duration decodes a duration written as text.
func (d *decoder) duration(n *yaml.Node, path string, v reflect.Value, f field) {
	const fix = "write it like 250ms, 1.5s or 2m"
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		d.fail(n, path, fix, "is %s, not a duration", kindOf(n))
		return
	}
	got, err := time.ParseDuration(n.Value)
	if err != nil {
		d.fail(n, path, fix, "%q is not a duration", n.Value)
		return
	}
	if least, _ := time.ParseDuration(f.min); got < least {
		d.fail(n, path, "write at least "+f.min, "%s is too short", n.Value)
		return
	}
	v.SetInt(int64(got))
}

// text decodes a text.
func (d *decoder) text(n *yaml.Node, path string, v reflect.Value, f field) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		fix := "write a text"
		switch {
		case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" && f.as != "":
			fix = "use " + f.as
		case n.Kind == yaml.ScalarNode:
			fix = "put it into quotes"
		}
		d.fail(n, path, fix, "is %s, not a text", kindOf(n))
		return
	}
	s := n.Value
	if f.env {
		var ok bool
		if s, ok = d.expand(n, path, s); !ok {
			return
		}
	}
	switch {
	case s == "" && f.required:
		d.fail(n, path, "give it a value", "is empty")
		return
	case len(f.enum) > 0 && !slices.Contains(f.enum, s):
		fix := "write " + oneOf(f.enum)
		if m := spelling.Nearest(s, f.enum); m != "" {
			fix = "did you mean " + m + "? It can be " + oneOf(f.enum)
		}
		d.fail(n, path, fix, "cannot be %q", s)
		return
	case f.like != "" && !regexp.MustCompile(f.like).MatchString(s):
		d.fail(n, path, "use "+f.as, "%q cannot be used", s)
		return
	}
	v.SetString(s)
}

// reference is how a text names an environment variable; a second dollar
// before it makes it plain text.
const reference = `\$?\$\{env:([^}]*)\}`

// expand replaces references to environment variables. What they hold is never
// shown.
func (d *decoder) expand(n *yaml.Node, path, s string) (string, bool) {
	re, fine := regexp.MustCompile(reference), true
	out := re.ReplaceAllStringFunc(s, func(m string) string {
		if m[1] == '$' {
			return m[1:]
		}
		name := re.FindStringSubmatch(m)[1]
		value, ok := d.lookup(name)
		switch {
		case name == "":
			d.fail(n, path, "write ${env:NAME}", "${env:} names no environment variable")
			fine = false
		case !ok:
			d.fail(n, path, "set it, or write $${env:"+name+"} for the text as it is", "the environment variable %s is not set", name)
			fine = false
		}
		return value
	})
	return out, fine
}

// free decodes what a transport describes: the values of JSON, whatever their
// names.
func (d *decoder) free(n *yaml.Node, path string, v reflect.Value) {
	if isNull(n) {
		return
	}
	out := map[string]any{}
	d.pairs(n, path, "write fields, or {} for none", func(key, value *yaml.Node, at string) {
		out[key.Value] = d.any(value, at)
	})
	v.Set(reflect.ValueOf(out))
}

// any decodes a value of JSON.
func (d *decoder) any(n *yaml.Node, path string) any {
	n, ok := d.enter(n)
	if !ok {
		return nil
	}
	defer d.leave()
	if n.Kind == yaml.MappingNode {
		out := map[string]any{}
		d.pairs(n, path, "", func(key, value *yaml.Node, at string) { out[key.Value] = d.any(value, at) })
		return out
	}
	if n.Kind == yaml.SequenceNode {
		out := make([]any, len(n.Content))
		for i, c := range n.Content {
			at := path + "[" + strconv.Itoa(i) + "]"
			d.positions[at] = Position{Line: c.Line, Column: c.Column}
			out[i] = d.any(c, at)
		}
		return out
	}
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return n.Value[0] == 't' || n.Value[0] == 'T'
	case "!!int":
		var i int64
		if err := n.Decode(&i); err != nil {
			d.fail(n, path, "put it into quotes where it is a text", "the number %s is too large", n.Value)
		}
		return i
	case "!!float":
		var x float64
		if err := n.Decode(&x); err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
			d.fail(n, path, "write a number, or put it into quotes", "%s is not a number", n.Value)
		}
		return x
	case "!!binary":
		d.fail(n, path, "write it as the text that the transport wants", "binary values are not part of the form")
		return nil
	}
	s, _ := d.expand(n, path, n.Value)
	return s
}
