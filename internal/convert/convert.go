// SPDX-License-Identifier: Apache-2.0

// Package convert translates between core's values and the generated messages
// of the contract. Enum values that this version does not know become the zero
// value, which is the weakest.
package convert

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// known returns v, or 0 where it lies outside 0..last.
func known[To ~uint8, From ~int32](v From, last To) To {
	if v < 0 || int64(v) > int64(last) {
		return 0
	}
	return To(v)
}

// Text makes any text fit a string of the protocol, which is UTF-8.
func Text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// What an endpoint may say of where it listens (docs/protocol.md): it is shown to
// people, and kept while the endpoint is up.
const (
	maxAddresses = 64
	maxAddress   = 1024 // bytes
)

// Addresses returns those of all that an endpoint may listen at, in order, and
// how many are left out: what is over the limits, empty, or no printable text.
func Addresses(all []string) (kept []string, left int) {
	for _, a := range all {
		if len(kept) == maxAddresses || a == "" || len(a) > maxAddress || !utf8.ValidString(a) ||
			strings.ContainsFunc(a, func(r rune) bool { return !unicode.IsPrint(r) }) {
			left++
			continue
		}
		kept = append(kept, a)
	}
	return kept, left
}

// FromCapabilities returns the message for c.
func FromCapabilities(c core.Capabilities) *transportpb.Capabilities {
	return &transportpb.Capabilities{
		Ack:       transportpb.AckMode(c.Ack),
		Requeue:   transportpb.RequeueMode(c.Requeue),
		MaxDelay:  int64(c.MaxDelay),
		MaxHold:   int64(c.MaxHold),
		Extend:    c.Extend,
		Reject:    transportpb.RejectMode(c.Reject),
		Counts:    transportpb.CountMode(c.Counts),
		Recounts:  c.Recounts,
		Address:   Text(c.Address),
		Unsettled: transportpb.Unsettled(c.Unsettled),
		Durable:   c.Durable,
		Order:     transportpb.OrderMode(c.Order),
		Rewinds:   c.Rewinds,
	}
}

// ToCapabilities returns what p says; nil is the zero value.
func ToCapabilities(p *transportpb.Capabilities) core.Capabilities {
	return core.Capabilities{
		Ack:       known(p.GetAck(), core.AckCumulative),
		Requeue:   known(p.GetRequeue(), core.RequeueDelayed),
		MaxDelay:  time.Duration(p.GetMaxDelay()),
		MaxHold:   time.Duration(p.GetMaxHold()),
		Extend:    p.GetExtend(),
		Reject:    known(p.GetReject(), core.RejectDeadLetters),
		Counts:    known(p.GetCounts(), core.CountNative),
		Recounts:  p.GetRecounts(),
		Address:   p.GetAddress(),
		Unsettled: known(p.GetUnsettled(), core.UnsettledOnTimeout),
		Durable:   p.GetDurable(),
		Order:     known(p.GetOrder(), core.OrderTotal),
		Rewinds:   p.GetRewinds(),
	}
}

// FromProfiles returns the messages for cs, index by index.
func FromProfiles(cs []core.Capabilities) []*transportpb.Capabilities {
	if len(cs) == 0 {
		return nil
	}
	ps := make([]*transportpb.Capabilities, len(cs))
	for i, c := range cs {
		ps[i] = FromCapabilities(c)
	}
	return ps
}

// ToProfiles returns what ps say, index by index.
func ToProfiles(ps []*transportpb.Capabilities) []core.Capabilities {
	if len(ps) == 0 {
		return nil
	}
	cs := make([]core.Capabilities, len(ps))
	for i, p := range ps {
		cs[i] = ToCapabilities(p)
	}
	return cs
}

// FromPublishing returns the message for p.
func FromPublishing(p core.Publishing) *transportpb.Publishing {
	return &transportpb.Publishing{
		Confirms:   transportpb.Confirm(p.Confirms),
		Retains:    transportpb.Retention(p.Retains),
		MaxDelay:   int64(p.MaxDelay),
		Dedups:     p.Dedups,
		Headers:    transportpb.HeaderMode(p.Headers),
		MaxBytes:   p.MaxBytes,
		MaxHeaders: clampInt32(p.MaxHeaders),
		Repeats:    p.Repeats,
	}
}

// ToPublishing returns what p says; nil is the zero value.
func ToPublishing(p *transportpb.Publishing) core.Publishing {
	return core.Publishing{
		Confirms:   known(p.GetConfirms(), core.ConfirmStored),
		Retains:    known(p.GetRetains(), core.RetainTransport),
		MaxDelay:   time.Duration(p.GetMaxDelay()),
		Dedups:     p.GetDedups(),
		Headers:    known(p.GetHeaders(), core.HeadersEnveloped),
		MaxBytes:   p.GetMaxBytes(),
		MaxHeaders: int(p.GetMaxHeaders()),
		Repeats:    p.GetRepeats(),
	}
}

// clampInt32 returns n within the range of int32.
func clampInt32(n int) int32 {
	const most = 1<<31 - 1
	return int32(min(max(n, -most), most))
}

// FromFault returns the message for f; nil stays nil.
func FromFault(f *core.Fault) *transportpb.Fault {
	if f == nil {
		return nil
	}
	p := &transportpb.Fault{
		Code:       transportpb.FaultCode(f.Code),
		Message:    Text(f.Message),
		Transient:  f.Transient,
		RetryAfter: int64(f.RetryAfter),
	}
	for _, d := range f.Diagnostics {
		p.Diagnostics = append(p.Diagnostics, &transportpb.Diagnostic{
			Path: Text(d.Path), Message: Text(d.Message), Fix: Text(d.Fix),
		})
	}
	return p
}

// ToFault returns the fault that p is; nil stays nil.
func ToFault(p *transportpb.Fault) *core.Fault {
	if p == nil {
		return nil
	}
	f := &core.Fault{
		Code:       known(p.GetCode(), core.FaultInternal),
		Message:    p.GetMessage(),
		Transient:  p.GetTransient(),
		RetryAfter: time.Duration(p.GetRetryAfter()),
	}
	for _, d := range p.GetDiagnostics() {
		f.Diagnostics = append(f.Diagnostics, core.Diagnostic{
			Path: d.GetPath(), Message: d.GetMessage(), Fix: d.GetFix(),
		})
	}
	return f
}
