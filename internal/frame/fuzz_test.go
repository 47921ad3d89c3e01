// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"errors"
	"runtime"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/longshore-go/longshore/core"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// seeds are frames of every part, whole and cut off.
func seeds(f *testing.F) {
	fault := &core.Fault{Code: core.FaultDenied, Message: "no", Transient: true, RetryAfter: 5,
		Diagnostics: []core.Diagnostic{{Path: "tls.ca_file", Message: "missing", Fix: "set it"}}}
	message := core.Message{Name: "orders", Headers: core.Headers{{Name: "a", Value: []byte("b")}, {Name: "a"}}, Payload: []byte("{}")}
	for _, m := range []proto.Message{
		genRequest(&SubscribeRequest{Start: &pb.SubscribeStart{Registration: &pb.Registration{Name: "orders", Options: []byte("{}")}}}),
		genRequest(&SubscribeRequest{Credit: &Credit{Messages: 1024, Bytes: 8 << 20}}),
		genRequest(&SubscribeRequest{Settle: []VerdictRun{{First: 1, Count: 300, Kind: core.VerdictReject, Reason: "bad", WantResult: true}, {First: 301, Delay: -1, Hold: 9}}}),
		genRequest(&SubscribeRequest{Seek: &pb.Seek{Kind: pb.PositionKind_POSITION_KIND_TIME, Time: 7}}),
		genRequest(&SubscribeRequest{Stop: true}),
		genResponse(&SubscribeResponse{Started: &pb.Started{Profiles: []*pb.Capabilities{{Extend: true}}}}),
		genResponse(&SubscribeResponse{Deliveries: &Deliveries{Items: []Delivery{{ID: 1, Message: message, Attempt: 2, Profile: 3,
			Scope: "p-1", Identity: []byte{1}, Position: []byte{2}, Carry: []byte{3}, PublishedAt: 4, Undecodable: fault}, {ID: 2}}}}),
		genResponse(&SubscribeResponse{Settled: []SettleResult{{First: 1, Count: 2, Status: SettleStale, Fault: fault}}}),
		genResponse(&SubscribeResponse{Void: &pb.Void{Scope: "p-1", Returns: true}}),
		genResponse(&SubscribeResponse{CaughtUp: true}),
		genResponse(&SubscribeResponse{Ended: &pb.Ended{Fault: genFault(fault)}}),
		genPublish([]Outgoing{{ID: 1, Message: message, Purpose: 2, Carry: []byte{1}, DeliverAfter: 5, DedupID: "d", Options: []byte("{}")}}),
		genReceipts([]Receipt{{ID: 1, Status: ReceiptRefused, Fault: fault, Unrouted: true, Position: []byte("9")}, {ID: 2, Position: []byte("10")}}),
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
}

// agree checks the decoder's error against generated code's: what that reads,
// the codec reads, but for more entries than a frame may have.
func agree(t *testing.T, err, generated error) bool {
	if err != nil && generated == nil && !errors.Is(err, errTooMany) {
		t.Fatalf("generated code reads what the codec refuses: %v", err)
	}
	return err == nil && generated == nil
}

func FuzzSubscribeRequest(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		var d SubscribeRequestDecoder
		var got SubscribeRequest
		g := &pb.SubscribeRequest{}
		if !agree(t, d.Decode(b, &got), proto.Unmarshal(b, g)) {
			return
		}
		if s := diff(plainRequest(g), &got); s != "" {
			t.Fatal(s)
		}
		var e SubscribeRequestEncoder
		if refused := e.Reset(&got); refused != nil {
			t.Fatal(refused)
		}
		again := &SubscribeRequest{}
		for _, b := range encode(t, &e) {
			if err := d.Decode(b, again); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzSubscribeResponse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		var got SubscribeResponse
		g := &pb.SubscribeResponse{}
		if !agree(t, DecodeSubscribeResponse(slabOf(b), &got), proto.Unmarshal(b, g)) {
			return
		}
		if s := diff(plainResponse(g), &got); s != "" {
			t.Fatal(s)
		}
		if got.Deliveries != nil {
			got.Deliveries.Release()
		}
	})
}

func FuzzPublishRequest(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := DecodePublishes(slabOf(b))
		g := &pb.PublishRequest{}
		if !agree(t, err, proto.Unmarshal(b, g)) {
			return
		}
		if s := diff(plainPublish(g), p.Items); s != "" {
			t.Fatal(s)
		}
		p.Release()
	})
}

func FuzzPublishResponse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		rs, err := DecodeReceipts(b, nil)
		g := &pb.PublishResponse{}
		if !agree(t, err, proto.Unmarshal(b, g)) {
			return
		}
		if s := diff(plainReceipts(g), rs); s != "" {
			t.Fatal(s)
		}
	})
}

// TestFewBytesTakeLittleMemory decodes what costs the most memory for its
// bytes: entries of two bytes each.
func TestFewBytesTakeLittleMemory(t *testing.T) {
	const n = 1 << 20
	flood := make([]byte, 0, 2*n+16)
	for range n {
		flood = append(flood, 0x0a, 0x00)
	}
	headers := make([]byte, 0, 2*n)
	for range n {
		headers = append(headers, 0x1a, 0x00)
	}
	part := func(field byte, b []byte) []byte { return append(appendLength(nil, field, len(b)), b...) }
	for name, decode := range map[string]func() error{
		"deliveries": func() error {
			var r SubscribeResponse
			return DecodeSubscribeResponse(slabOf(part(2, flood)), &r)
		},
		"headers": func() error {
			var r SubscribeResponse
			return DecodeSubscribeResponse(slabOf(part(2, part(1, headers))), &r)
		},
		"results": func() error {
			var r SubscribeResponse
			return DecodeSubscribeResponse(slabOf(part(3, flood)), &r)
		},
		"runs": func() error {
			var d SubscribeRequestDecoder
			return d.Decode(part(3, flood), &SubscribeRequest{})
		},
		"publishes": func() error { _, err := DecodePublishes(slabOf(flood)); return err },
		"receipts":  func() error { _, err := DecodeReceipts(flood, nil); return err },
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := decode()
			runtime.ReadMemStats(&after)
			if !errors.Is(err, errTooMany) {
				t.Errorf("got %v, want %v", err, errTooMany)
			}
			// The slab itself is 2 MiB; 64 Ki headers grow to 2.5 MiB in steps.
			if got := after.TotalAlloc - before.TotalAlloc; got > 24<<20 {
				t.Errorf("took %d bytes of memory for %d", got, len(flood))
			}
		})
	}
}
