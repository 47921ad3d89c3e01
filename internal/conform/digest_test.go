// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
)

// The text of Digest's comment is what is hashed.
func TestDigestText(t *testing.T) {
	text := "longshore capabilities 1\n" +
		"profile ack=single requeue=none max_delay=0 max_hold=0 extend=false reject=drops counts=none address=true unsettled=lost durable=false order=total\n" +
		"publishing confirms=stored retains=transport max_delay=0 dedups=false headers=native-bytes repeats=true max_bytes=0 max_headers=0\n"
	sum := sha256.Sum256([]byte(text))
	got := Digest(
		[]core.Capabilities{{Ack: core.AckSingle, Reject: core.RejectDrops, Address: "x", Order: core.OrderTotal}},
		&core.Publishing{Confirms: core.ConfirmStored, Retains: core.RetainTransport, Headers: core.HeadersNativeBytes, Repeats: true},
	)
	if want := "sha256:" + hex.EncodeToString(sum[:]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Every field of both sets counts, an address by being there.
func TestDigestFields(t *testing.T) {
	seen := map[string]string{}
	add := func(what, digest string) {
		t.Helper()
		if other, ok := seen[digest]; ok {
			t.Errorf("%s has the digest of %s", what, other)
		}
		seen[digest] = what
	}
	add("nothing", Digest(nil, nil))
	add("a profile of zeros", Digest(make([]core.Capabilities, 1), nil))
	add("a destination of zeros", Digest(nil, &core.Publishing{}))
	for field := range reflect.TypeFor[core.Capabilities]().Fields() {
		c := core.Capabilities{}
		change(reflect.ValueOf(&c).Elem().FieldByIndex(field.Index))
		add("profile with "+field.Name, Digest([]core.Capabilities{c}, nil))
	}
	for field := range reflect.TypeFor[core.Publishing]().Fields() {
		p := core.Publishing{}
		change(reflect.ValueOf(&p).Elem().FieldByIndex(field.Index))
		add("destination with "+field.Name, Digest(nil, &p))
	}
}

// change gives a field another value than zero.
func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("own")
	case reflect.Uint8:
		v.SetUint(1)
	default:
		v.SetInt(1)
	}
}

func TestDigestSame(t *testing.T) {
	a := core.Capabilities{Ack: core.AckSingle, Address: "one", MaxHold: time.Second}
	b := core.Capabilities{Ack: core.AckCumulative}
	other := a
	other.Address = "two"
	want := Digest([]core.Capabilities{a, b}, nil)
	if got := Digest([]core.Capabilities{b, other, a}, nil); got != want {
		t.Errorf("got %s for the same sets in another order under another name, want %s", got, want)
	}
}
