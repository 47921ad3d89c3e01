// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
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
		"struct":          {uncarried[parcel](), false},
		"pointer":         {uncarried[*parcel](), false},
		"list":            {uncarried[[]parcel](), false},
		"anything":        {uncarried[any](), false},
		"bytes":           {uncarried[[]byte](), false},
		"message":         {uncarried[core.Message](), false},
		"protobuf":        {uncarried[*wrapperspb.StringValue](), false},
		"time":            {uncarried[time.Time](), false},
		"made of itself":  {uncarried[endless](), false},
		"own form":        {uncarried[signalled](), false},
		"channel":         {uncarried[chan int](), true},
		"function":        {uncarried[func()](), true},
		"complex":         {uncarried[complex128](), true},
		"list of those":   {uncarried[[]chan int](), true},
		"map of those":    {uncarried[map[string]func()](), true},
		"pointer to such": {uncarried[*func()](), true},
	} {
		if (c.got != nil) != c.refused {
			t.Errorf("%s: got %+v, want that it is refused: %t", name, c.got, c.refused)
		}
	}
}
