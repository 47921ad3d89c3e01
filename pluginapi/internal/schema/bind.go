// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/spelling"
)

// Check says what is wrong with raw, which is one JSON object; nothing is an
// empty object.
func (t *Type) Check(raw []byte) []core.Diagnostic {
	return t.Bind(raw, reflect.New(t.Go).Elem())
}

// Bind reads raw into the struct that into is, defaults applied. It returns all
// that is wrong, in the order of the fields, and leaves into as it was then.
func (t *Type) Bind(raw []byte, into reflect.Value) []core.Diagnostic {
	v, found := parse(raw)
	if len(found) > 0 {
		return found
	}
	b := binder{}
	fresh := reflect.New(t.Go).Elem()
	b.value("", t, &Limits{}, v, fresh)
	if len(b.found) == 0 {
		into.Set(fresh)
	}
	return b.found
}

// binder collects what is wrong while it fills.
type binder struct {
	found []core.Diagnostic
}

func (b *binder) add(path, message, fix string) {
	b.found = append(b.found, core.Diagnostic{Path: path, Message: message, Fix: fix})
}

// wrong says that v is not of the kind wanted, without showing v: it might be a
// secret in the wrong place.
func (b *binder) wrong(path string, t *Type, v any) {
	is := "nothing"
	switch v.(type) {
	case bool:
		is = "true or false"
	case json.Number:
		is = "a number"
	case string:
		is = "a text"
	case []any:
		is = "a list"
	case map[string]any:
		is = "an object"
	}
	fix := "give a " + t.Kind.String()
	switch t.Kind {
	case Object:
		fix = "give an object"
	case Boolean:
		fix = "give true or false"
	case Duration:
		fix = "write it like 250ms, 1.5s or 2m"
	}
	b.add(path, "is "+is, fix)
}

// value reads v into the settable target.
func (b *binder) value(path string, t *Type, l *Limits, v any, target reflect.Value) {
	switch t.Kind {
	case Object:
		m, ok := v.(map[string]any)
		if !ok {
			b.wrong(path, t, v)
			return
		}
		b.object(path, t, m, target)
	case Dict:
		m, ok := v.(map[string]any)
		if !ok {
			b.wrong(path, t, v)
			return
		}
		b.dict(path, t, l, m, target)
	case List:
		list, ok := v.([]any)
		if !ok {
			b.wrong(path, t, v)
			return
		}
		b.list(path, t, l, list, target)
	case Boolean:
		is, ok := v.(bool)
		if !ok {
			b.wrong(path, t, v)
			return
		}
		target.SetBool(is)
	case Integer, Number:
		n, ok := v.(json.Number)
		if !ok {
			b.wrong(path, t, v)
			return
		}
		b.number(path, t, l, n, target)
	default:
		s, ok := v.(string)
		if !ok {
			b.wrong(path, t, v)
			return
		}
		b.text(path, t, l, s, target)
	}
}

// object reads the fields of a struct and refuses all others.
func (b *binder) object(path string, t *Type, m map[string]any, target reflect.Value) {
	left := maps.Clone(m)
	for i := range t.Fields {
		f := &t.Fields[i]
		v := m[f.Name]
		delete(left, f.Name)
		if v == nil {
			b.absent(join(path, f.Name), f, target)
			continue
		}
		b.value(join(path, f.Name), f.Type, &f.Limits, v, f.of(target))
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		if fix, ok := t.without(name); ok {
			b.add(join(path, name), "is not supported", fix)
			continue
		}
		b.add(join(path, name), "is not known", t.suggest(name))
	}
}

// absent fills in a field that is not given.
func (b *binder) absent(path string, f *Field, target reflect.Value) {
	switch {
	case f.Required:
		b.add(path, "is missing", "set it: "+f.what())
	case f.Default != nil:
		b.found = append(b.found, bindDefault(f, f.of(target))...)
	case f.Type.Kind == Object && !f.Pointer:
		f.Type.defaults(f.of(target))
	}
}

// defaults fills a struct that is not given at all: what is required within it
// is required only where it is given.
func (t *Type) defaults(target reflect.Value) {
	for i := range t.Fields {
		f := &t.Fields[i]
		switch {
		case f.Default != nil:
			bindDefault(f, f.of(target)) // tried by Of
		case f.Type.Kind == Object && !f.Pointer:
			f.Type.defaults(f.of(target))
		}
	}
}

// bindDefault reads the default of a field: as it stands for texts, as JSON for
// everything else.
func bindDefault(f *Field, target reflect.Value) []core.Diagnostic {
	var v any = *f.Default
	switch f.Type.Kind {
	case Text, Secret, Duration, Custom:
	default:
		var found []core.Diagnostic
		if v, found = parse([]byte(*f.Default)); len(found) > 0 {
			return found
		}
	}
	b := binder{}
	b.value(f.Name, f.Type, &f.Limits, v, target)
	return b.found
}

// of returns the settable value of the field within its struct, behind its
// pointer where it has one.
func (f *Field) of(target reflect.Value) reflect.Value {
	v := target.FieldByIndex(f.Index)
	if !f.Pointer {
		return v
	}
	if v.IsNil() {
		v.Set(reflect.New(f.Type.Go))
	}
	return v.Elem()
}

// what says what belongs into the field.
func (f *Field) what() string {
	if f.Doc != "" {
		return f.Doc
	}
	return "it is a " + f.Type.Kind.String()
}

func (b *binder) dict(path string, t *Type, l *Limits, m map[string]any, target reflect.Value) {
	b.length(path, t, l, len(m))
	out := reflect.MakeMapWithSize(t.Go, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		v := reflect.New(t.Elem.Go).Elem()
		b.value(join(path, name), t.Elem, &Limits{}, m[name], v)
		out.SetMapIndex(reflect.ValueOf(name).Convert(t.Go.Key()), v)
	}
	target.Set(out)
}

func (b *binder) list(path string, t *Type, l *Limits, list []any, target reflect.Value) {
	b.length(path, t, l, len(list))
	out := reflect.MakeSlice(t.Go, len(list), len(list))
	for i, v := range list {
		b.value(at(path, i), t.Elem, &Limits{}, v, out.Index(i))
	}
	target.Set(out)
}

func (b *binder) length(path string, t *Type, l *Limits, n int) {
	if message, fix := l.within(t.Kind, new(big.Rat).SetInt64(int64(n))); message != "" {
		b.add(path, message, fix)
	}
}

func (b *binder) number(path string, t *Type, l *Limits, n json.Number, target reflect.Value) {
	// A long exponent would make big.Rat spell out all its digits, so what a
	// float64 cannot hold is refused first, at both ends.
	f, err := strconv.ParseFloat(n.String(), 64)
	digits, _, _ := strings.Cut(strings.ToLower(n.String()), "e")
	if err != nil || f == 0 && strings.Trim(digits, "-0.") != "" {
		b.add(path, "is out of range", "give a number of usual size")
		return
	}
	exact, ok := new(big.Rat), true
	if f != 0 {
		exact, ok = exact.SetString(n.String())
	}
	if !ok {
		b.add(path, "is out of range", "give a number of usual size")
		return
	}
	if t.Kind == Integer && !exact.IsInt() {
		b.add(path, "is a fraction", "give a whole number")
		return
	}
	if message, fix := l.within(t.Kind, exact); message != "" {
		b.add(path, message, fix)
		return
	}
	switch {
	case target.CanFloat():
		target.SetFloat(f)
		ok = !target.OverflowFloat(f)
	case target.CanUint():
		ok = exact.Num().IsUint64() && !target.OverflowUint(exact.Num().Uint64())
		if ok {
			target.SetUint(exact.Num().Uint64())
		}
	default:
		ok = exact.Num().IsInt64() && !target.OverflowInt(exact.Num().Int64())
		if ok {
			target.SetInt(exact.Num().Int64())
		}
	}
	if !ok {
		b.add(path, "is out of range", "give a number that fits "+t.Go.Kind().String())
	}
}

func (b *binder) text(path string, t *Type, l *Limits, s string, target reflect.Value) {
	switch t.Kind {
	case Duration:
		d, err := time.ParseDuration(s)
		if err != nil {
			b.add(path, "is no duration", "write it like 250ms, 1.5s or 2m")
			return
		}
		if message, fix := l.within(t.Kind, new(big.Rat).SetInt64(int64(d))); message != "" {
			b.add(path, message, fix)
			return
		}
		target.SetInt(int64(d))
	case Custom:
		if message, fix := l.oneOf(s); message != "" {
			b.add(path, message, fix)
			return
		}
		into, _ := target.Addr().Interface().(encoding.TextUnmarshaler)
		if err := into.UnmarshalText([]byte(s)); err != nil {
			b.unread(path, err)
		}
	case Secret:
		b.length(path, t, l, utf8.RuneCountInString(s))
		target.Set(reflect.ValueOf(core.NewSecret(s)))
	default:
		if message, fix := l.oneOf(s); message != "" {
			b.add(path, message, fix)
			return
		}
		b.length(path, t, l, utf8.RuneCountInString(s))
		target.SetString(s)
	}
}

// unread says why a type does not read a text: in its own words, and with its own
// advice, where it returns a fault.
func (b *binder) unread(path string, err error) {
	f, ok := errors.AsType[*core.Fault](err)
	if !ok || len(f.Diagnostics) == 0 {
		b.add(path, "cannot be read: "+err.Error(), "see the documentation of "+path)
		return
	}
	for _, d := range f.Diagnostics {
		b.add(path, cmp.Or(d.Message, f.Message), d.Fix)
	}
}

// without returns what to do in place of a field that there is not, by design.
func (t *Type) without(name string) (fix string, ok bool) {
	for _, n := range t.Not {
		if n.Name == name {
			return n.Fix, true
		}
	}
	return "", false
}

// suggest names the field that was perhaps meant, else all there are.
func (t *Type) suggest(name string) string {
	names := make([]string, len(t.Fields))
	for i, f := range t.Fields {
		names[i] = f.Name
		if plain(f.Name) == plain(name) {
			return "write " + f.Name
		}
	}
	if len(names) == 0 {
		return "leave it out: nothing can be set here"
	}
	if meant := spelling.Nearest(name, names); meant != "" {
		return "did you mean " + meant + "?"
	}
	return "leave it out, or use one of " + strings.Join(names, ", ")
}

// plain is a name without what is easily mistaken.
func plain(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
}
