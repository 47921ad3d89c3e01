// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
)

// Transport is the source behind the SDK.
type Transport struct{}

// What deliveries can do, and what those of Options.Copies can.
var (
	requeued = core.Capabilities{Ack: core.AckSingle, Requeue: core.RequeueNow, Counts: core.CountNative, Unsettled: core.UnsettledOnDisconnect}
	copied   = core.Capabilities{Ack: core.AckSingle, Unsettled: core.UnsettledOnDisconnect}
)

// profiles are those of one subscription.
func (o Options) profiles() []core.Capabilities {
	if o.Copies {
		return []core.Capabilities{copied}
	}
	return []core.Capabilities{requeued}
}

// publishing is what every destination does: it takes a message and forgets it.
var publishing = core.Publishing{Confirms: core.ConfirmQueued, Headers: core.HeadersNativeBytes, Retains: core.RetainTransport}

// Describe says what the transport is.
func (Transport) Describe() pluginapi.Spec {
	return pluginapi.Spec{
		Name: "bench", Version: "1",
		Subscription: pluginapi.SchemaOf[Options](),
		Ceilings:     []core.Capabilities{requeued, copied},
		Publishing:   publishing,
		Requests:     true,
	}
}

// Configure binds nothing.
func (Transport) Configure(pluginapi.Settings) (pluginapi.Endpoint, error) { return endpoint{}, nil }

type endpoint struct{}

func (endpoint) Inspect(u pluginapi.Usage) pluginapi.Inspection {
	in := pluginapi.Inspection{
		Registrations: make([]pluginapi.RegistrationReport, len(u.Registrations)),
		Destinations:  make([]pluginapi.TargetReport, len(u.Destinations)),
	}
	for i, r := range u.Registrations {
		var o Options
		if err := r.Options.Bind(&o); err != nil {
			in.Registrations[i].Findings = []pluginapi.Finding{{Option: "options", Message: err.Error()}}
		}
		in.Registrations[i].Profiles = o.profiles()
	}
	for i := range in.Destinations {
		in.Destinations[i].Publishing = publishing
	}
	return in
}

func (endpoint) Connect(context.Context, []byte) (pluginapi.Conn, error) { return conn{}, nil }

type conn struct{}

func (conn) Subscribe(_ context.Context, r pluginapi.Registration) (pluginapi.Subscription, error) {
	var o Options
	if err := r.Options.Bind(&o); err != nil {
		return nil, err
	}
	return newSubscription(o), nil
}

func (conn) Publish(_ context.Context, msgs []pluginapi.Outgoing, done func(int, pluginapi.Receipt)) {
	for i := range msgs {
		done(i, pluginapi.Receipt{Status: pluginapi.ReceiptConfirmed})
	}
}

func (conn) Request(context.Context, pluginapi.Outgoing) (core.Message, error) { return usedMessage() }

func (conn) Close(context.Context) ([]byte, error) { return nil, nil }

// subscription delivers for ever.
type subscription struct {
	options  Options
	messages []core.Message
	batch    []pluginapi.Delivery
	results  []pluginapi.Result
	next     int
	pace     *time.Ticker // nil = as fast as it goes
}

func newSubscription(o Options) *subscription {
	s := &subscription{options: o}
	if !o.Idle { // of which there are thousands
		s.messages = o.Messages()
	}
	if o.Every > 0 {
		s.pace = time.NewTicker(time.Duration(o.Every))
	}
	return s
}

func (s *subscription) Profiles() []core.Capabilities { return s.options.profiles() }

func (s *subscription) Receive(ctx context.Context, room pluginapi.Room) (pluginapi.Batch, error) {
	if room.Messages == 0 || s.options.Idle {
		<-ctx.Done()
		return pluginapi.Batch{}, ctx.Err()
	}
	s.batch = s.batch[:0]
	var at time.Time
	if s.pace != nil {
		select {
		case <-s.pace.C:
			at = time.Now()
		case <-ctx.Done():
			return pluginapi.Batch{}, ctx.Err()
		}
	}
	for range min(room.Messages, s.options.Frame) {
		s.batch = append(s.batch, pluginapi.Delivery{Message: s.messages[s.next%distinct], Attempt: 1, PublishedAt: at})
		s.next++
	}
	return pluginapi.Batch{Deliveries: s.batch}, nil
}

func (s *subscription) Settle(_ context.Context, vs []pluginapi.Verdict) []pluginapi.Result {
	for len(s.results) < len(vs) {
		s.results = append(s.results, pluginapi.Result{Status: pluginapi.ResultDone})
	}
	return s.results[:len(vs)]
}

func (s *subscription) Close(context.Context) error {
	if s.pace != nil {
		s.pace.Stop()
	}
	return nil
}
