// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"cmp"
	"fmt"
	"go/constant"
	"go/types"
	"slices"
)

// describe returns what a package exports, one thing a line: constants with
// their values, variables, functions, and types with their fields and methods.
// The order is by kind and name, so that moving code changes nothing.
func describe(pkg *types.Package) []byte {
	d := &description{pkg: pkg}
	fmt.Fprintf(&d.out, "package %s // import %q\n", pkg.Name(), pkg.Path())
	var objects []types.Object
	for _, name := range pkg.Scope().Names() { // sorted
		if o := pkg.Scope().Lookup(name); o.Exported() {
			objects = append(objects, o)
		}
	}
	slices.SortStableFunc(objects, func(a, b types.Object) int { return cmp.Compare(rank(a), rank(b)) })
	before := 0
	for _, o := range objects {
		if r := rank(o); r != before || r == rankType {
			d.out.WriteByte('\n')
			before = r
		}
		d.object(o)
	}
	return d.out.Bytes()
}

// The order of kinds.
const (
	rankConst = iota + 1
	rankVar
	rankFunc
	rankType
)

func rank(o types.Object) int {
	switch o.(type) {
	case *types.Const:
		return rankConst
	case *types.Var:
		return rankVar
	case *types.Func:
		return rankFunc
	default:
		return rankType
	}
}

// description is what has been written about one package.
type description struct {
	pkg *types.Package
	out bytes.Buffer
}

func (d *description) object(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		fmt.Fprintf(&d.out, "const %s %s = %s\n", o.Name(), d.text(o.Type()), exact(o.Val()))
	case *types.Var:
		fmt.Fprintf(&d.out, "var %s %s\n", o.Name(), d.text(o.Type()))
	case *types.Func:
		fmt.Fprintf(&d.out, "func %s%s\n", o.Name(), d.signature(o.Signature()))
	case *types.TypeName:
		d.typeName(o)
	}
}

// exact is a constant's value, never shortened.
func exact(v constant.Value) string {
	if v.Kind() == constant.Float {
		return v.String()
	}
	return v.ExactString()
}

func (d *description) typeName(o *types.TypeName) {
	named, ok := o.Type().(*types.Named)
	if o.IsAlias() || !ok {
		fmt.Fprintf(&d.out, "type %s = %s\n", o.Name(), d.text(types.Unalias(o.Type())))
		return
	}
	fmt.Fprintf(&d.out, "type %s%s ", o.Name(), d.parameters(named))
	switch u := named.Underlying().(type) {
	case *types.Struct:
		d.out.WriteString("struct\n")
		d.fields(u)
		d.methods(named)
	case *types.Interface:
		d.out.WriteString("interface\n")
		d.interfaceMethods(u)
	default:
		d.out.WriteString(d.text(u) + "\n")
		d.methods(named)
	}
}

// parameters are a type's type parameters with their constraints.
func (d *description) parameters(named *types.Named) string {
	var b bytes.Buffer
	for p := range named.TypeParams().TypeParams() {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.Obj().Name() + " " + d.text(p.Constraint()))
	}
	if b.Len() == 0 {
		return ""
	}
	return "[" + b.String() + "]"
}

// fields writes the exported fields in their order, which unkeyed literals and
// conversions depend on.
func (d *description) fields(s *types.Struct) {
	hidden := false
	for i := range s.NumFields() {
		f := s.Field(i)
		if !f.Exported() {
			hidden = true
			continue
		}
		embedded := ""
		if f.Embedded() {
			embedded = "embedded "
		}
		fmt.Fprintf(&d.out, "\t%sfield %s %s", embedded, f.Name(), d.text(f.Type()))
		if tag := s.Tag(i); tag != "" {
			fmt.Fprintf(&d.out, " %q", tag)
		}
		d.out.WriteByte('\n')
	}
	if hidden {
		d.out.WriteString("\tunexported fields\n")
	}
}

// methods writes what can be called on a value or a pointer, promoted methods
// included.
func (d *description) methods(named *types.Named) {
	onValue := types.NewMethodSet(named)
	for m := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		f, ok := m.Obj().(*types.Func)
		if !ok || !f.Exported() {
			continue
		}
		receiver := "*"
		if onValue.Lookup(f.Pkg(), f.Name()) != nil {
			receiver = ""
		}
		promoted := ""
		if len(m.Index()) > 1 {
			promoted = "promoted "
		}
		fmt.Fprintf(&d.out, "\t%smethod (%s%s) %s%s\n", promoted, receiver, named.Obj().Name(), f.Name(), d.signature(m.Type().(*types.Signature)))
	}
}

func (d *description) interfaceMethods(i *types.Interface) {
	sealed := false
	for m := range i.Methods() { // sorted, those of embedded interfaces included
		if !m.Exported() {
			sealed = true
			continue
		}
		fmt.Fprintf(&d.out, "\t%s%s\n", m.Name(), d.signature(m.Signature()))
	}
	if sealed {
		d.out.WriteString("\tunexported methods\n")
	}
	if !i.IsMethodSet() {
		d.out.WriteString("\t" + d.text(i) + "\n")
	}
}

// signature is a function's type parameters, parameters and results.
func (d *description) signature(s *types.Signature) string {
	var b bytes.Buffer
	types.WriteSignature(&b, s, d.qualified)
	return b.String()
}

func (d *description) text(t types.Type) string { return types.TypeString(t, d.qualified) }

// qualified names packages as source does: not the own one, others by name.
func (d *description) qualified(p *types.Package) string {
	if p == d.pkg {
		return ""
	}
	return p.Name()
}
