// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// again closes a far end and opens another one at its address, once the service
// has seen that; it returns when the service is connected to that.
func (s *service) again(e end, kind, prefix string) end {
	s.t.Helper()
	lost, back := len(s.Log.Lines("no connection")), len(s.Log.Lines("connection is up"))
	at := e.address()
	e.close()
	s.Eventually("the loss is seen", func() bool { return len(s.Log.Lines("no connection")) > lost })
	e = s.p.open(s.t, kind, where{bind: at, prefix: prefix})
	s.Eventually("it is connected again", func() bool { return len(s.Log.Lines("connection is up")) > back })
	return e
}

// lostTwice checks that each of two losses is told once.
func (s *service) lostTwice() {
	s.t.Helper()
	if lost, back := len(s.Log.Lines("level=WARN", "no connection")), len(s.Log.Lines("level=INFO", "connection is up")); lost != 2 || back != 2 {
		s.t.Errorf("%d losses and %d returns are told, want 2\n%s", lost, back, s.Log)
	}
}

// What dials is connected again when its peer comes back, whatever its socket:
// PULL, SUB and ROUTER here.
func TestS_ZMQ_42(t *testing.T) {
	each(t, []source{queueDialing, fanOutDialing, rpcDialing}, func(t *testing.T, p party, from source) {
		s := newService(t, p, from)
		other := s.attach("other", binds(settings.PatternQueue, anyPort)) // nobody reads it
		s.says(host.Leave(), host.RetryTo(other.To("t")))
		s.begin()
		for i := range 3 {
			if i > 0 {
				s.far = s.again(s.far, from.far, "")
			}
			s.put(fmt.Sprint(i))
			servicetest.Expect(t, "runs", s.Ran(1), s.run(1, fmt.Sprint(i)))
		}
		s.Stop()
		s.lostTwice()
	})
}

// And PUSH and PUB here.
func TestS_ZMQ_42_senders(t *testing.T) {
	for _, tt := range []struct{ pattern, far string }{{settings.PatternQueue, "PULL"}, {settings.PatternFanOut, "SUB"}} {
		t.Run(tt.pattern, func(t *testing.T) {
			parties(t, func(t *testing.T, p party) {
				s := &service{Service: servicetest.New(t, host.StayUp()), t: t, p: p}
				s.q = p.open(t, tt.far, where{bind: heldPort(t), prefix: "news"})
				news := host.To[[]byte](s.Host, s.attach("out", dials(tt.pattern, s.q.address())).To("news"))
				s.Start()
				for i := range 3 {
					if i > 0 {
						s.q = s.again(s.q, tt.far, "news")
					}
					payload := fmt.Sprint(i)
					s.Eventually("somebody wants it", func() bool {
						r, err := news.Publish(t.Context(), []byte(payload))
						if err != nil {
							t.Fatal(err)
						}
						return !r.Unrouted
					})
					servicetest.Expect(t, "sent", s.q.got(1), "news "+payload)
				}
				s.Stop()
				s.lostTwice()
			})
		})
	}
}

// And DEALER.
func TestS_ZMQ_42_requests(t *testing.T) {
	parties(t, func(t *testing.T, p party) {
		s := &service{Service: servicetest.New(t, host.StayUp()), t: t, p: p}
		s.q = p.open(t, "ROUTER", where{bind: heldPort(t)})
		ask := s.attach("out", dials(settings.PatternRPC, s.q.address())).To("ask")
		s.Start()
		for i := range 3 {
			if i > 0 {
				s.q = s.again(s.q, "ROUTER", "")
			}
			answers := make(chan string, 1)
			go func() {
				reply, err := host.Request[[]byte, []byte](context.Background(), s.Host, ask, fmt.Append(nil, i), host.WithTimeout(servicetest.Limit/3))
				if err != nil {
					reply = []byte(err.Error())
				}
				answers <- string(reply)
			}()
			got := s.q.got(1)[0]
			_, id, _ := strings.Cut(got, "correlation-id=")
			id, _, _ = strings.Cut(id, " ")
			if !strings.HasPrefix(got, fmt.Sprintf("ask %d ", i)) || id == "" {
				t.Errorf("the request is %q", got)
			}
			s.q.put("reply", fmt.Sprint("to ", i), "correlation-id", id)
			servicetest.Expect(t, "the reply", []string{<-answers}, fmt.Sprint("to ", i))
		}
		s.Stop()
		s.lostTwice()
	})
}
