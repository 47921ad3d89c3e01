// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	pb "github.com/longshore-go/longshore/internal/transportpb"
)

const (
	// maxDelay is the limit of delays, of requeues as of publishes.
	maxDelay = time.Hour
	// maxBytes and maxHeaders are the largest message that is taken.
	maxBytes   = 8 << 20
	maxHeaders = 64
)

// capabilities of the deliveries of a queue. address is its name; ceilings have
// any, to say that there is one.
func capabilities(address string, hold time.Duration, rewinds bool) []*pb.Capabilities {
	return []*pb.Capabilities{{
		MaxHold:   int64(hold),
		Extend:    hold > 0,
		Ack:       pb.AckMode_ACK_MODE_SINGLE,
		Requeue:   pb.RequeueMode_REQUEUE_MODE_DELAYED,
		MaxDelay:  int64(maxDelay),
		Reject:    pb.RejectMode_REJECT_MODE_DROPS,
		Counts:    pb.CountMode_COUNT_MODE_NATIVE,
		Address:   address,
		Unsettled: pb.Unsettled_UNSETTLED_ON_DISCONNECT,
		Durable:   true,
		Order:     pb.OrderMode_ORDER_MODE_TOTAL,
		Rewinds:   rewinds,
	}}
}

func publishing() *pb.Publishing {
	return &pb.Publishing{
		Confirms:   pb.Confirm_CONFIRM_STORED,
		Retains:    pb.Retention_RETENTION_TRANSPORT,
		MaxDelay:   int64(maxDelay),
		Dedups:     true,
		Headers:    pb.HeaderMode_HEADER_MODE_NATIVE_BYTES,
		Repeats:    true,
		MaxBytes:   maxBytes,
		MaxHeaders: maxHeaders,
	}
}

func (p *plugin) describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	conduct := p.conduct.Load()
	time.Sleep(conduct.DescribeTakes)
	p.mu.Lock()
	p.described++
	calls := p.described
	p.mu.Unlock()
	r := &pb.DescribeResponse{
		Name:               "liar",
		Version:            "1.0.0",
		SettingsSchema:     []byte(settingsSchema),
		SubscriptionSchema: []byte(noOptions),
		PublishSchema:      []byte(noOptions),
		Ceilings:           append(capabilities("a queue's name", 0, true), capabilities("a queue's name", longestHold, true)...),
		Publishing:         publishing(),
		LinkStates:         true,
	}
	if conduct.Describe != nil {
		conduct.Describe(r, calls)
	}
	return r, nil
}

func (p *plugin) inspect(_ context.Context, r *pb.InspectRequest) (*pb.InspectResponse, error) {
	if err := p.require("inspect", isConfigured); err != nil {
		return nil, err
	}
	if p.conduct.Load().InspectIO {
		openEarly(p.settings.dir)
	}
	out := &pb.InspectResponse{}
	readers := map[string][]uint32{}
	for _, g := range r.GetRegistrations() {
		readers[g.GetName()] = append(readers[g.GetName()], g.GetId())
	}
	for _, g := range r.GetRegistrations() {
		out.Registrations = append(out.Registrations, &pb.RegistrationReport{
			Profiles: capabilities(g.GetName(), p.hold(), p.rewinds()),
			Shares:   others(readers[g.GetName()], g.GetId()),
			Findings: findings("a subscription", g.GetName(), g.GetOptions()),
		})
	}
	for _, d := range r.GetDestinations() {
		out.Destinations = append(out.Destinations, &pb.TargetReport{
			Publishing: publishing(),
			ReturnsTo:  readers[d.GetName()],
			Exactly:    readers[d.GetName()],
			Findings:   findings("a destination", d.GetName(), d.GetOptions()),
		})
	}
	if f := p.conduct.Load().Inspect; f != nil {
		f(out)
	}
	return out, nil
}

// findings says what is wrong with a name and its options.
func findings(what, name string, options []byte) []*pb.Finding {
	var all []*pb.Finding
	if name == "" {
		all = append(all, &pb.Finding{Message: fmt.Sprintf("the name of %s is empty", what), Fix: "name the queue"})
	}
	for _, d := range readOptions(options) {
		all = append(all, &pb.Finding{Option: d.GetPath(), Message: d.GetMessage(), Fix: d.GetFix()})
	}
	return all
}

// others are the registrations of a queue without this one.
func others(ids []uint32, id uint32) []uint32 {
	return slices.DeleteFunc(slices.Clone(ids), func(other uint32) bool { return other == id })
}
