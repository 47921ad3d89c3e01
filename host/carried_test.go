// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/longshore-go/longshore/core"
)

// endless is made of itself.
type endless []endless

// signalled is a channel that says how it is JSON.
type signalled chan int

func (signalled) MarshalJSON() ([]byte, error) { return json.Marshal(0) }

func TestUncarried(t *testing.T) {
	type parcel struct{ ID int }
	for name, c := range map[string]struct {
		got     *complaint
		refused bool
	}{
		"struct":          {uncarried[parcel](nil), false},
		"pointer":         {uncarried[*parcel](nil), false},
		"list":            {uncarried[[]parcel](nil), false},
		"anything":        {uncarried[any](nil), false},
		"bytes":           {uncarried[[]byte](nil), false},
		"message":         {uncarried[core.Message](nil), false},
		"protobuf":        {uncarried[*wrapperspb.StringValue](nil), false},
		"time":            {uncarried[time.Time](nil), false},
		"made of itself":  {uncarried[endless](nil), false},
		"own form":        {uncarried[signalled](nil), false},
		"channel":         {uncarried[chan int](nil), true},
		"function":        {uncarried[func()](nil), true},
		"complex":         {uncarried[complex128](nil), true},
		"list of those":   {uncarried[[]chan int](nil), true},
		"map of those":    {uncarried[map[string]func()](nil), true},
		"pointer to such": {uncarried[*func()](nil), true},
		"keys of those":   {uncarried[map[chan int]string](nil), true},
		"other keys":      {uncarried[map[float64]string](nil), true},
		"keys as text":    {uncarried[map[time.Time]string](nil), false},
		"numbers as keys": {uncarried[map[uint8]string](nil), false},
	} {
		if (c.got != nil) != c.refused {
			t.Errorf("%s: got %+v, want that it is refused: %t", name, c.got, c.refused)
		}
	}
}

type (
	carries struct{ Done chan int }
	deeper  struct{ Next []*carries }
	deepest struct{ ByName map[string]deeper }
	ring    struct{ Next *ring }
	ringed  struct {
		Ring *ringed
		Call func()
	}
	ignored struct {
		Done chan int `json:"-"`
		own  chan int
	}
	named struct {
		Done chan int `json:"-,"` //nolint:staticcheck // the name is meant
	}
	Embedded struct {
		ID   int
		Done chan int
	}
	promotes struct{ Embedded }
	promoted struct{ *Embedded }
	renamed  struct {
		Embedded `json:"inner"`
	}
	hides struct {
		Embedded
		Done string
	}
	hidesByName struct {
		Embedded
		Other string `json:"Done"`
	}
	Beside   struct{ Done chan int }
	annulled struct {
		Embedded
		Beside
	}
	Tagged struct {
		Call func() `json:"Done"`
	}
	tagWins struct {
		Embedded
		Tagged
	}
	hidden  struct{ Done chan int }
	lowered struct{ hidden }
	shaped  struct{ Done signalled }
	keyed   struct{ Stock map[float64]int }
	split   struct{ Z complex64 }
)

// A type is refused for what any of its fields is, by the rules that
// encoding/json has: it fails for a value in which every field is there.
func TestUncarriedFields(t *testing.T) {
	done := make(chan int)
	e := Embedded{Done: done}
	for name, c := range map[string]struct {
		got   *complaint
		value any
		field string // "" = not refused
	}{
		"field":                   {uncarried[carries](nil), carries{done}, "Done is a chan int"},
		"pointer to it":           {uncarried[*carries](nil), &carries{done}, "Done is a chan int"},
		"field of a field":        {uncarried[deeper](nil), deeper{[]*carries{{done}}}, "Next.Done is a chan int"},
		"deeper":                  {uncarried[[]deepest](nil), []deepest{{map[string]deeper{"": {[]*carries{{done}}}}}}, "ByName.Next.Done is a chan int"},
		"ring":                    {uncarried[ring](nil), ring{&ring{}}, ""},
		"ring with more":          {uncarried[ringed](nil), ringed{Call: func() {}}, "Call is a func()"},
		"left out and unexported": {uncarried[ignored](nil), ignored{done, done}, ""},
		"called -":                {uncarried[named](nil), named{done}, "Done is a chan int"},
		"embedded":                {uncarried[promotes](nil), promotes{e}, "Embedded.Done is a chan int"},
		"embedded pointer":        {uncarried[promoted](nil), promoted{&e}, "Embedded.Done is a chan int"},
		"embedded with a name":    {uncarried[renamed](nil), renamed{e}, "Embedded.Done is a chan int"},
		"hidden":                  {uncarried[hides](nil), hides{e, ""}, ""},
		"hidden by a tag":         {uncarried[hidesByName](nil), hidesByName{e, ""}, ""},
		"two of one name":         {uncarried[annulled](nil), annulled{e, Beside{done}}, ""},
		"two, one with a tag":     {uncarried[tagWins](nil), tagWins{e, Tagged{func() {}}}, "Tagged.Call is a func()"},
		"of an unexported type":   {uncarried[lowered](nil), lowered{hidden{done}}, "hidden.Done is a chan int"},
		"own form":                {uncarried[shaped](nil), shaped{signalled(done)}, ""},
		"keys":                    {uncarried[keyed](nil), keyed{map[float64]int{1: 1}}, "Stock is a map[float64]int"},
		"complex":                 {uncarried[split](nil), split{1}, "Z is a complex64"},
	} {
		message := ""
		if c.got != nil {
			message = c.got.message
		}
		if c.field == "" && c.got != nil || !strings.HasSuffix(message, c.field) {
			t.Errorf("%s: got %+v, want a complaint of %q", name, c.got, c.field)
		}
		if _, err := json.Marshal(c.value); (err != nil) != (c.field != "") {
			t.Errorf("%s: JSON of a %v: %v", name, reflect.TypeOf(c.value), err)
		}
	}
}
