// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"slices"

	"github.com/longshore-go/longshore/core"
)

// Explain says for each subscription what every outcome leads to and what a
// crash after each step would lose. It starts the plugins and ends them again,
// and connects nothing. A table's Findings are the warnings (L-CHECK) about its
// subscription. What is wrong is a [*StartError], as with Run. It may be
// called before Run, and more than once.
func (h *Host) Explain(ctx context.Context) ([]core.Table, error) {
	h.made("Explain")
	r := newRun(h)
	defer r.finish()
	defer r.discard()
	ctx, cancel := h.untilAbort(ctx)
	defer cancel()
	found := r.prepare(ctx)
	if refused := refusals(found); ctx.Err() != nil || len(refused) > 0 {
		return nil, startError(ctx, refused)
	}
	tables := make([]core.Table, 0, len(r.subs))
	for _, s := range r.subs {
		t := core.Explain(s.policy, s.profiles, s.retry, s.dead, s.declared)
		t.Endpoint, t.Subscription = s.on.endpoint.name, s.sub.name
		t.Findings = s.warnings(found, t.Findings)
		tables = append(tables, t)
	}
	return tables, nil
}

// warnings appends to told what was found about the subscription beside it.
func (s *subscribed) warnings(found []Finding, told []core.Finding) []core.Finding {
	for _, f := range found {
		w := core.Finding{Warning: f.Warning, Option: f.Option, Message: f.Message, Fix: f.Fix}
		if f.Endpoint == s.on.endpoint.name && f.Subscription == s.sub.name && !slices.Contains(told, w) {
			told = append(told, w)
		}
	}
	return told
}
