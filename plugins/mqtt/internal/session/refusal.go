// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/client"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/topic"
)

// ownConnection is what helps where two filters cannot be on one connection.
const ownConnection = "give one of them a connection of its own with the option connection"

// refusals are the reasons of a SUBACK that say more than their words (3.9.3): what
// class they are of, whether they may pass, and what to do.
var refusals = map[byte]struct {
	code    core.FaultCode
	passing bool
	fix     string
}{
	packet.CodeError:                  {core.FaultUnavailable, true, "look into the server's log"},
	packet.CodeImplementation:         {core.FaultUnavailable, true, "look into the server's log"},
	packet.CodeNotAuthorized:          {core.FaultDenied, false, "allow the user or the client id to subscribe to it"},
	packet.CodeFilterInvalid:          {core.FaultInvalid, false, "use a filter that the server takes"},
	packet.CodeIDInUse:                {core.FaultConflict, true, "give each connection a client id of its own"},
	packet.CodeQuota:                  {core.FaultExhausted, true, "raise the server's quota, or subscribe to less"},
	packet.CodeSharedUnsupported:      {core.FaultUnsupported, false, "leave the option group out, or use a server with shared subscriptions"},
	packet.CodeIdentifiersUnsupported: {core.FaultUnsupported, false, "use a server with subscription identifiers"},
	packet.CodeWildcardsUnsupported:   {core.FaultUnsupported, false, "subscribe to topics, or use a server that takes wildcards"},
}

// refusal is the fault of a filter that the server has refused.
func refusal(f *Filter, code byte, reason string) *core.Fault {
	fault := &core.Fault{Code: core.FaultInternal}
	if r, ok := refusals[code]; ok {
		fault.Code, fault.Transient, fault.Diagnostics = r.code, r.passing, []core.Diagnostic{{Fix: r.fix}}
	}
	fault.Message = fmt.Sprintf("subscribe to %q: the server refuses it: %s", f.Wire(), packet.Word(packet.TypeSuback, code))
	if reason != "" {
		fault.Message += fmt.Sprintf(", %.200q", reason)
	}
	return fault
}

// unable is the fault of a filter that a server says it cannot serve, nil = it can
// (3.2.2.3.11, 3.2.2.3.13).
func unable(f *Filter, s *client.Limits) *core.Fault {
	switch {
	case f.Group != "" && !s.Shared:
		return refusal(f, packet.CodeSharedUnsupported, "")
	case topic.HasWildcard(f.Name) && !s.Wildcards:
		return refusal(f, packet.CodeWildcardsUnsupported, "")
	}
	return nil
}

// confused is the fault of two filters that a message can match both of, where the
// server does not say for which of them it sends one.
func confused(f, o *Filter) *core.Fault {
	return &core.Fault{
		Code: core.FaultUnsupported,
		Message: fmt.Sprintf("subscribe to %q: it overlaps with %q on the same connection, and the server offers no subscription identifiers to tell their messages apart",
			f.Wire(), o.Wire()),
		Diagnostics: []core.Diagnostic{{Fix: ownConnection}},
	}
}
