// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// FromMessage returns the message for m. They share their bytes.
func FromMessage(m core.Message) *transportpb.Message {
	return &transportpb.Message{Name: Text(m.Name), Headers: FromHeaders(m.Headers), Payload: m.Payload}
}

// ToMessage returns what p says. They share their bytes.
func ToMessage(p *transportpb.Message) core.Message {
	return core.Message{Name: p.GetName(), Headers: ToHeaders(p.GetHeaders()), Payload: p.GetPayload()}
}

// FromHeaders returns the messages for hs, index by index.
func FromHeaders(hs core.Headers) []*transportpb.Header {
	if len(hs) == 0 {
		return nil
	}
	ps := make([]*transportpb.Header, len(hs))
	for i, h := range hs {
		ps[i] = &transportpb.Header{Name: Text(h.Name), Value: h.Value}
	}
	return ps
}

// ToHeaders returns what ps say, index by index.
func ToHeaders(ps []*transportpb.Header) core.Headers {
	if len(ps) == 0 {
		return nil
	}
	hs := make(core.Headers, len(ps))
	for i, p := range ps {
		hs[i] = core.Header{Name: p.GetName(), Value: p.GetValue()}
	}
	return hs
}
