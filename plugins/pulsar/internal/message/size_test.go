// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/message"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// What the client counts against the broker's limit is refused before it is sent.
func TestCheckSize_S_PUL_31(t *testing.T) {
	const limit = 1024
	property := []wire.OutgoingProperty{{Name: "a", Value: make([]byte, 100)}}
	for _, tt := range []struct {
		name string
		m    wire.Outgoing
		want string // of the fault, "" = none
	}{
		{"empty", wire.Outgoing{}, ""},
		{"as large as can be", wire.Outgoing{Payload: make([]byte, 512)}, ""},
		{"a byte more", wire.Outgoing{Payload: make([]byte, 513)}, "payload and headers have 513 bytes, the limit is 512: 1024 less 512"},
		{"with a header", wire.Outgoing{Payload: make([]byte, 512-117), Properties: property}, ""},
		{"with a header, a byte more", wire.Outgoing{Payload: make([]byte, 512-116), Properties: property}, "payload and headers have 513 bytes, the limit is 512"},
		{"with a long key", wire.Outgoing{Key: strings.Repeat("k", 513)}, "payload and headers have 513 bytes"},
	} {
		f := message.CheckSize("jobs", &tt.m, limit)
		switch {
		case f == nil:
			if tt.want != "" {
				t.Errorf("%s: taken, want %q", tt.name, tt.want)
			}
		case f.Code != core.FaultTooLarge || f.Transient || len(f.Diagnostics) == 0 || tt.want == "" || !strings.Contains(f.Error(), tt.want):
			t.Errorf("%s: got %+v, want %q", tt.name, f, tt.want)
		}
	}
}

// The client that others are made with reads no message that has neither payload nor property.
func TestEmptyMessagesHaveAProperty(t *testing.T) {
	for _, tt := range []struct {
		name string
		m    core.Message
		want []wire.OutgoingProperty
	}{
		{"nothing", core.Message{}, []wire.OutgoingProperty{{Name: "x-longshore-empty"}}},
		{"a key alone", core.Message{Headers: core.Headers{{Name: "partition-key", Value: []byte("k")}}}, []wire.OutgoingProperty{{Name: "x-longshore-empty"}}},
		{"a header", core.Message{Headers: core.Headers{{Name: "a", Value: []byte("b")}}}, []wire.OutgoingProperty{{Name: "a", Value: []byte("b")}}},
		{"a payload", core.Message{Payload: []byte("a")}, nil},
	} {
		if diff := cmp.Diff(tt.want, message.For(&tt.m, message.Options{}).Properties); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}
