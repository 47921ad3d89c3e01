// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/interop/libzmq"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// A request that fails twice is retried through a queue of its responder and
// answered from there: who asked gets one reply. One that always fails becomes a
// dead letter with its reply-to and correlation-id, and is not answered.
func TestRequestsAreRetried(t *testing.T) {
	t.Parallel()
	far := libzmq.Start(t)
	graves := far.Open("PULL", libzmq.Options{Bind: []string{"tcp://127.0.0.1:*"}})
	s := newService(t)
	rpc, again := s.zmq("rpc", bound(settings.PatternRPC, anyPort)), s.zmq("again", bound(settings.PatternQueue, anyPort))
	dead := s.zmq("dead", dialing(settings.PatternQueue, graves.Address()))
	runs := newTally()
	answer := func(_ context.Context, m *host.Message[[]byte]) ([]byte, error) {
		runs.ran(string(m.Value), m.Attempt())
		if string(m.Value) == "bad" || m.Attempt() < 3 {
			return nil, host.Retry(errors.New("not yet"))
		}
		return fmt.Appendf(nil, "%s at %d", m.Value, m.Attempt()), nil
	}
	rules := []host.Rule{host.MaxAttempts(3), host.DeadLetterTo(dead.To("graves")), host.RetryTo(again.To("again"))}
	host.HandleReply(rpc.Subscription("ask"), answer, rules...)
	host.HandleReply(again.Subscription("again"), answer, append(rules, host.ReplyOn(rpc))...)
	s.serve()
	dealer := far.Open("DEALER", libzmq.Options{Connect: []string{s.at(rpc)}})
	dealer.Send("ask", "correlation-id: c1\nreply-to: elsewhere", "good")
	dealer.Send("ask", "correlation-id: c2", "bad")
	got := frames(graves.Receive(1))[0]
	if diff := cmp.Diff([][]string{{"reply", "correlation-id: c1", "good at 3"}}, frames(dealer.Receive(1))); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
	if got[0] != "graves" || got[2] != "bad" {
		t.Errorf("dead letter %q", got)
	}
	for _, want := range []string{"correlation-id: c2", "reply-to: zmq-reply:", "x-ruststream-retry-count: 3", "x-longshore-reason: not yet"} {
		if !strings.Contains(got[1], want) {
			t.Errorf("the dead letter lacks %s:\n%s", want, got[1])
		}
	}
	if rest := frames(dealer.Rest()); len(rest) > 0 {
		t.Errorf("further replies: %q", rest)
	}
	for _, m := range []string{"good", "bad"} {
		if diff := cmp.Diff([]uint64{1, 2, 3}, runs.attempts(m)); diff != "" {
			t.Errorf("%s: attempts (-want +got):\n%s", m, diff)
		}
	}
	s.stops()
}

// A queue that takes the copies of requests and would reply over itself is warned
// of at the start.
func TestRepliesOverTheWrongEndpoint(t *testing.T) {
	t.Parallel()
	for _, right := range []bool{false, true} {
		s := newService(t)
		rpc, again := s.zmq("rpc", bound(settings.PatternRPC, anyPort)), s.zmq("again", bound(settings.PatternQueue, anyPort))
		answer := func(context.Context, *host.Message[[]byte]) ([]byte, error) { return nil, nil }
		host.HandleReply(rpc.Subscription("ask"), answer, host.MaxAttempts(3), host.RetryTo(again.To("again")))
		rules := []host.Rule{host.MaxAttempts(3)}
		if right {
			rules = append(rules, host.ReplyOn(rpc))
		}
		host.HandleReply(again.Subscription("again"), answer, rules...)
		s.serve()
		s.stops()
		lines := s.log.that(func(l line) bool { return l.text("code") == "L-CHECK" && l.text("option") == "ReplyOn" })
		if right == (len(lines) > 0) || !right && !strings.Contains(fmt.Sprint(lines), "ask of endpoint rpc") {
			t.Errorf("with the rule %v: %v", right, lines)
		}
	}
}

// A responder that stops answers the requests that it handles. The others are told
// as lost, and those who asked for them get nothing.
func TestRepliesAtTheStop(t *testing.T) {
	t.Parallel()
	const n, workers = 200, 4
	s := newService(t)
	rpc := s.zmq("rpc", bound(settings.PatternRPC, anyPort))
	gate := make(chan struct{})
	runs := newTally()
	host.HandleReply(rpc.Subscription("ask"), func(_ context.Context, m *host.Message[[]byte]) ([]byte, error) {
		runs.ran(string(m.Value), m.Attempt())
		<-gate
		return m.Value, nil
	}, s.elsewhere(), host.Workers(workers))
	s.serve()
	dealer := libzmq.Start(t).Open("DEALER", libzmq.Options{Connect: []string{s.at(rpc)}})
	for i := range n {
		dealer.Send("ask", "", fmt.Sprintf("q%03d", i))
	}
	eventually(t, "the workers are busy", func() bool { all, _ := runs.total(); return all == workers })
	eventually(t, "the window is full", func() bool { return s.counters("ask").Received == 64 })
	s.stop()
	eventually(t, "it stops", func() bool { return len(s.log.having("INFO", "host stops")) > 0 })
	close(gate)
	err := s.ends()
	var cut host.Abandoned
	if e, ok := errors.AsType[*host.AbandonedError](err); ok {
		cut = e.Subscriptions[0]
	}
	all, _ := runs.total()
	replies := len(append(dealer.Receive(all), dealer.Rest()...))
	lost := 0
	for _, l := range s.log.having("WARN", "messages are lost") {
		one, _ := strconv.Atoi(l.text("read"))
		lost += one
	}
	t.Logf("%d replies, %d runs, %d told by the plugin; %+v", replies, all, lost, cut)
	if replies != all || replies < workers {
		t.Errorf("%d replies to %d runs", replies, all)
	}
	if replies+lost+cut.Unhandled != n {
		t.Errorf("%d replies, %d and %d told as lost, of %d", replies, lost, cut.Unhandled, n)
	}
}

// Many ask two responders at once, one of which is killed and comes back: each
// request has its own reply, or an error that says whether it may have been
// handled.
func TestRequestsWhileAResponderIsKilled(t *testing.T) {
	t.Parallel()
	responder := func() (*service, *host.Endpoint) {
		s := newService(t)
		rpc := s.zmq("rpc", bound(settings.PatternRPC, anyPort))
		host.HandleReply(rpc.Subscription("ask"), func(_ context.Context, m *host.Message[[]byte]) ([]byte, error) {
			return append([]byte("re "), m.Value...), nil
		}, s.elsewhere())
		s.serve()
		return s, rpc
	}
	one, first := responder()
	two, second := responder()
	s := newService(t)
	set := dialing(settings.PatternRPC, one.at(first), two.at(second))
	set.PeerWait = core.Duration(5 * time.Second)
	out := s.zmq("out", set)
	s.serve()
	const workers, each = 8, 200
	var all sync.WaitGroup
	var mu sync.Mutex
	failed := map[string]int{}
	half := make(chan struct{}, workers*each)
	for w := range workers {
		all.Go(func() {
			for i := range each {
				text := fmt.Sprintf("%d-%d", w, i)
				got, err := host.Request[[]byte, []byte](t.Context(), s.Host, out.To("ask"), []byte(text), host.WithTimeout(patience))
				half <- struct{}{}
				switch e := new(host.RequestError); {
				case err == nil && string(got) != "re "+text:
					t.Errorf("%s is answered %q", text, got)
				case err != nil && !errors.As(err, &e):
					t.Errorf("%s: %v", text, err)
				case err != nil:
					mu.Lock()
					failed[fmt.Sprintf("%v, maybe sent %v", errors.Is(err, context.DeadlineExceeded), e.MaybeSent)]++
					mu.Unlock()
				}
			}
		})
	}
	eventually(t, "half of them are answered", func() bool { return len(half) > workers*each/4 })
	killPlugin(t, one, "rpc")
	all.Wait()
	t.Logf("failed, by deadline: %v", failed)
	if n := failed["true, maybe sent true"] + failed["true, maybe sent false"]; n > 0 {
		t.Errorf("%d requests waited for one that is gone: %v", n, failed)
	}
	if n := failed["false, maybe sent true"]; n > workers {
		t.Errorf("%d requests failed at the kill, of %d under way", n, workers)
	}
	s.stops()
	one.stops()
	two.stops()
}
