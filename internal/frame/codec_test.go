// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// encoder is what all four encoders have.
type encoder interface {
	Next() bool
	Size() int
	Append(b []byte) []byte
}

// encode returns the wire messages and checks that sizes are exact.
func encode(t interface{ Fatalf(string, ...any) }, e encoder) [][]byte {
	var out [][]byte
	for e.Next() {
		b := e.Append(nil)
		if len(b) != e.Size() {
			t.Fatalf("size %d, wrote %d bytes", e.Size(), len(b))
		}
		out = append(out, b)
	}
	return out
}

// Generators of all fields, with the values that varints and lengths turn at.
var (
	numbers = rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, 127, 128, 16383, 16384, 1<<32 - 1, 1 << 32, 1<<64 - 1}))
	texts   = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", strings.Repeat("x", 127), strings.Repeat("y", 128)}))
	values  = rapid.SliceOfN(rapid.Byte(), 0, 200)
	times   = rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64().Draw(t, "ns")) })
	headers = rapid.Custom(func(t *rapid.T) core.Headers {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) core.Header {
			return core.Header{Name: texts.Draw(t, "name"), Value: values.Draw(t, "value")}
		}), 0, 5).Draw(t, "headers")
	})
	messages = rapid.Custom(func(t *rapid.T) core.Message {
		return core.Message{Name: texts.Draw(t, "name"), Headers: headers.Draw(t, "headers"), Payload: values.Draw(t, "payload")}
	})
	faults = rapid.Custom(func(t *rapid.T) *core.Fault {
		if rapid.Bool().Draw(t, "no fault") {
			return nil
		}
		return &core.Fault{
			Code:       core.FaultCode(rapid.IntRange(0, int(core.FaultInternal)).Draw(t, "code")),
			Message:    texts.Draw(t, "message"),
			Transient:  rapid.Bool().Draw(t, "transient"),
			RetryAfter: times.Draw(t, "after"),
			Diagnostics: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) core.Diagnostic {
				return core.Diagnostic{Path: texts.Draw(t, "path"), Message: texts.Draw(t, "message"), Fix: texts.Draw(t, "fix")}
			}), 0, 3).Draw(t, "diagnostics"),
		}
	})
	deliveries = rapid.Custom(func(t *rapid.T) Delivery {
		return Delivery{ID: numbers.Draw(t, "id"), Message: messages.Draw(t, "message"), Attempt: rapid.Uint32().Draw(t, "attempt"),
			Profile: rapid.Uint32().Draw(t, "profile"), Scope: texts.Draw(t, "scope"), Identity: values.Draw(t, "identity"),
			Position: values.Draw(t, "position"), Carry: values.Draw(t, "carry"), PublishedAt: rapid.Int64().Draw(t, "at"),
			Undecodable: faults.Draw(t, "undecodable")}
	})
	runs = rapid.Custom(func(t *rapid.T) VerdictRun {
		return VerdictRun{First: numbers.Draw(t, "first"), Count: numbers.Draw(t, "count"),
			Kind:  core.VerdictKind(rapid.IntRange(0, int(core.VerdictExtend)).Draw(t, "kind")),
			Delay: times.Draw(t, "delay"), Hold: times.Draw(t, "hold"), Reason: texts.Draw(t, "reason"),
			WantResult: rapid.Bool().Draw(t, "want")}
	})
	results = rapid.Custom(func(t *rapid.T) SettleResult {
		return SettleResult{First: numbers.Draw(t, "first"), Count: numbers.Draw(t, "count"),
			Status: SettleStatus(rapid.IntRange(0, int(SettleFailed)).Draw(t, "status")), Fault: faults.Draw(t, "fault")}
	})
	outgoings = rapid.Custom(func(t *rapid.T) Outgoing {
		return Outgoing{ID: numbers.Draw(t, "id"), Message: messages.Draw(t, "message"),
			Purpose: uint8(rapid.IntRange(0, int(pb.Purpose_PURPOSE_REPLY)).Draw(t, "purpose")), Carry: values.Draw(t, "carry"),
			DeliverAfter: times.Draw(t, "after"), DedupID: texts.Draw(t, "dedup"), Options: values.Draw(t, "options")}
	})
	receipts = rapid.Custom(func(t *rapid.T) Receipt {
		return Receipt{ID: numbers.Draw(t, "id"), Status: ReceiptStatus(rapid.IntRange(0, int(ReceiptUnknown)).Draw(t, "status")),
			Fault: faults.Draw(t, "fault"), Unrouted: rapid.Bool().Draw(t, "unrouted"), Position: values.Draw(t, "position")}
	})
	requests = rapid.Custom(func(t *rapid.T) *SubscribeRequest {
		switch rapid.IntRange(0, 4).Draw(t, "part") {
		case 0:
			return &SubscribeRequest{Start: &pb.SubscribeStart{Registration: &pb.Registration{Name: texts.Draw(t, "name"), Attempts: 3}}}
		case 1:
			return &SubscribeRequest{Credit: &Credit{Messages: numbers.Draw(t, "messages"), Bytes: numbers.Draw(t, "bytes")}}
		case 2:
			return &SubscribeRequest{Settle: rapid.SliceOfN(runs, 1, 20).Draw(t, "runs")}
		case 3:
			return &SubscribeRequest{Seek: &pb.Seek{Kind: pb.PositionKind_POSITION_KIND_EXACT, Value: values.Draw(t, "value")}}
		default:
			return &SubscribeRequest{Stop: true}
		}
	})
	responses = rapid.Custom(func(t *rapid.T) *SubscribeResponse {
		switch rapid.IntRange(0, 7).Draw(t, "part") {
		case 0:
			return &SubscribeResponse{Started: &pb.Started{Profiles: []*pb.Capabilities{{Ack: pb.AckMode_ACK_MODE_SINGLE, Address: texts.Draw(t, "address")}}}}
		case 1:
			return &SubscribeResponse{Deliveries: &Deliveries{Items: rapid.SliceOfN(deliveries, 1, 20).Draw(t, "items")}}
		case 2:
			return &SubscribeResponse{Settled: rapid.SliceOfN(results, 1, 20).Draw(t, "results")}
		case 3:
			return &SubscribeResponse{Void: &pb.Void{First: numbers.Draw(t, "first"), Scope: texts.Draw(t, "scope"), Returns: true}}
		case 4:
			return &SubscribeResponse{Sought: &pb.Sought{Next: numbers.Draw(t, "next")}}
		case 5:
			return &SubscribeResponse{CaughtUp: true}
		case 6:
			return &SubscribeResponse{Report: &pb.Report{Position: texts.Draw(t, "position"), Fault: genFault(faults.Draw(t, "fault"))}}
		default:
			return &SubscribeResponse{Ended: &pb.Ended{Fault: genFault(faults.Draw(t, "fault"))}}
		}
	})
)

// same checks one frame in both directions: the bytes are those of generated
// code, and what is decoded from them is what generated code decodes.
func same(t *rapid.T, e encoder, generated proto.Message) []byte {
	want, err := proto.MarshalOptions{Deterministic: true}.Marshal(generated)
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	got := encode(t, e)
	if len(got) != 1 || !bytes.Equal(want, got[0]) {
		t.Fatalf("generated code writes\n%x\nthe codec\n%x", want, got)
	}
	// A newer side may send fields that this one does not know.
	return protowire.AppendBytes(protowire.AppendTag(got[0], 77, protowire.BytesType), []byte("newer"))
}

func TestSubscribeRequestIsGeneratedCode(t *testing.T) {
	var d SubscribeRequestDecoder
	rapid.Check(t, func(t *rapid.T) {
		want := requests.Draw(t, "request")
		var e SubscribeRequestEncoder
		if f := e.Reset(want); f != nil {
			t.Fatalf("refused: %v", f)
		}
		b := same(t, &e, genRequest(want))
		var got SubscribeRequest
		if err := d.Decode(b, &got); err != nil {
			t.Fatalf("decode: %v", err)
		}
		if s := diff(want, &got); s != "" {
			t.Fatal(s)
		}
	})
}

func TestSubscribeResponseIsGeneratedCode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := responses.Draw(t, "response")
		var e SubscribeResponseEncoder
		if f := e.Reset(want); f != nil {
			t.Fatalf("refused: %v", f)
		}
		b := same(t, &e, genResponse(want))
		var got SubscribeResponse
		if err := DecodeSubscribeResponse(slabOf(b), &got); err != nil {
			t.Fatalf("decode: %v", err)
		}
		if s := diff(want, &got); s != "" {
			t.Fatal(s)
		}
		if got.Deliveries != nil {
			got.Deliveries.Release()
		}
	})
}

func TestPublishRequestIsGeneratedCode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(outgoings, 1, 20).Draw(t, "items")
		var e PublishEncoder
		if f := e.Reset(want); f != nil {
			t.Fatalf("refused: %v", f)
		}
		b := same(t, &e, genPublish(want))
		got, err := DecodePublishes(slabOf(b))
		if err != nil {
			t.Fatalf("decode: %v", err)
		}
		if s := diff(want, got.Items); s != "" {
			t.Fatal(s)
		}
		got.Release()
	})
}

func TestPublishResponseIsGeneratedCode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(receipts, 1, 20).Draw(t, "receipts")
		var e ReceiptEncoder
		if f := e.Reset(want); f != nil {
			t.Fatalf("refused: %v", f)
		}
		b := same(t, &e, genReceipts(want))
		got, err := DecodeReceipts(b, nil)
		if err != nil {
			t.Fatalf("decode: %v", err)
		}
		clear(b) // nothing of it is kept
		if s := diff(want, got); s != "" {
			t.Fatal(s)
		}
	})
}

func TestPartsAddUpAsProtobufHasIt(t *testing.T) {
	join := func(ms ...proto.Message) (b []byte) {
		for _, m := range ms {
			b, _ = proto.MarshalOptions{}.MarshalAppend(b, m)
		}
		return b
	}
	two := genResponse(&SubscribeResponse{Deliveries: &Deliveries{Items: []Delivery{{ID: 1}, {ID: 2}}}})
	ended := genResponse(&SubscribeResponse{Ended: &pb.Ended{}})
	settled := genResponse(&SubscribeResponse{Settled: []SettleResult{{First: 7}}})
	for name, b := range map[string][]byte{
		"same part twice":         join(two, two),
		"another part after":      join(two, ended),
		"another part before":     join(ended, two),
		"results after":           join(two, settled, settled),
		"deliveries between":      join(settled, two, settled),
		"wrong wire type":         protowire.AppendVarint(protowire.AppendTag(join(two), 2, protowire.VarintType), 5),
		"tag longer than needed":  append([]byte{0x92, 0x80, 0x00, 0x02, 0x0a, 0x00}, join(two)...),
		"unknown group":           append([]byte{0xa3, 0x06, 0xa4, 0x06}, join(two)...),
		"nothing":                 {},
		"unknown enum is nothing": join(&pb.SubscribeResponse{Part: &pb.SubscribeResponse_Settled{Settled: &pb.Settled{Results: []*pb.SettleResult{{Status: 99}}}}}),
	} {
		t.Run(name, func(t *testing.T) {
			g := &pb.SubscribeResponse{}
			if err := proto.Unmarshal(b, g); err != nil {
				t.Fatal(err)
			}
			var got SubscribeResponse
			if err := DecodeSubscribeResponse(slabOf(b), &got); err != nil {
				t.Fatal(err)
			}
			if s := diff(plainResponse(g), &got); s != "" {
				t.Error(s)
			}
		})
	}
}

func TestBrokenBytesAreErrors(t *testing.T) {
	for name, b := range map[string][]byte{
		"varint without end":     {0x12, 0x80},
		"length beyond the end":  {0x12, 0x05, 0x0a},
		"huge length":            {0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"field number 0":         {0x00, 0x01},
		"field number too large": {0xf8, 0xff, 0xff, 0xff, 0xff, 0x01, 0x00},
		"end of no group":        {0x14},
		"header cut off":         {0x12, 0x05, 0x0a, 0x03, 0x1a, 0x09, 0x0a},
		"257 messages":           append([]byte{0x12, 0x82, 0x04}, bytes.Repeat([]byte{0x0a, 0x00}, MaxItems+1)...),
	} {
		t.Run(name, func(t *testing.T) {
			var r SubscribeResponse
			if err := DecodeSubscribeResponse(slabOf(b), &r); err == nil {
				t.Errorf("decoded to %+v", r)
			} else if r.Deliveries != nil {
				t.Error("a frame is left behind an error")
			}
		})
	}
}

func ExampleOutgoing_Check() {
	o := Outgoing{Message: core.Message{Name: "orders", Payload: make([]byte, MaxPayload+1)}}
	fmt.Println(o.Check())
	// Output: payload and headers of a message: 67108865 bytes are over the limit of 67108864; send a reference to the data instead
}
