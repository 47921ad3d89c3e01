// SPDX-License-Identifier: Apache-2.0

package liar

import (
	"time"

	pb "github.com/longshore-go/longshore/internal/transportpb"
)

func holdLies() []Lie {
	lies := []Lie{
		{Name: "extend-ignored", Wrong: "answers DONE to EXTEND, and the hold ends all the same", Cases: []string{"settle/extend"},
			tell: func(c *Conduct) { c.IgnoresExtend = true }},
		{Name: "any-hold", Wrong: "takes a hold beyond max_hold", Cases: []string{"honesty/max-hold"},
			tell: func(c *Conduct) { c.AnyHold = true }},
		{Name: "short-hold", Wrong: "ends a hold after half of max_hold", Cases: []string{"unsettled/after-timeout"},
			tell: func(c *Conduct) { c.Holds = 700 * time.Millisecond }},
		{Name: "endless-hold", Wrong: "ends no hold", Cases: []string{"unsettled/after-timeout"},
			tell: func(c *Conduct) { c.Holds = -1 }},
		{Name: "silent-timeout", Wrong: "does not say that a delivery is void whose hold has ended", Cases: []string{"unsettled/after-timeout"},
			tell: func(c *Conduct) { c.Void = func(*pb.Void) *pb.Void { return nil } }},
		{Name: "lazy-requeue", Wrong: "leaves what is handed back to the end of its hold", Cases: []string{"settle/requeue"},
			tell: func(c *Conduct) { c.LazyRequeue = true }},
	}
	for i := range lies {
		lies[i].Hold = true
	}
	return lies
}
