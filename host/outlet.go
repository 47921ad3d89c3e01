// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// outlet is a destination of publishers in one run, with what it can carry.
type outlet struct {
	on     *attached
	to     core.Destination
	caps   core.Publishing
	shares bool // its transport runs in this process, and reads what it was given until the receipt
}

func newOutlet(a *attached, to core.Destination, caps core.Publishing) *outlet {
	return &outlet{on: a, to: to, caps: caps, shares: a.endpoint.plugin.InProcess != nil}
}

// openOutlets lets publishers publish.
func (r *run) openOutlets() {
	for _, p := range r.host.publishers {
		t := r.target(p.to, transportpb.Purpose_PURPOSE_APPLICATION)
		p.outlet.Store(newOutlet(r.byName[p.to.Endpoint], p.to, convert.ToPublishing(t.GetPublishing())))
	}
}

// closeOutlets ends that.
func (r *run) closeOutlets() {
	for _, p := range r.host.publishers {
		p.outlet.Store(nil)
	}
}

// refuses says why the destination or its transport would not take a message,
// nil where nothing is known against it. What is text and what a name may be is
// left to the transport.
func (o *outlet) refuses(out *frame.Outgoing) *core.Fault {
	headers := out.Message.Headers
	switch size := int64(frame.Weight(&out.Message)); {
	case out.DeliverAfter < 0, out.DeliverAfter > 0 && out.DeliverAfter >= o.caps.MaxDelay:
		return o.refusesDelay(out)
	case o.caps.MaxBytes > 0 && size > o.caps.MaxBytes:
		return refused(core.FaultTooLarge, "%d bytes of payload and headers are over the destination's limit of %d; send less, or a reference to the data", size, o.caps.MaxBytes)
	case len(headers) == 0:
	case o.caps.Headers == core.HeadersNone:
		return refused(core.FaultUnsupported, "the destination carries no headers; leave %s out", headers[0].Name)
	case o.caps.MaxHeaders > 0 && len(headers) > o.caps.MaxHeaders:
		return refused(core.FaultTooLarge, "%d headers are over the destination's limit of %d; send fewer", len(headers), o.caps.MaxHeaders)
	}
	if f := o.refusesHeaders(headers); f != nil {
		return f
	}
	if len(out.Options) > 0 {
		return o.on.refusesOptions(out.Options)
	}
	return nil
}

func (o *outlet) refusesDelay(out *frame.Outgoing) *core.Fault {
	switch {
	case out.DeliverAfter < 0:
		return refused(core.FaultInvalid, "%v is no delay; use 0 for none, or more", out.DeliverAfter)
	case o.caps.MaxDelay == 0:
		return refused(core.FaultUnsupported, "it cannot delay; leave WithDelay out")
	default:
		return refused(core.FaultUnsupported, "a delay of %v is not below the destination's limit of %v; ask for less", out.DeliverAfter, o.caps.MaxDelay)
	}
}

// refusesHeaders looks for a header that the destination cannot carry.
func (o *outlet) refusesHeaders(hs core.Headers) *core.Fault {
	for i, h := range hs {
		if o.caps.Headers == core.HeadersNativeText && !utf8.Valid(h.Value) {
			return refused(core.FaultInvalid, "the value of header %s is not UTF-8, which the destination's headers are; encode it", h.Name)
		}
		if o.caps.Repeats {
			continue
		}
		for _, former := range hs[:i] {
			if strings.EqualFold(former.Name, h.Name) {
				return refused(core.FaultInvalid, "header %s is there several times, which the destination cannot carry; send one", h.Name)
			}
		}
	}
	return nil
}

// refusesOptions checks options of a message by the transport's schema.
func (a *attached) refusesOptions(options []byte) *core.Fault {
	if a.goodOptions.Has(options) {
		return nil
	}
	wrong, err := a.publishSchema.Check(options)
	if err != nil {
		return refused(core.FaultInvalid, "options: %v", err)
	}
	if len(wrong) == 0 {
		a.goodOptions.Add(options)
		return nil
	}
	return &core.Fault{Code: core.FaultInvalid, Message: "options", Diagnostics: wrong}
}

// refused is what the host refuses a publish with.
func refused(code core.FaultCode, format string, args ...any) *core.Fault {
	return &core.Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}
