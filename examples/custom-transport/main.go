// SPDX-License-Identifier: Apache-2.0

// Command longshore-transport-tick delivers numbers, those to be tried again included.
package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/longshore-go/longshore/core"
	api "github.com/longshore-go/longshore/pluginapi"
)

func main() { api.Serve(new(ticks)) }

type ticks struct { // the transport, its settings, its endpoint and its connection
	Count int `json:"count" doc:"how many numbers there are" default:"3" min:"1" max:"1000"`
}

var able = []core.Capabilities{{Ack: core.AckSingle, Requeue: core.RequeueNow}} // and api.Held delays the requeue
var spec = api.Spec{Name: "tick", Version: "0.1.0", Settings: api.SchemaOf[ticks](), Ceilings: []core.Capabilities{api.HeldCapabilities(able[0])}}

func (t *ticks) Inspect(u api.Usage) (in api.Inspection) {
	no := []api.Finding{{Message: "nothing can be published here", Fix: "name another endpoint"}}
	in.Registrations = slices.Repeat([]api.RegistrationReport{{Profiles: spec.Ceilings}}, len(u.Registrations))
	in.Destinations = slices.Repeat([]api.TargetReport{{Findings: no}}, len(u.Destinations))
	return in
}

func (t *ticks) Describe() api.Spec                                              { return spec }
func (t *ticks) Configure(s api.Settings) (api.Endpoint, error)                  { return t, s.Bind(t) }
func (t *ticks) Connect(context.Context, []byte) (api.Conn, error)               { return t, nil }
func (t *ticks) Publish(context.Context, []api.Outgoing, func(int, api.Receipt)) {}
func (t *ticks) Close(context.Context) (resume []byte, err error)                { return nil, nil }

func (t *ticks) Subscribe(_ context.Context, r api.Registration) (api.Subscription, error) {
	q := &queue{name: r.Name, waiting: make(chan int, t.Count), open: t.Count}
	for n := range t.Count {
		q.waiting <- n + 1
	}
	return api.Held(q, 0), nil // makes of a requeue at once one after a delay
}

type queue struct {
	name    string
	waiting chan int
	open    int // numbers without their last verdict
}

func (q *queue) Profiles() []core.Capabilities { return able }
func (q *queue) Close(context.Context) error   { return nil }

func (q *queue) Receive(ctx context.Context, room api.Room) (b api.Batch, err error) {
	from := q.waiting
	if room.Messages == 0 {
		from = nil // nothing is wanted now
	}
	select {
	case n, more := <-from:
		if !more {
			return b, io.EOF
		}
		return api.Batch{Deliveries: []api.Delivery{{Handle: n, Message: core.Message{Name: q.name, Payload: fmt.Append(nil, n)}}}}, nil
	case <-ctx.Done():
		return b, ctx.Err()
	}
}

func (q *queue) Settle(_ context.Context, vs []api.Verdict) []api.Result {
	for _, v := range vs {
		if v.Kind == core.VerdictRequeue {
			q.waiting <- v.Handle.(int)
		} else if q.open--; q.open == 0 {
			close(q.waiting)
		}
	}
	return slices.Repeat([]api.Result{{Status: api.ResultDone}}, len(vs))
}
