// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// unconnected is a service whose start is refused before anything is dialed.
func unconnected(t *testing.T, from source) *service {
	t.Helper()
	s := &service{Service: servicetest.New(t), t: t, from: from}
	set := binds(from.pattern, anyPort)
	if !from.binds {
		set = dials(from.pattern, closed)
	}
	s.in = s.attach("in", set)
	s.other = s.attach("other", dials(settings.PatternQueue, closed))
	s.sub = s.in.Subscription(from.reads)
	return s
}

// refuses checks that a destination on the subscription's own endpoint is refused:
// a copy or dead letter would come back, or nothing can carry it.
func refuses(t *testing.T, from source, option, name string, texts ...string) {
	t.Run(from.name+" "+option+" "+name, func(t *testing.T) {
		s := unconnected(t, from)
		rules := []host.Rule{host.MaxAttempts(3)}
		switch {
		case option == "RetryTo":
			rules = append(rules, host.RetryTo(s.in.To(name)))
		case from.binds && from.pattern != settings.PatternRPC:
			rules = append(rules, host.DeadLetterTo(s.in.To(name)))
		default:
			rules = append(rules, host.DeadLetterTo(s.in.To(name)), host.RetryTo(s.other.To("t")))
		}
		s.says(nil, rules...)
		s.Refused(from.reads, option, append(texts, from.reads)...)
	})
}

func TestS_ZMQ_10(t *testing.T) {
	refuses(t, queueBound, "DeadLetterTo", "q", "q@in")
	refuses(t, queueBound, "DeadLetterTo", "jobs")
}

func TestS_ZMQ_16(t *testing.T) {
	refuses(t, queueDialing, "RetryTo", "t", "t@in", "PUSH")
	refuses(t, queueDialing, "DeadLetterTo", "q", "q@in", "PUSH")
	refuses(t, fanOutDialing, "RetryTo", "t", "t@in", "PUB")
}

func TestS_ZMQ_24(t *testing.T) {
	refuses(t, fanOutBound, "DeadLetterTo", "events.dead", "events.dead")
}

func TestS_ZMQ_25(t *testing.T) { refuses(t, fanOutBound, "DeadLetterTo", "dead", "dead@in") }

func TestS_ZMQ_30(t *testing.T) {
	refuses(t, rpcBound, "RetryTo", "x", "x@in", "zmq-reply:")
	refuses(t, rpcDialing, "RetryTo", "x", "x@in", "zmq-reply:")
	refuses(t, rpcBound, "DeadLetterTo", "x", "x@in", "zmq-reply:")
}

// homeless checks that a start is refused where copies have nowhere to go.
func homeless(t *testing.T, from source) {
	for name, rules := range map[string][]host.Rule{"nothing declared": nil, "a cap": {host.MaxAttempts(3)}} {
		t.Run(from.name+" "+name, func(t *testing.T) {
			s := unconnected(t, from)
			s.says(nil, rules...)
			s.Refused(from.reads, "RetryTo", from.reads, "RetryTo")
		})
	}
}

func TestS_ZMQ_15(t *testing.T) { homeless(t, queueDialing) }
func TestS_ZMQ_27(t *testing.T) { homeless(t, fanOutDialing) }

func TestS_ZMQ_29(t *testing.T) {
	homeless(t, rpcBound)
	homeless(t, rpcDialing)
}

func TestS_ZMQ_36(t *testing.T) {
	for _, from := range []source{queueBound, fanOutBound} {
		t.Run(from.name, func(t *testing.T) {
			s := unconnected(t, from)
			s.says(nil)
			s.Handle(s.in.Subscription("second"), servicetest.Always(nil))
			s.Refused("second", "name", from.reads, "second", "endpoint in")
		})
	}
}

func TestS_ZMQ_37(t *testing.T) {
	for address, path := range map[string]string{
		"inproc://x": "bind", "udp://127.0.0.1:5555": "connect[0]", "ws://h:1": "connect[0]", "127.0.0.1:5555": "bind", "": "bind",
	} {
		t.Run(address, func(t *testing.T) {
			s := &service{Service: servicetest.New(t), t: t}
			set := settings.Settings{Pattern: settings.PatternQueue, Bind: address}
			if path != "bind" {
				set = dials(settings.PatternQueue, address)
			}
			s.Handle(s.attach("in", set).Subscription("jobs"), servicetest.Always(nil), host.RetryTo(core.Destination{Endpoint: "in", Name: "t"}))
			s.Refused("", "settings."+path, address, "tcp", "ipc")
		})
	}
}

func TestS_ZMQ_38(t *testing.T) {
	for _, from := range []source{rpcBound, rpcDialing} {
		t.Run(from.name, func(t *testing.T) {
			s := unconnected(t, from)
			host.HandleBatch(s.sub, 10, time.Second, func(context.Context, []*host.Message[[]byte]) []error { return nil }, host.RetryTo(s.other.To("t")))
			s.Refused("ask", "HandleBatch", "ask", "HandleBatch")
		})
	}
}

// All that is wrong is found at once, and nothing is dialed before.
func TestAllFindingsAtOnce(t *testing.T) {
	s := unconnected(t, queueDialing)
	s.says(nil)
	bound := s.attach("bound", binds(settings.PatternQueue, anyPort))
	s.Handle(bound.Subscription("more"), servicetest.Always(nil), host.DeadLetterTo(bound.To("q")))
	s.Launch()
	e, ok := errors.AsType[*host.StartError](s.Wait())
	if !ok || len(e.Findings) != 2 {
		t.Fatalf("ended with %v", e)
	}
	if n := len(s.Log.Lines(strings.TrimPrefix(closed, "tcp://"))); n != 0 {
		t.Errorf("%d lines about what was dialed\n%s", n, s.Log)
	}
}
