// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
)

func TestExplainConnectsNothing(t *testing.T) {
	q := newQueues()
	q.connected = func(context.Context, []byte) error {
		t.Error("connected")
		return errBroken
	}
	s := newService()
	in := attach(s.Host, "in", q)
	host.Handle(in.Subscription("orders"), acks, host.MaxAttempts(3), host.DeadLetterTo(in.To("dead")))
	host.Handle(in.Subscription("plain"), acks)
	for range 2 { // it may be asked again
		tables, err := s.Explain(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, table := range tables {
			got = append(got, table.Endpoint+"/"+table.Subscription)
			if len(table.Profiles) != 1 || len(table.Profiles[0].Rows) == 0 {
				t.Errorf("%s explains nothing", table.Subscription)
			}
		}
		if diff := cmp.Diff([]string{"in/orders", "in/plain"}, got); diff != "" {
			t.Errorf("tables (-want +got):\n%s", diff)
		}
		text := tables[0].String()
		for _, w := range []string{"orders", "dead", "PUBLISH", "L-CAP-DL"} {
			if !strings.Contains(text, w) {
				t.Errorf("%q does not stand in:\n%s", w, text)
			}
		}
	}
}

func TestExplainOfAnEndedContext(t *testing.T) {
	s := newService()
	host.Handle(attach(s.Host, "in", newQueues()).Subscription("orders"), acks)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Explain(ctx)
	var e *host.StartError
	if !errors.As(err, &e) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a *StartError that says it was cut short", err)
	}
}

// What leaves before the ack and what orders deliveries is explained as well, also
// while the host runs.
func TestExplainTellsOfRepliesAndDispatch(t *testing.T) {
	s := newService()
	in := attach(s.Host, "in", newQueues())
	host.HandleReply(in.Subscription("asked"), twice)
	host.HandleReply(in.Subscription("answered"), twice, host.ReplyTo(in.To("answers")), host.Workers(4), host.ByKey())
	host.HandleBatch(in.Subscription("batched"), 7, time.Second, func(context.Context, []*host.Message[[]byte]) []error { return nil })
	s.serve(t)
	tables, err := s.Explain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, words := range [][]string{
		{"REPLY(reply-to)", "L-REPLY"}, {"REPLY(answers@in)", "4 workers by key"}, {"batches of up to 7"},
	} {
		text := tables[i].String()
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("%q does not stand in:\n%s", w, text)
			}
		}
	}
}
