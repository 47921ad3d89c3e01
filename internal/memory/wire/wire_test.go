// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory/wire"
)

// full is a frame with every field set.
func full() *wire.Frame {
	return &wire.Frame{
		Kind: wire.Deliver, Req: 1 << 40, Sub: 7, Num: -1, Num2: 2, Num3: -3, Flag: true, Flag2: true,
		Text: "text", Name: "name", Data: []byte{0, 1},
		Fault: &core.Fault{
			Code: core.FaultInvalid, Message: "wrong", Transient: true, RetryAfter: time.Second,
			Diagnostics: []core.Diagnostic{{Path: "a.b", Message: "is wrong", Fix: "mend it"}},
		},
		Profiles: []core.Capabilities{{
			Ack: core.AckCumulative, Requeue: core.RequeueDelayed, MaxDelay: time.Hour, MaxHold: time.Minute,
			Extend: true, Reject: core.RejectDeadLetters, Counts: core.CountNative, Address: "own",
			Unsettled: core.UnsettledOnTimeout, Durable: true, Order: core.OrderTotal,
		}, {}},
		Items: []wire.Item{{
			ID: 9, Kind: 3, Attempt: 2, Profile: 1, Flag: true, Retain: 2, Dedup: true, Name: "orders",
			Headers: core.Headers{{Name: "K", Value: []byte("v")}, {Name: "k", Value: nil}, {Name: "e", Value: []byte{}}},
			Payload: []byte("payload"), Scope: "p0", Identity: []byte{1}, Position: []byte{2}, Carry: []byte{3},
			Options: []byte("{}"), Text: "reason", Dur: time.Second, Time: 12345, Fault: &core.Fault{Message: "m"},
		}, {}},
	}
}

func TestFrameRoundTrip(t *testing.T) {
	for name, want := range map[string]*wire.Frame{"full": full(), "empty": {Kind: wire.Bye}, "bare parts": {Profiles: make([]core.Capabilities, 2), Items: make([]wire.Item, 3)}} {
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			if err := want.Write(&buf); err != nil {
				t.Fatal(err)
			}
			got, err := wire.Read(&buf)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	whole := full().Append(nil)
	long := binary.BigEndian.AppendUint32(nil, wire.MaxFrame+1)
	for _, tt := range []struct {
		name string
		in   []byte
		want error
	}{
		{"nothing", nil, io.EOF},
		{"half a length", whole[:2], io.ErrUnexpectedEOF},
		{"half a frame", whole[:len(whole)-1], io.ErrUnexpectedEOF},
		{"an empty frame", []byte{0, 0, 0, 0}, wire.ErrMalformed},
		{"a frame over the limit", long, wire.ErrMalformed},
		{"a frame that is too short for its fields", []byte{0, 0, 0, 2, 1, 1}, wire.ErrMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := wire.Read(bytes.NewReader(tt.in)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestDecodeRefusesEveryCut(t *testing.T) {
	whole := full().Append(nil)[4:]
	for n := range whole {
		if _, err := wire.Decode(whole[:n]); !errors.Is(err, wire.ErrMalformed) {
			t.Fatalf("%d of %d bytes: got %v", n, len(whole), err)
		}
	}
	if _, err := wire.Decode(append(whole, 0)); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("a byte too many: got %v", err)
	}
}

// A frame that is read is written again as it was, and what is no frame costs
// no more memory than it has bytes.
func FuzzDecode(f *testing.F) {
	f.Add(full().Append(nil)[4:])
	f.Add((&wire.Frame{Kind: wire.Bye}).Append(nil)[4:])
	f.Fuzz(func(t *testing.T, in []byte) {
		frame, err := wire.Decode(in)
		if err != nil {
			return
		}
		again, err := wire.Decode(frame.Append(nil)[4:])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(frame, again); diff != "" {
			t.Error(diff)
		}
	})
}
