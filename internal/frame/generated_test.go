// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	"github.com/longshore-go/longshore/core"
	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// Frames as generated code has them, to compare both codecs with.

func genFault(f *core.Fault) *pb.Fault {
	if f == nil {
		return nil
	}
	g := &pb.Fault{Code: pb.FaultCode(f.Code), Message: f.Message, Transient: f.Transient, RetryAfter: int64(f.RetryAfter)}
	for _, d := range f.Diagnostics {
		g.Diagnostics = append(g.Diagnostics, &pb.Diagnostic{Path: d.Path, Message: d.Message, Fix: d.Fix})
	}
	return g
}

func plainFault(g *pb.Fault) *core.Fault {
	if g == nil {
		return nil
	}
	f := &core.Fault{Code: core.FaultCode(known(int32(g.Code), int32(core.FaultInternal))), Message: g.Message,
		Transient: g.Transient, RetryAfter: time.Duration(g.RetryAfter)}
	for _, d := range g.Diagnostics {
		f.Diagnostics = append(f.Diagnostics, core.Diagnostic{Path: d.Path, Message: d.Message, Fix: d.Fix})
	}
	return f
}

// known reads an enum as the codec does: what is not known is unspecified.
func known(v, last int32) uint8 {
	if v < 0 || v > last {
		return 0
	}
	return uint8(v)
}

func genHeaders(hs core.Headers) (g []*pb.Header) {
	for _, h := range hs {
		g = append(g, &pb.Header{Name: h.Name, Value: h.Value})
	}
	return g
}

func plainHeaders(g []*pb.Header) (hs core.Headers) {
	for _, h := range g {
		hs = append(hs, core.Header{Name: h.Name, Value: h.Value})
	}
	return hs
}

func genRequest(r *SubscribeRequest) *pb.SubscribeRequest {
	switch {
	case r.Start != nil:
		return &pb.SubscribeRequest{Part: &pb.SubscribeRequest_Start{Start: r.Start}}
	case r.Credit != nil:
		return &pb.SubscribeRequest{Part: &pb.SubscribeRequest_Credit{
			Credit: &pb.Credit{Messages: r.Credit.Messages, Bytes: r.Credit.Bytes}}}
	case len(r.Settle) > 0:
		s := &pb.Settle{}
		for _, v := range r.Settle {
			s.Runs = append(s.Runs, &pb.VerdictRun{First: v.First, Count: v.Count, Kind: pb.VerdictKind(v.Kind),
				Delay: int64(v.Delay), Hold: int64(v.Hold), Reason: v.Reason, WantResult: v.WantResult})
		}
		return &pb.SubscribeRequest{Part: &pb.SubscribeRequest_Settle{Settle: s}}
	case r.Seek != nil:
		return &pb.SubscribeRequest{Part: &pb.SubscribeRequest_Seek{Seek: r.Seek}}
	case r.Stop:
		return &pb.SubscribeRequest{Part: &pb.SubscribeRequest_Stop{Stop: &pb.SubscribeStop{}}}
	}
	return &pb.SubscribeRequest{}
}

func plainRequest(g *pb.SubscribeRequest) *SubscribeRequest {
	r := &SubscribeRequest{Start: g.GetStart(), Seek: g.GetSeek(), Stop: g.GetStop() != nil}
	if c := g.GetCredit(); c != nil {
		r.Credit = &Credit{Messages: c.Messages, Bytes: c.Bytes}
	}
	for _, v := range g.GetSettle().GetRuns() {
		r.Settle = append(r.Settle, VerdictRun{First: v.First, Count: v.Count,
			Kind: core.VerdictKind(known(int32(v.Kind), int32(core.VerdictExtend))), Delay: time.Duration(v.Delay),
			Hold: time.Duration(v.Hold), Reason: v.Reason, WantResult: v.WantResult})
	}
	return r
}

func genResponse(r *SubscribeResponse) *pb.SubscribeResponse {
	switch {
	case r.Started != nil:
		return &pb.SubscribeResponse{Part: &pb.SubscribeResponse_Started{Started: r.Started}}
	case r.Deliveries != nil:
		ds := &pb.Deliveries{}
		for _, d := range r.Deliveries.Items {
			ds.Items = append(ds.Items, &pb.Delivery{Id: d.ID, Name: d.Message.Name, Headers: genHeaders(d.Message.Headers),
				Payload: d.Message.Payload, Attempt: d.Attempt, Profile: d.Profile, Scope: d.Scope, Identity: d.Identity,
				Position: d.Position, Carry: d.Carry, PublishedAt: d.PublishedAt, Undecodable: genFault(d.Undecodable)})
		}
		return &pb.SubscribeResponse{Part: &pb.SubscribeResponse_Deliveries{Deliveries: ds}}
	case len(r.Settled) > 0:
		s := &pb.Settled{}
		for _, x := range r.Settled {
			s.Results = append(s.Results, &pb.SettleResult{First: x.First, Count: x.Count,
				Status: pb.SettleStatus(x.Status), Fault: genFault(x.Fault)})
		}
		return &pb.SubscribeResponse{Part: &pb.SubscribeResponse_Settled{Settled: s}}
	case r.Void != nil:
		return &pb.SubscribeResponse{Part: &pb.SubscribeResponse_Void{Void: r.Void}}
	case r.Sought != nil:
		return &pb.SubscribeResponse{Part: &pb.SubscribeResponse_Sought{Sought: r.Sought}}
	case r.CaughtUp:
		return &pb.SubscribeResponse{Part: &pb.SubscribeResponse_CaughtUp{CaughtUp: &pb.CaughtUp{}}}
	case r.Report != nil:
		return &pb.SubscribeResponse{Part: &pb.SubscribeResponse_Report{Report: r.Report}}
	case r.Ended != nil:
		return &pb.SubscribeResponse{Part: &pb.SubscribeResponse_Ended{Ended: r.Ended}}
	}
	return &pb.SubscribeResponse{}
}

func plainResponse(g *pb.SubscribeResponse) *SubscribeResponse {
	r := &SubscribeResponse{Started: g.GetStarted(), Void: g.GetVoid(), Sought: g.GetSought(), CaughtUp: g.GetCaughtUp() != nil,
		Report: g.GetReport(), Ended: g.GetEnded()}
	if ds := g.GetDeliveries(); ds != nil {
		r.Deliveries = &Deliveries{}
		for _, d := range ds.Items {
			r.Deliveries.Items = append(r.Deliveries.Items, Delivery{ID: d.Id,
				Message: core.Message{Name: d.Name, Headers: plainHeaders(d.Headers), Payload: d.Payload},
				Attempt: d.Attempt, Profile: d.Profile, Scope: d.Scope, Identity: d.Identity, Position: d.Position,
				Carry: d.Carry, PublishedAt: d.PublishedAt, Undecodable: plainFault(d.Undecodable)})
		}
	}
	for _, x := range g.GetSettled().GetResults() {
		r.Settled = append(r.Settled, SettleResult{First: x.First, Count: x.Count,
			Status: SettleStatus(known(int32(x.Status), int32(SettleFailed))), Fault: plainFault(x.Fault)})
	}
	return r
}

func genPublish(items []Outgoing) *pb.PublishRequest {
	g := &pb.PublishRequest{}
	for _, o := range items {
		g.Items = append(g.Items, &pb.Outgoing{Id: o.ID, Name: o.Message.Name, Headers: genHeaders(o.Message.Headers),
			Payload: o.Message.Payload, Purpose: pb.Purpose(o.Purpose), Carry: o.Carry, DeliverAfter: int64(o.DeliverAfter),
			DedupId: o.DedupID, Options: o.Options})
	}
	return g
}

func plainPublish(g *pb.PublishRequest) (items []Outgoing) {
	for _, o := range g.Items {
		items = append(items, Outgoing{ID: o.Id,
			Message: core.Message{Name: o.Name, Headers: plainHeaders(o.Headers), Payload: o.Payload},
			Purpose: known(int32(o.Purpose), int32(pb.Purpose_PURPOSE_REPLY)), Carry: o.Carry,
			DeliverAfter: time.Duration(o.DeliverAfter), DedupID: o.DedupId, Options: o.Options})
	}
	return items
}

func genReceipts(rs []Receipt) *pb.PublishResponse {
	g := &pb.PublishResponse{}
	for _, r := range rs {
		g.Receipts = append(g.Receipts, &pb.Receipt{Id: r.ID, Status: pb.ReceiptStatus(r.Status), Fault: genFault(r.Fault),
			Unrouted: r.Unrouted, Position: r.Position})
	}
	return g
}

func plainReceipts(g *pb.PublishResponse) (rs []Receipt) {
	for _, r := range g.Receipts {
		rs = append(rs, Receipt{ID: r.Id, Status: ReceiptStatus(known(int32(r.Status), int32(ReceiptUnknown))),
			Fault: plainFault(r.Fault), Unrouted: r.Unrouted, Position: r.Position})
	}
	return rs
}

// slabOf copies b into a buffer of the pool.
func slabOf(b []byte) *[]byte {
	slab := Pool{}.Get(len(b))
	copy(*slab, b)
	return slab
}

// diff compares frames: what holds memory is left out, and nil is empty.
func diff(want, got any) string {
	return cmp.Diff(want, got,
		cmpopts.IgnoreUnexported(Deliveries{}, Publishes{}),
		cmpopts.EquateEmpty(),
		cmp.Comparer(func(a, b proto.Message) bool { return sameProto(a, b) }))
}

// sameProto compares messages but for unknown fields, which the codec drops.
func sameProto(a, b proto.Message) bool {
	if a == nil || b == nil {
		return a == b
	}
	if !a.ProtoReflect().IsValid() || !b.ProtoReflect().IsValid() {
		return a.ProtoReflect().IsValid() == b.ProtoReflect().IsValid()
	}
	return proto.Equal(withoutUnknown(a), withoutUnknown(b))
}

func withoutUnknown(m proto.Message) proto.Message {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	c := m.ProtoReflect().New().Interface()
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, c); err != nil {
		panic(err)
	}
	return c
}
