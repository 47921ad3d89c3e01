// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// Settle carries out acks. Each is answered at once, by DONE where the delivery
// is there: its answer leaves with this call, or, while there is no link, once
// the server sends the packet again; behind a session that is gone there is
// nothing left to answer. What comes again is STALE.
//
// Acks leave in the order of the verdicts, not in that of the packets as the
// standard asks for [MQTT-4.6.0-2]: one delivery that is not settled would keep
// all others from being answered. Servers take them in any order.
func (rc *Receiver) Settle(_ context.Context, vs []pluginapi.Verdict) []pluginapi.Result {
	in := rc.in
	rc.results = rc.results[:0]
	in.mu.Lock()
	rc.retire()
	for i := range vs {
		rc.results = append(rc.results, pluginapi.Result{Status: rc.carryOut(&vs[i])})
	}
	l := in.live
	in.mu.Unlock()
	rc.answers.write(in, l)
	return rc.results
}

// carryOut carries out one verdict. in.mu is held.
func (rc *Receiver) carryOut(v *pluginapi.Verdict) pluginapi.ResultStatus {
	h, ok := v.Handle.(*handle)
	switch {
	case !ok || v.Kind != core.VerdictAck:
		return pluginapi.ResultUnsupported
	case h.receiver != rc:
		return pluginapi.ResultStale
	case h.fate == fateHanded:
		rc.in.settle(h, &rc.answers)
		rc.retired = append(rc.retired, h)
		return pluginapi.ResultDone
	case h.fate == fateGone:
		// Its void is on the way. The host would take STALE for "it comes again", and
		// leave out what is to follow its ack.
		return pluginapi.ResultDone
	default:
		return pluginapi.ResultStale
	}
}

// Release lets deliveries go: they are not answered, and no verdict follows.
func (rc *Receiver) Release(handles []any) {
	in := rc.in
	in.mu.Lock()
	defer in.mu.Unlock()
	rc.retire()
	for _, x := range handles {
		if h, ok := x.(*handle); ok && h.receiver == rc && h.fate == fateHanded {
			h.letGo()
			rc.retired = append(rc.retired, h)
		}
	}
}

// retire takes back the handles that were settled by the call before: only now
// the host does not know them any more, in whose ledger they stand until it has
// the answer. Those of voids are left to the garbage collector. in.mu is held.
func (rc *Receiver) retire() {
	for i, h := range rc.retired {
		rc.in.reuse(h)
		rc.retired[i] = nil
	}
	rc.retired = rc.retired[:0]
}
