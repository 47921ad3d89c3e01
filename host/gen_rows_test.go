// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/pluginapi"
)

func ack(context.Context, *host.Message[int]) error { return nil }

// Rows about messages that cannot be decoded: the handler does not run for them.
func TestGenUndecodable(t *testing.T) {
	q := host.DeadLetterTo(dest("in", "q"))
	for id, r := range map[string]genRow{
		"S-GEN-48": {handle: numbers(ack), rules: []host.Rule{host.MaxAttempts(1), q}, payloads: []string{"1x"}},
		"S-GEN-49": {
			handle: numbers(ack), rules: []host.Rule{host.MaxAttempts(3), q, host.OnUndecodable(host.AsRetry)}, payloads: []string{"1x"},
		},
		"S-GEN-50": {
			handle: numbers(ack), rules: []host.Rule{host.OnUndecodable(host.AsRetryAfter(40 * time.Second))}, payloads: []string{"1x"},
			delay: 40 * time.Second,
		},
		"S-GEN-51": {handle: numbers(ack), rules: []host.Rule{host.OnUndecodable(host.FailFast)}, payloads: []string{"1x"}},
	} {
		t.Run(id, func(t *testing.T) { r.run(t, id) })
	}
}

// S-GEN-52: a reply that is not published is a retry, and the handler runs again.
func TestGenReply(t *testing.T) {
	r := genRow{
		handle: func(s *host.Subscription, ran func(string), rules ...host.Rule) {
			host.HandleReply(s, func(_ context.Context, m *host.Message[int]) (int, error) {
				ran(string(m.Payload()))
				if m.Attempt() > 1 {
					return 0, host.Drop(nil)
				}
				return m.Value, nil
			}, rules...)
		},
		rules: []host.Rule{host.MaxAttempts(2)}, payloads: []string{"1"}, ran: []string{"1", "1"},
		headers: core.Headers{{Name: "reply-to", Value: []byte("nowhere")}}, refuse: "nowhere",
	}
	r.run(t, "S-GEN-52")
}

// S-GEN-69: no outcome, whatever is declared; the credit returns, so that a window
// of one lets the next one in.
func TestGenLeave(t *testing.T) {
	leave := func(context.Context, *host.Message[int]) error { return host.Leave() }
	for name, rules := range map[string][]host.Rule{
		"nothing declared": nil,
		"a policy":         {host.MaxAttempts(1), host.DeadLetterTo(dest("in", "q")), host.Backoff(host.Constant(time.Second))},
	} {
		t.Run(name, func(t *testing.T) {
			r := genRow{handle: numbers(leave), rules: rules, window: 1, payloads: []string{"1", "2"}, ran: []string{"1", "2"}}
			r.run(t, "S-GEN-69")
		})
	}
}

// S-GEN-67: an error that is bound to no message is told, and the next delivery is
// read.
func TestGenReceiveError(t *testing.T) {
	q := newQueues()
	q.queue("orders").strange = []pluginapi.Report{{Fault: &core.Fault{Code: core.FaultUnavailable, Message: "hiccup"}, Position: "line 3"}}
	q.put("orders", "one")
	s := newService()
	host.Handle(attach(s.Host, "in", q).Subscription("orders"), acks)
	s.serve(t)
	eventually(t, "the next one is acked", func() bool { return len(q.verdicts("orders")) == 1 })
	if got := s.log.lines("level=ERROR", "code=L-STREAM", "hiccup", "line 3", "subscription=orders"); len(got) != 1 {
		t.Errorf("%d lines tell of it, want one", len(got))
	}
}
