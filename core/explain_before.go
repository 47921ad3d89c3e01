// SPDX-License-Identifier: Apache-2.0

package core

import "slices"

// leaving is a publish that an ack waits for.
type leaving struct {
	name   string
	to     *Route
	failed string // what follows when it is not confirmed
}

// leavings are the publishes that an ack waits for, in their order.
func (x *explainer) leavings() []leaving {
	var out []leaving
	if to := &x.d.Forward; to.State == RouteOpen {
		out = append(out, leaving{"FORWARD(" + routeName(to, "") + ")", to, "as an error"})
	}
	if to := &x.d.Reply; to.State == RouteOpen {
		out = append(out, leaving{"REPLY(" + routeName(to, "reply-to") + ")", to, "WARN(L-REPLY), then as a retry"})
	}
	for i := range x.d.Publishes {
		to := &x.d.Publishes[i]
		out = append(out, leaving{"SEND(" + routeName(to, "") + ")", to, "as an error"})
	}
	if len(out) > 1 {
		for i := range out {
			out[i].failed += "; what else was confirmed stays sent"
		}
	}
	return out
}

// before makes the row of an ack one of a message whose handler publishes first:
// until the receipts are there the message itself is what must go on, as a
// copy's is. What becomes of each publish is told together.
func (x *explainer) before(r *Row, path Path, c Case, names Names) {
	out := x.leavings()
	if len(out) == 0 {
		return
	}
	whole := make(Path, 0, len(out)+len(path))
	plan := ""
	var failures []RowFailure
	for _, l := range out {
		whole = append(whole, Done{Step: Step{Do: ActPublish, To: TargetRetry}})
		plan += l.name + "; "
		failures = append(failures, RowFailure{If: l.name + "=FAILED", Then: l.failed})
	}
	whole = append(whole, path...)
	r.Plan = plan + r.Plan
	r.Failures = append(failures, r.Failures...)
	r.Ends, r.Steps = 0, nil
	for i, l := range out {
		c.Retry = *l.to
		r.Ends |= Fate(whole, len(whole), PartyNobody, &c)
		r.Steps = together(r.Steps, steps(whole, &c, names), i)
	}
	for i, l := range out {
		r.Steps[i+1].Step = l.name
	}
}

// together joins the deaths that the n-th publish adds to those of the publishes
// before it. It is not under way before the n-th step.
func together(all, more []RowStep, n int) []RowStep {
	if all == nil {
		return more
	}
	all = slices.Clone(all)
	for i := range all {
		if i <= n {
			continue
		}
		a, b := &all[i], &more[i]
		a.Host |= b.Host
		a.SourcePlugin |= b.SourcePlugin
		a.SourceBroker |= b.SourceBroker
		a.TargetPlugin |= b.TargetPlugin
		a.TargetBroker |= b.TargetBroker
	}
	return all
}
