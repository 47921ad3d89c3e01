// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"fmt"
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory"
)

// Verdict is what the host told the broker about one delivery.
type Verdict struct {
	ID      uint64 // the message's, as Deliver returned it; a copy has one of its own
	Kind    core.VerdictKind
	Delay   time.Duration // of a requeue
	Attempt int           // deliveries of the message, this one included
	Reason  string        // of a reject
	Failed  bool          // the broker did not carry it out
	At      time.Time
	Message Message
}

// String returns id and verdict, "2 requeue after 5s". Attempts from the second
// on are named.
func (v Verdict) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", v.ID, verdictName(v.Kind))
	if v.Delay > 0 {
		fmt.Fprintf(&b, " after %v", v.Delay)
	}
	if v.Attempt > 1 {
		fmt.Fprintf(&b, ", attempt %d", v.Attempt)
	}
	if v.Failed {
		b.WriteString(", failed")
	}
	return b.String()
}

func verdictName(k core.VerdictKind) string {
	switch k {
	case core.VerdictAck:
		return "ack"
	case core.VerdictRequeue:
		return "requeue"
	case core.VerdictReject:
		return "reject"
	case core.VerdictRelease:
		return "release"
	default:
		return fmt.Sprintf("verdict %d", k)
	}
}

// Verdicts returns what the host said about a subscription's deliveries so far,
// in order; the prolonging of leases is left out. A release tells the broker
// nothing: the host has no verdict, and what becomes of the delivery is up to
// its source.
func (b *Broker) Verdicts(subscription string) []Verdict {
	return verdicts(b.queues.Verdicts(subscription))
}

func verdicts(in []memory.Verdict) []Verdict {
	vs := make([]Verdict, len(in))
	for i, v := range in {
		m := fromMemory(v.Message)
		vs[i] = Verdict{
			ID: m.ID, Kind: v.Kind, Delay: v.Delay, Attempt: int(v.Attempt), Reason: v.Reason,
			Failed: v.Status != memory.SettleDone, At: v.At, Message: m,
		}
	}
	return vs
}
