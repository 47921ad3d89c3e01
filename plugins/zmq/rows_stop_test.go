// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// The reply finds nobody: the delivery is then as one with a plain retry.
func TestS_ZMQ_33(t *testing.T) {
	each(t, []source{rpcBound, rpcDialing}, func(t *testing.T, p party, from source) {
		s := withOther(t, p, from)
		asked, gone := make(chan string, 10), make(chan struct{})
		settled := make(chan host.Settled, 10)
		host.HandleReply(s.sub, func(_ context.Context, m *host.Message[[]byte]) ([]byte, error) {
			asked <- m.Header("reply-to")
			<-gone
			return []byte("too late"), nil
		}, host.RetryTo(s.other.To("t")), host.AfterSettle(func(_ context.Context, d host.Settled) { settled <- d }))
		s.begin()
		s.put("x")
		to := <-asked
		s.far.close()
		s.Eventually("the loss is seen", func() bool {
			return len(s.Log.Lines("endpoint=in", "a peer is gone"))+len(s.Log.Lines("endpoint=in", "no connection")) > 0
		})
		close(gone)
		<-settled
		s.Stop()
		if n := len(asked); n > 0 {
			t.Errorf("%d runs more", n)
		}
		servicetest.Expect(t, "elsewhere", s.q.rest())
		s.codes(map[string]int{"L-REPLY": 1, "L-UNS": 1})
		if len(s.Log.Lines("code=L-REPLY", to)) != 1 {
			t.Errorf("L-REPLY does not name %s\n%s", to, s.Log)
		}
	})
}

// Copies that only this process would read are not waited for at a stop, not sent
// early, and counted as lost.
func TestS_ZMQ_34(t *testing.T) {
	const n = 3
	for _, from := range append([]source{queueBound, fanOutBound}, elsewhere...) {
		t.Run(from.name, func(t *testing.T) {
			parties(t, func(t *testing.T, p party) {
				s := newService(t, p, from, host.WithDrainLimit(servicetest.Limit))
				var rules []host.Rule
				if !from.binds || from.pattern == settings.PatternRPC {
					jobs := s.attach("jobs", binds(settings.PatternQueue, anyPort))
					host.Handle(jobs.Subscription("t"), func(_ context.Context, m *host.Message[[]byte]) error {
						t.Errorf("a copy was sent early: %s", m.Value)
						return nil
					})
					rules = append(rules, host.RetryTo(jobs.To("t")))
				}
				s.says(host.RetryAfter(time.Hour, nil), rules...)
				s.begin()
				for i := range n {
					s.put(fmt.Sprint(i))
				}
				s.Ran(n)
				s.Eventually("all copies wait", func() bool { return s.Health().Endpoints[0].Subscriptions[0].Counters.Waiting == n })
				servicetest.Expect(t, "sent back", s.far.rest())
				began := time.Now()
				s.Cancel()
				e, ok := errors.AsType[*host.AbandonedError](s.Wait())
				if !ok {
					t.Fatalf("the stop came to %v\n%s", s.Wait(), s.Log)
				}
				if took := time.Since(began); took > servicetest.Limit/3 {
					t.Errorf("the stop took %v", took)
				}
				if diff := cmp.Diff([]host.Abandoned{{Endpoint: "in", Subscription: from.reads, Copies: n}}, e.Subscriptions); diff != "" {
					t.Errorf("cut off (-want +got):\n%s", diff)
				}
				if lost := s.Health().Endpoints[0].Subscriptions[0].Counters.Lost; lost != n {
					t.Errorf("%d are counted as lost", lost)
				}
				s.NoMoreRuns()
				s.codes(map[string]int{"L-ABND": 1})
				if len(s.Log.Lines("code=L-ABND", "level=WARN", from.reads, fmt.Sprint(n))) != 1 {
					t.Errorf("the log:\n%s", s.Log)
				}
			})
		})
	}
}

// all are the six kinds of subscription.
var all = []source{queueBound, queueDialing, fanOutBound, fanOutDialing, rpcBound, rpcDialing}

// anywhere gives a source that needs it a destination for copies.
func (s *service) anywhere() []host.Rule {
	if s.from.binds && s.from.pattern != settings.PatternRPC {
		return nil
	}
	return []host.Rule{host.RetryTo(s.other.To("t"))}
}

// A handler that says nothing: the message is gone, and nothing is said of it.
func TestS_ZMQ_39(t *testing.T) {
	each(t, all, func(t *testing.T, p party, from source) {
		s := withOther(t, p, from)
		s.says(host.Leave(), append(s.anywhere(), host.MaxAttempts(2))...)
		s.begin()
		s.put("x")
		servicetest.Expect(t, "runs", s.Ran(1), s.run(1, "x"))
		s.Eventually("it is released", func() bool { return s.Health().Endpoints[0].Subscriptions[0].Counters.Released == 1 })
		s.Stop()
		servicetest.Expect(t, "elsewhere", s.q.rest())
		s.codes(nil)
		s.Log.Silent(t)
	})
}

// A panic that stops the service is as a handler that says nothing.
func TestS_ZMQ_39_panic(t *testing.T) {
	each(t, all, func(t *testing.T, p party, from source) {
		s := withOther(t, p, from)
		s.Handle(s.sub, func(*host.Message[[]byte]) error { panic("broken") },
			append(s.anywhere(), host.MaxAttempts(2), host.OnPanic(host.FailFast))...)
		s.begin()
		s.put("x")
		if _, ok := errors.AsType[*host.HandlerError](s.Wait()); !ok {
			t.Errorf("the host ended with %v", s.Wait())
		}
		servicetest.Expect(t, "runs", s.Ran(1), s.run(1, "x"))
		servicetest.Expect(t, "elsewhere", s.q.rest())
		s.codes(map[string]int{"L-PAN": 1, "L-FF": 1})
	})
}

// hostChild says to a child process where it reads jobs until it is killed.
const hostChild = "LONGSHORE_TEST_ZMQ_HOST_CHILD"

// serveUntilKilled reads jobs and never ends with one. It says where it listens,
// and what it was given.
func serveUntilKilled(address, plugin string) {
	h := host.New()
	in := h.Endpoint("in", host.Plugin{Name: "zmq", Path: plugin}, settings.Settings{Pattern: settings.PatternQueue, Bind: address})
	host.Handle(in.Subscription("jobs"), func(ctx context.Context, m *host.Message[[]byte]) error {
		fmt.Println(string(m.Value))
		<-ctx.Done()
		return nil
	}, host.MaxAttempts(2))
	go func() {
		for len(in.Addresses()) == 0 {
			time.Sleep(time.Millisecond)
		}
		fmt.Println(in.Addresses()[0])
	}()
	fmt.Println(h.Run(context.Background()))
}

// What a host had when it was killed is gone, and its plugin with it: the next
// one on the same port reads what is sent from then on.
func TestS_ZMQ_39_crash(t *testing.T) {
	parties(t, func(t *testing.T, p party) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		child := exec.Command(self)
		child.Env = append(os.Environ(), hostChild+"="+heldPort(t)+" "+pluginPath(t))
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		kill := sync.OnceFunc(func() {
			_ = child.Process.Kill()
			_ = child.Wait()
		})
		defer kill()
		defer time.AfterFunc(servicetest.Limit, kill).Stop()
		lines := bufio.NewScanner(out)
		next := func() string {
			if !lines.Scan() {
				t.Fatal("the child has ended")
			}
			return lines.Text()
		}
		address := next()
		far := p.open(t, "PUSH", where{connect: []string{address}})
		far.put("jobs", "x")
		servicetest.Expect(t, "runs of the child", []string{next()}, "x")
		kill()
		far.loses()
		eventually(t, "its plugin is gone", func() bool {
			nc, err := net.Dial("tcp", strings.TrimPrefix(address, "tcp://"))
			if err == nil {
				nc.Close()
			}
			return err != nil
		})

		s := &service{Service: servicetest.New(t), t: t, p: p, from: queueBound, far: far}
		s.in = s.attach("in", settings.Settings{Pattern: settings.PatternQueue, Bind: address})
		s.sub = s.in.Subscription("jobs")
		s.says(host.Leave(), host.MaxAttempts(2))
		s.Start()
		far.put("jobs", "next")
		servicetest.Expect(t, "runs", s.Ran(1), "jobs 1 next")
		servicetest.Expect(t, "sent back", far.rest())
		s.Stop()
		s.Log.Silent(t)
	})
}
