// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/transportpb"
)

func TestRequest(t *testing.T) {
	tr := newQueueTransport(everything())
	tr.spec.Requests = true
	b := serve(t, tr).connect()
	ask := func(name string) (*transportpb.RequestResponse, error) {
		return b.link.Request(b.ctx, &transportpb.RequestRequest{Outgoing: &transportpb.Outgoing{Name: name, Payload: []byte("x")}})
	}
	r, err := ask("somebody")
	if err != nil || string(r.GetReply().GetPayload()) != "x" {
		t.Errorf("reply %v, %v", r, err)
	}
	if _, err = ask("nobody"); err == nil || faultOf("", err).Code != core.FaultNotFound {
		t.Errorf("request to nobody: %v", err)
	}
	if _, err = ask("large"); err == nil || faultOf("", err).Code != core.FaultExhausted { // too large says that nothing was sent
		t.Errorf("a reply beyond the limit: %v", err)
	}
	tr = newQueueTransport(everything())
	b = serve(t, tr).connect()
	if _, err = ask("somebody"); err == nil || faultOf("", err).Code != core.FaultUnsupported {
		t.Errorf("request without requests: %v", err)
	}
}
