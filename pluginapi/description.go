// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"fmt"
	"log/slog"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// description is what a transport says of itself, found valid.
type description struct {
	spec Spec
}

// describe asks a transport for its Spec and checks it.
func describe(log *slog.Logger, t Transport) (*description, error) {
	var spec Spec
	if f := contain(log, "Describe", func() { spec = t.Describe() }); f != nil {
		return nil, f
	}
	if spec.Name == "" {
		return nil, breach("Describe", "name", "is empty", "give the transport's name, as in longshore-transport-<name>")
	}
	where := "Describe of transport " + spec.Name
	if f := crowd(where, "ceilings", len(spec.Ceilings)); f != nil {
		return nil, f
	}
	for i, c := range spec.Ceilings {
		if f := contradiction(where, fmt.Sprintf("ceilings[%d]", i), c); f != nil {
			return nil, f
		}
	}
	if path, what := badPublishing(spec.Publishing); path != "" {
		return nil, breach(where, "publishing."+path, what, "give 0 where there is no limit")
	}
	return &description{spec: spec}, nil
}

// message returns the answer to Describe.
func (d *description) message() *transportpb.DescribeResponse {
	m := &transportpb.DescribeResponse{
		Name:               d.spec.Name,
		Version:            d.spec.Version,
		WantsStdio:         d.spec.WantsStdio,
		SettingsSchema:     d.spec.Settings.json,
		SubscriptionSchema: d.spec.Subscription.json,
		PublishSchema:      d.spec.Publish.json,
		Ceilings:           convert.FromProfiles(d.spec.Ceilings),
		Publishing:         convert.FromPublishing(d.spec.Publishing),
		Requests:           d.spec.Requests,
		Seeks:              d.spec.Seeks,
		LinkStates:         d.spec.LinkStates,
	}
	if d.spec.NeverRestart {
		m.Restart = transportpb.RestartMode_RESTART_MODE_NEVER
	}
	return m
}

// powers checks that a connection has the powers that the Spec announces.
func (d *description) powers(conn Conn) *core.Fault {
	if _, ok := conn.(Requester); d.spec.Requests && !ok {
		return breach("Connect", "requests", "is announced and the Conn is no Requester",
			"implement Request or leave Spec.Requests false")
	}
	if _, ok := conn.(LinkReporter); d.spec.LinkStates && !ok {
		return breach("Connect", "link_states", "is announced and the Conn is no LinkReporter",
			"implement ReportLink or leave Spec.LinkStates false")
	}
	return nil
}

// badPublishing names the field of p that cannot be, "" when all can.
func badPublishing(p core.Publishing) (path, what string) {
	switch {
	case p.MaxDelay < 0:
		return "max_delay", "is negative"
	case p.MaxBytes < 0:
		return "max_bytes", "is negative"
	case p.MaxHeaders < 0:
		return "max_headers", "is negative"
	}
	return "", ""
}
