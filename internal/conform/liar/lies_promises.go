// SPDX-License-Identifier: Apache-2.0

package liar

import (
	"time"

	pb "github.com/longshore-go/longshore/internal/transportpb"
)

// promised makes a lie of what is promised of deliveries, in Inspect and in
// Started alike.
func promised(change func(p *pb.Capabilities)) func(c *Conduct) {
	return func(c *Conduct) {
		c.Inspect = func(r *pb.InspectResponse) {
			for _, g := range r.GetRegistrations() {
				for _, p := range g.GetProfiles() {
					change(p)
				}
			}
		}
		c.Started = func(s *pb.Started) {
			for _, p := range s.GetProfiles() {
				change(p)
			}
		}
	}
}

// promiseLies do what they do not promise, or promise what cannot be.
func promiseLies() []Lie {
	return []Lie{
		{Name: "hides-ack", Wrong: "acks though it says that nothing can be acked", Cases: []string{"honesty/ack"},
			tell: promised(func(p *pb.Capabilities) {
				address, order := p.GetAddress(), p.GetOrder()
				p.Reset()
				p.Address, p.Order = address, order
			})},
		{Name: "hides-requeue", Wrong: "hands back though it says that it cannot", Cases: []string{"honesty/requeue"},
			tell: promised(func(p *pb.Capabilities) { p.Requeue, p.MaxDelay = pb.RequeueMode_REQUEUE_MODE_UNSPECIFIED, 0 })},
		{Name: "hides-delay", Wrong: "delays though it says that it hands back at once only", Cases: []string{"honesty/delay"},
			tell: promised(func(p *pb.Capabilities) { p.Requeue, p.MaxDelay = pb.RequeueMode_REQUEUE_MODE_NOW, 0 })},
		{Name: "hides-limit", Wrong: "delays for longer than it says", Cases: []string{"honesty/max-delay"},
			tell: promised(func(p *pb.Capabilities) { p.MaxDelay /= 2 })},
		{Name: "hides-reject", Wrong: "rejects though it says that it cannot", Cases: []string{"honesty/reject"},
			tell: promised(func(p *pb.Capabilities) { p.Reject = pb.RejectMode_REJECT_MODE_UNSPECIFIED })},
		{Name: "hides-deliver-after", Wrong: "delays publishes though it says that it cannot", Cases: []string{"honesty/deliver-after"},
			tell: func(c *Conduct) {
				c.Inspect = func(r *pb.InspectResponse) {
					for _, d := range r.GetDestinations() {
						d.GetPublishing().MaxDelay = 0
					}
				}
			}},
		{Name: "says-lost", Wrong: "says that what is unsettled is lost, and it comes again", Cases: []string{"unsettled/after-close"},
			tell: promised(func(p *pb.Capabilities) { p.Unsettled = pb.Unsettled_UNSETTLED_UNSPECIFIED })},
		{Name: "steals", Wrong: "delivers what another living process has unsettled", Cases: []string{"unsettled/living"},
			tell: func(c *Conduct) { c.Shares = true }},
		{Name: "beyond-ceilings", Wrong: "promises more in Inspect than in Describe", Cases: []string{"inspect/ceilings"},
			tell: promised(func(p *pb.Capabilities) { p.MaxDelay = int64(1000 * time.Hour) })},
		{Name: "contradicts-itself", Wrong: "counts, by its ceilings, what cannot be acked", Cases: []string{"describe/valid"},
			tell: func(c *Conduct) {
				c.Describe = func(r *pb.DescribeResponse, _ int) {
					r.Ceilings = append(r.Ceilings, &pb.Capabilities{Counts: pb.CountMode_COUNT_MODE_NATIVE})
				}
			}},
		{Name: "misnames-fields", Wrong: "names the fields of wrong settings by paths that there are not", Cases: []string{"settings/missing", "settings/unknown-field"},
			tell: func(c *Conduct) {
				c.Diagnostics = func(ds []*pb.Diagnostic) []*pb.Diagnostic {
					for _, d := range ds {
						d.Path = "settings." + d.GetPath()
					}
					return ds
				}
			}},
		{Name: "takes-options", Wrong: "finds nothing wrong with options that there are not", Cases: []string{"settings/options"},
			tell: func(c *Conduct) {
				c.Inspect = func(r *pb.InspectResponse) {
					for _, g := range r.GetRegistrations() {
						g.Findings = nil
					}
					for _, d := range r.GetDestinations() {
						d.Findings = nil
					}
				}
			}},
	}
}
