// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/pluginapi"
)

type question struct {
	N int `json:"n"`
}

type answer struct {
	Twice int `json:"twice"`
}

// twice answers questions.
func twice(_ context.Context, m *host.Message[question]) (answer, error) {
	if m.Value.N < 0 {
		return answer{}, host.Drop(errors.New("negative"))
	}
	return answer{2 * m.Value.N}, nil
}

// ask is a request.
func ask(payload string, headers ...string) core.Message {
	m := core.Message{Name: "ask", Payload: []byte(payload)}
	for i := 0; i < len(headers); i += 2 {
		m.Headers = append(m.Headers, core.Header{Name: headers[i], Value: []byte(headers[i+1])})
	}
	return m
}

func TestReplies(t *testing.T) {
	in, out := newQueues(), newQueues()
	s := newService()
	asked := attach(s.Host, "in", in).Subscription("ask")
	other := attach(s.Host, "out", out)
	host.HandleReply(asked, twice, host.ReplyTo(other.To("answers")))
	s.serve(t)
	in.take(ask(`{"n":1}`, "Reply-To", "mine", "Correlation-ID", "c-1", "x-tenant", "t"), []byte("carry"))
	in.take(ask(`{"n":2}`), []byte("carry"))
	in.take(ask(`{"n":-1}`, "reply-to", "mine"), nil)
	eventually(t, "all are settled", func() bool { return len(in.verdicts("ask")) == 3 })
	if diff := cmp.Diff([]string{"ack " + `{"n":1}`, "ack " + `{"n":2}`, "reject " + `{"n":-1}`}, in.verdicts("ask")); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	want := []core.Message{{
		Name: "mine", Payload: []byte(`{"twice":2}`),
		Headers: core.Headers{{Name: "correlation-id", Value: []byte("c-1")}},
	}}
	if diff := cmp.Diff(want, in.took("mine")); diff != "" {
		t.Errorf("replies to where the request says (-want +got):\n%s", diff)
	}
	want = []core.Message{{Name: "answers", Payload: []byte(`{"twice":4}`)}}
	if diff := cmp.Diff(want, out.took("answers")); diff != "" {
		t.Errorf("replies to where the rule says (-want +got):\n%s", diff)
	}
}

// The transport's own carry goes back with a reply, and to no other endpoint.
func TestRepliesCarry(t *testing.T) {
	in, out := newQueues(), newQueues()
	var sent, strayed pluginapi.Outgoing
	in.published = func(m pluginapi.Outgoing) *pluginapi.Receipt { sent = m; return nil }
	out.published = func(m pluginapi.Outgoing) *pluginapi.Receipt { strayed = m; return nil }
	s := newService()
	asked := attach(s.Host, "in", in).Subscription("ask")
	host.HandleReply(asked, twice, host.ReplyTo(attach(s.Host, "out", out).To("answers")))
	s.serve(t)
	in.take(ask(`{"n":1}`, "reply-to", "mine"), []byte("carry"))
	in.take(ask(`{"n":2}`), []byte("carry"))
	eventually(t, "both are settled", func() bool { return len(in.verdicts("ask")) == 2 })
	if string(sent.Carry) != "carry" || sent.Purpose != pluginapi.PurposeReply {
		t.Errorf("got carry %q and purpose %v, want the delivery's own and a reply", sent.Carry, sent.Purpose)
	}
	if strayed.Carry != nil || strayed.Purpose != pluginapi.PurposeReply {
		t.Errorf("got carry %q and purpose %v on another endpoint, want none and a reply", strayed.Carry, strayed.Purpose)
	}
}

func TestRepliesWithoutDestination(t *testing.T) {
	in := newQueues()
	s := newService()
	host.HandleReply(attach(s.Host, "in", in).Subscription("ask"), twice)
	s.serve(t)
	in.take(ask(`{"n":1}`), nil)
	eventually(t, "it is acked", func() bool { return len(in.verdicts("ask")) == 1 })
	if got := s.log.lines("level=DEBUG", "reply goes nowhere"); len(got) != 1 {
		t.Errorf("%d lines tell of it, want one: %v", len(got), got)
	}
}

// S-GEN-52: a reply that cannot be written, carried or confirmed is a retry.
func TestRepliesThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(q *queues)
		handle  func(context.Context, *host.Message[question]) (any, error)
		say     string
	}{
		"publish fails (S-GEN-52)": {
			prepare: func(q *queues) { q.published = refuseFor("mine") },
			handle:  func(context.Context, *host.Message[question]) (any, error) { return 1, nil },
			say:     "no peer",
		},
		"it cannot be written": {
			handle: func(context.Context, *host.Message[question]) (any, error) { return func() {}, nil },
			say:    "encode",
		},
		"writing it panics": {
			handle: func(context.Context, *host.Message[question]) (any, error) { return explosive{}, nil },
			say:    "boom",
		},
		"nothing can carry it": {
			prepare: func(q *queues) {
				q.targets = func(t pluginapi.Target) *pluginapi.TargetReport {
					if t.Name != "mine" || t.Purpose != pluginapi.PurposeReply {
						return nil
					}
					return &pluginapi.TargetReport{Findings: []pluginapi.Finding{{Message: "no such queue", Fix: "make it"}}}
				}
			},
			handle: func(context.Context, *host.Message[question]) (any, error) { return 1, nil },
			say:    "no such queue",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := newQueues()
			if c.prepare != nil {
				c.prepare(in)
			}
			s := newService()
			host.HandleReply(attach(s.Host, "in", in).Subscription("ask"), c.handle,
				host.MaxAttempts(2), host.DeadLetterTo(dest("in", "dead")))
			s.serve(t)
			in.take(ask(`{"n":1}`, "reply-to", "mine"), nil)
			eventually(t, "it is a dead letter", func() bool { return len(in.took("dead")) == 1 })
			lines := s.log.lines("level=WARN", "code=L-REPLY", c.say, "subscription=ask", "reply=mine")
			if len(lines) != 2 {
				t.Errorf("got %d lines L-REPLY with %q, want 2", len(lines), c.say)
			}
			if got := len(in.took("ask")); got != 2 {
				t.Errorf("it was sent to its own queue %d times, want the request and one copy", got)
			}
		})
	}
}

// explosive panics when it is written.
type explosive struct{}

func (explosive) MarshalJSON() ([]byte, error) { panic("boom") }

// A reply and Forward leave together: all or nothing as far as can be told
// before, and the delivery is acked after both.
func TestRepliesBesideForward(t *testing.T) {
	in := newQueues()
	s := newService()
	host.HandleReply(attach(s.Host, "in", in).Subscription("ask"), twice, host.Forward(dest("", "archive")))
	s.serve(t)
	in.take(ask(`{"n":1}`, "reply-to", "mine"), nil)
	eventually(t, "it is acked", func() bool { return len(in.verdicts("ask")) == 1 })
	if len(in.took("archive")) != 1 || len(in.took("mine")) != 1 {
		t.Errorf("got %v and %v, want one of each", in.took("archive"), in.took("mine"))
	}
}

// Replies to requests that came over another endpoint at first go there.
func TestReplyOn(t *testing.T) {
	rpc, again := newQueues(), newQueues()
	s := newService()
	host.HandleReply(attach(s.Host, "again", again).Subscription("ask"), twice, host.ReplyOn(attach(s.Host, "rpc", rpc)))
	s.serve(t)
	again.take(ask(`{"n":1}`, "reply-to", "mine", "correlation-id", "c-1"), nil)
	eventually(t, "it is acked", func() bool { return len(again.verdicts("ask")) == 1 })
	if len(rpc.took("mine")) != 1 || len(again.took("mine")) != 0 {
		t.Errorf("got %v over the requests' endpoint and %v over its own", rpc.took("mine"), again.took("mine"))
	}
}

func TestReplyOnNothing(t *testing.T) {
	s := newService()
	in := attach(s.Host, "in", newQueues())
	host.HandleReply(in.Subscription("nil"), twice, host.ReplyOn(nil))
	host.HandleReply(in.Subscription("strange"), twice, host.ReplyOn(attach(newService().Host, "far", newQueues())))
	host.Handle(in.Subscription("ask"), acks, host.ReplyOn(in))
	e := startError(t, s)
	if len(e.Findings) != 3 {
		t.Errorf("got %v, want three findings", e)
	}
	for _, f := range e.Findings {
		if f.Option != "ReplyOn" || f.Fix == "" {
			t.Errorf("finding %+v", f)
		}
	}
}

func TestReplyToWithoutReplies(t *testing.T) {
	s := newService()
	host.Handle(attach(s.Host, "in", newQueues()).Subscription("ask"), acks, host.ReplyTo(dest("", "answers")))
	e := startError(t, s)
	if len(e.Findings) != 1 || !strings.Contains(e.Findings[0].Message, "does not reply") || len(e.Findings[0].Places) != 2 {
		t.Errorf("got %v, want one finding with both places", e)
	}
}
