// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"bytes"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi/internal/schema"
)

// Options are settings of one subscription or one message, as the JSON object
// that the schema describes. The zero value is the empty object. Printed or
// logged they show no secret.
type Options struct {
	raw []byte
	typ *schema.Type // what the Spec says of them; nil = unknown
}

// Settings are what Configure gets.
type Settings struct {
	Options                 // bind them with Bind
	Endpoint   string       // the name that the host gave the endpoint
	Generation uint64       // life of this endpoint's process, from 1
	Logger     *slog.Logger // its records become records of the host's log; never nil from the SDK
	Stdio      *Stdio       // the host's stdin and stdout, where the endpoint was attached with them
}

// NewOptions returns options that hold raw, one JSON object, for tests of a
// transport's own types. Nothing is checked before Bind.
func NewOptions(raw []byte) Options { return Options{raw: raw} }

// Bind reads the options into the tagged struct that into points to, defaults
// applied; see [SchemaOf] for the tags. On an error, which is a *core.Fault of
// code FaultInvalid with a diagnostic for each field that is wrong, into stays
// as it was.
func (o Options) Bind(into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return newFault(core.FaultInternal, "bind options into %T: give a pointer to a struct", into)
	}
	t := o.typ
	if t == nil || t.Go != v.Elem().Type() {
		var err error
		if t, err = schema.Of(v.Elem().Type()); err != nil {
			return newFault(core.FaultInternal, "bind options: %v", err)
		}
	}
	return invalid("bind options", t.Bind(o.raw, v.Elem()))
}

// IsEmpty reports whether nothing is set.
func (o Options) IsEmpty() bool { return len(o.raw) == 0 || string(o.raw) == "{}" }

// Equal reports whether both hold the same bytes, so that whoever has read one of
// them need not read the other.
func (o Options) Equal(other Options) bool {
	return bytes.Equal(o.raw, other.raw) || o.IsEmpty() && other.IsEmpty()
}

// Clone returns options that share no memory with o: those of a message are valid
// no longer than its other bytes.
func (o Options) Clone() Options {
	o.raw = bytes.Clone(o.raw)
	return o
}

// JSON returns the options as one JSON object, secrets included.
func (o Options) JSON() []byte {
	if len(o.raw) == 0 {
		return []byte("{}")
	}
	return append([]byte(nil), o.raw...)
}

// String returns the options as JSON with every secret replaced by a mark.
// Options that no schema is known of show nothing.
func (o Options) String() string {
	if len(o.raw) == 0 {
		return "{}"
	}
	return o.typ.Redact(o.raw)
}

// GoString returns what String returns.
func (o Options) GoString() string { return o.String() }

// Format writes what String returns, whatever the verb.
func (o Options) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, o.String()) }

// LogValue returns what String returns.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

// EncodeSettings returns settings as the JSON object that Configure takes. v is
// a tagged struct, a pointer to one, a map with string keys, or nil. Secrets
// are written out, here and nowhere else: do not log the result. Zero fields of
// a struct are left out, so that their defaults apply; where zero itself is
// meant the settings type has a pointer.
func EncodeSettings(v any) ([]byte, error) { return schema.Encode(v) }

// EncodeOptions returns what [EncodeSettings] returns as options.
func EncodeOptions(v any) (Options, error) {
	raw, err := schema.Encode(v)
	return Options{raw: raw}, err
}

// Diagnostic points at one field of settings or options.
type Diagnostic = core.Diagnostic

// invalid returns the fault of wrong settings or options, nil without any
// diagnostic.
func invalid(doing string, ds []Diagnostic) error {
	if len(ds) == 0 {
		return nil
	}
	return &core.Fault{Code: core.FaultInvalid, Message: doing, Diagnostics: ds}
}
