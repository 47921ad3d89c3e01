// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strings"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host/internal/settlement"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// What publishes are for, as the engine numbers it.
const (
	purposeApplication = uint8(transportpb.Purpose_PURPOSE_APPLICATION)
	purposeReply       = uint8(transportpb.Purpose_PURPOSE_REPLY)
)

// forward is the publish of the rule Forward.
func (c *calls) forward(e *envelope) settlement.Publish {
	to := c.rules.forward
	if to.Endpoint == "" {
		to.Endpoint = c.from.endpoint.name
	}
	out := core.Message{Name: to.Name, Headers: forwarded(e.headers()), Payload: e.payload()}
	if e.forwards {
		out.Payload = e.replaced
	}
	return settlement.Publish{To: to, Message: out, Purpose: purposeApplication}
}

// The headers of the runtime's own, which a forwarded message leaves behind.
const (
	headerCount     = "x-ruststream-retry-count"
	prefixLongshore = "x-longshore-"
)

// forwarded returns hs without the runtime's own headers. Without any of those
// it is hs itself.
func forwarded(hs core.Headers) core.Headers {
	for i, h := range hs {
		if !ownHeader(h.Name) {
			continue
		}
		kept := append(make(core.Headers, 0, len(hs)-1), hs[:i]...)
		for _, h := range hs[i+1:] {
			if !ownHeader(h.Name) {
				kept = append(kept, h)
			}
		}
		return kept
	}
	return hs
}

// ownHeader reports whether a header is the runtime's own.
func ownHeader(name string) bool {
	return strings.EqualFold(name, headerCount) ||
		len(name) >= len(prefixLongshore) && strings.EqualFold(name[:len(prefixLongshore)], prefixLongshore)
}
