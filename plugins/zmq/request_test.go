// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// responder answers what it receives until the endpoint ends: f says with what,
// nil is no answer.
func (b *bench) responder(name string, f func(m core.Message) []pluginapi.Outgoing) {
	b.t.Helper()
	s := b.subscribe(name)
	ctx, cancel := context.WithCancel(b.ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for {
			batch, err := s.Receive(ctx, servicetest.Plenty)
			for _, d := range batch.Deliveries {
				for i, r := range servicetest.Publish(b.ctx, b.t, b.conn, f(d.Message.Clone())...) {
					if r.Status != pluginapi.ReceiptConfirmed {
						b.t.Errorf("reply %d: %+v %v", i, r, r.Fault)
					}
				}
			}
			if batch.Memory != nil {
				batch.Memory.Release()
			}
			if err != nil {
				return
			}
		}
	})
	b.t.Cleanup(func() { cancel(); done.Wait() })
}

// header is the value of a header, "" where there is none.
func header(m core.Message, name string) string {
	v, _ := m.Headers.Get(name)
	return string(v)
}

// replyTo is a reply to a request.
func replyTo(m core.Message, payload string) pluginapi.Outgoing {
	r := servicetest.Message(header(m, "reply-to"), payload, "correlation-id", header(m, "correlation-id"))
	r.Purpose = pluginapi.PurposeReply
	return r
}

// echo answers with name and payload.
func echo(m core.Message) []pluginapi.Outgoing {
	return []pluginapi.Outgoing{replyTo(m, m.Name+" "+string(m.Payload))}
}

// ask sends a request within the test's limit.
func (b *bench) ask(ctx context.Context, name, payload string, headers ...string) (core.Message, error) {
	m, err := b.conn.(pluginapi.Requester).Request(ctx, servicetest.Message(name, payload, headers...))
	return m, err
}

// fails checks the code and the words of an error.
func fails(t *testing.T, err error, code core.FaultCode, words ...string) {
	t.Helper()
	f, ok := errors.AsType[*core.Fault](err)
	if !ok || f.Code != code {
		t.Errorf("got %v, want %v", err, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(f.Error(), w) {
			t.Errorf("%q lacks %q", f, w)
		}
	}
}

// A request is answered whoever binds, under an id of its own or the one it had.
func TestRequest(t *testing.T) {
	for network, address := range addresses(t) {
		for _, readerBinds := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, responder binds %v", network, readerBinds), func(t *testing.T) {
				responder, asker := pair(t, settings.PatternRPC, "calc", readerBinds, address)
				responder.responder("calc", echo)
				m, err := asker.ask(asker.ctx, "sum", "1+1")
				if err != nil || m.Name != "reply" || string(m.Payload) != "sum 1+1" {
					t.Fatalf("got %+v, %v", m, err)
				}
				if id, want := header(m, "correlation-id"), fmt.Sprintf("req-%d-%016x", os.Getpid(), 1); id != want {
					t.Errorf("id %s, want %s", id, want)
				}
				m, err = asker.ask(asker.ctx, "sum", "2+2", "Correlation-Id", "mine")
				if err != nil || header(m, "correlation-id") != "mine" || string(m.Payload) != "sum 2+2" {
					t.Errorf("got %+v, %v", m, err)
				}
			})
		}
	}
}

// The reply goes to the peer that asked, whatever it says of itself; each asker
// has its own reply.
func TestRequestsOfSeveral(t *testing.T) {
	responder := connect(t, binds(settings.PatternRPC, anyPort), reading("calc"))
	responder.responder("calc", func(m core.Message) []pluginapi.Outgoing {
		if n := len(m.Headers); n < 2 || m.Headers[0].Name != "reply-to" || !strings.HasPrefix(header(m, "reply-to"), "zmq-reply:") {
			t.Errorf("headers %v", m.Headers)
		}
		return echo(m)
	})
	var asking sync.WaitGroup
	for i := range 3 {
		asker := connect(t, dials(settings.PatternRPC, responder.address()), pluginapi.Usage{})
		for k := range 20 {
			asking.Go(func() {
				payload := fmt.Sprint(i, k)
				m, err := asker.ask(asker.ctx, "n", payload, "reply-to", "zmq-reply:00")
				if err != nil || string(m.Payload) != "n "+payload {
					t.Errorf("%s: got %s, %v", payload, m.Payload, err)
				}
			})
		}
	}
	asking.Wait()
}

// Requests are shared among the responders that are dialed.
func TestRequestRotates(t *testing.T) {
	var places []string
	for i := range 2 {
		r := connect(t, binds(settings.PatternRPC, anyPort), reading("calc"))
		r.responder("calc", func(m core.Message) []pluginapi.Outgoing {
			return []pluginapi.Outgoing{replyTo(m, fmt.Sprint(i))}
		})
		places = append(places, r.address())
	}
	asker := connect(t, dials(settings.PatternRPC, places...), pluginapi.Usage{})
	got := make(map[string]int)
	eventually(t, "both answer", func() bool {
		m, err := asker.ask(asker.ctx, "x", "")
		if err != nil {
			t.Fatal(err)
		}
		got[string(m.Payload)]++
		return got["0"] > 0 && got["1"] > 0
	})
	clear(got)
	for range 10 {
		m, err := asker.ask(asker.ctx, "x", "")
		if err != nil {
			t.Fatal(err)
		}
		got[string(m.Payload)]++
	}
	if got["0"] != 5 || got["1"] != 5 {
		t.Errorf("answered %v", got)
	}
}

// Replies that nobody waits for, and those without an id, are skipped.
func TestRequestSkipsOtherReplies(t *testing.T) {
	responder, asker := pair(t, settings.PatternRPC, "calc", true, anyPort)
	responder.responder("calc", func(m core.Message) []pluginapi.Outgoing {
		other := replyTo(m, "other's")
		other.Message.Headers = servicetest.Headers("correlation-id", "other")
		none := replyTo(m, "nobody's")
		none.Message.Headers = nil
		return []pluginapi.Outgoing{other, none, replyTo(m, "right"), replyTo(m, "late")}
	})
	for range 3 {
		if m, err := asker.ask(asker.ctx, "x", ""); err != nil || string(m.Payload) != "right" {
			t.Errorf("got %s, %v", m.Payload, err)
		}
	}
	eventually(t, "all others are skipped", func() bool { return len(asker.log.Lines("reply skipped", "skipped=9")) == 1 })
}

// A request ends with its context, which is a timeout where the responder is
// there, and with peer_wait where none is.
func TestRequestTimeout(t *testing.T) {
	responder, asker := pair(t, settings.PatternRPC, "calc", true, anyPort)
	got := make(chan core.Message, 1000)
	responder.responder("calc", func(m core.Message) []pluginapi.Outgoing { got <- m; return nil })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-got; cancel() }()
	_, err := asker.ask(ctx, "x", "1")
	fails(t, err, core.FaultCanceled, "request to x")
	eventually(t, "one is sent in its time", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := asker.ask(ctx, "x", "2")
		fails(t, err, core.FaultTimeout, "request to x")
		return len(got) > 0
	})
	if m := <-got; string(m.Payload) != "2" {
		t.Errorf("received %s", m.Payload)
	}
}

func TestRequestNobodyThere(t *testing.T) {
	set := dials(settings.PatternRPC, closed)
	set.PeerWait = core.Duration(50 * time.Millisecond)
	b := connect(t, set, pluginapi.Usage{})
	_, err := b.ask(b.ctx, "x", "1")
	fails(t, err, core.FaultNotFound, "request to x", closed, "not sent")
	set = binds(settings.PatternRPC, anyPort)
	set.PeerWait = core.Duration(50 * time.Millisecond)
	b = connect(t, set, pluginapi.Usage{})
	_, err = b.ask(b.ctx, "x", "1")
	fails(t, err, core.FaultNotFound, b.address()+",") // not the port 0 of the settings
	set = dials(settings.PatternRPC, closed)
	b = connect(t, set, pluginapi.Usage{})
	// Who waited until the time is over must think that somebody was asked.
	eventually(t, "it is told before the time is over", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := b.ask(ctx, "x", "1")
		fails(t, err, core.FaultNotFound, "request to x", closed, "not sent")
		return ctx.Err() == nil
	})
}

// askOnceThere asks as soon as a responder is there.
func (b *bench) askOnceThere(ctx context.Context, name, payload string, headers ...string) (m core.Message, err error) {
	b.t.Helper()
	eventually(b.t, "a responder is there", func() bool {
		m, err = b.ask(ctx, name, payload, headers...)
		f, ok := errors.AsType[*core.Fault](err)
		return !ok || f.Code != core.FaultNotFound
	})
	return m, err
}

// A REP socket of libzmq that gives the correlation id back is a responder like
// any other.
func TestRequestToREP(t *testing.T) {
	b := connect(t, binds(settings.PatternRPC, anyPort), pluginapi.Usage{})
	zmqtest.Python(t, `
s = ctx.socket(zmq.REP)
s.connect(arg[0])
while True:
    name, headers, payload = s.recv_multipart()
    s.send_multipart([b"reply", headers, name + b" " + payload])
`, b.address())
	for i := range 3 {
		m, err := b.askOnceThere(b.ctx, "x", fmt.Sprint(i), "k", "v")
		if err != nil || string(m.Payload) != fmt.Sprint("x ", i) || header(m, "k") != "v" || m.Name != "reply" {
			t.Errorf("got %s %s %v, %v", m.Name, m.Payload, m.Headers, err)
		}
	}
}

// A REP socket that answers with a payload alone answers nobody, and the log says why.
func TestRequestToREPWithoutCorrelationID(t *testing.T) {
	b := connect(t, binds(settings.PatternRPC, anyPort), pluginapi.Usage{})
	zmqtest.Python(t, `
s = ctx.socket(zmq.REP)
s.connect(arg[0])
while True:
    s.recv_multipart()
    s.send(b"4")
`, b.address())
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := b.askOnceThere(ctx, "x", "2+2")
		ended <- err
	}()
	eventually(t, "it is told of", func() bool {
		return len(b.log.Lines("level=WARN", "a reply cannot be read, and is left out", "no correlation-id")) == 1
	})
	if len(ended) > 0 {
		t.Errorf("it is taken for the reply: %v", <-ended)
	}
	cancel()
	fails(t, <-ended, core.FaultCanceled, "request to x")
}

// A responder that is lost ends the requests that it has at once.
func TestRequestLost(t *testing.T) {
	responder, asker := pair(t, settings.PatternRPC, "calc", true, anyPort)
	s := responder.subscribe("calc")
	ended := make(chan error, 3)
	for i := range 3 {
		go func() {
			_, err := asker.ask(asker.ctx, "x", fmt.Sprint(i))
			ended <- err
		}()
	}
	responder.take(s, 3)
	responder.end()
	for range 3 {
		fails(t, <-ended, core.FaultUnavailable, "request to x", "may have been handled")
	}
}

// What waits when the endpoint is closed ends with it.
func TestRequestClosed(t *testing.T) {
	responder, asker := pair(t, settings.PatternRPC, "calc", true, anyPort)
	s := responder.subscribe("calc")
	ended := make(chan error, 1)
	go func() {
		_, err := asker.ask(asker.ctx, "x", "1")
		ended <- err
	}()
	responder.take(s, 1)
	asker.end()
	fails(t, <-ended, core.FaultClosed, "request to x")
	_, err := asker.ask(t.Context(), "x", "2")
	fails(t, err, core.FaultClosed, "request to x")
}

func TestRequestRefuses(t *testing.T) {
	responder, asker := pair(t, settings.PatternRPC, "calc", true, anyPort)
	s := responder.subscribe("calc")
	_, err := responder.ask(t.Context(), "x", "")
	fails(t, err, core.FaultUnsupported, "request to x", "endpoint in", "calc")
	queue := connect(t, binds(settings.PatternQueue, anyPort), pluginapi.Usage{})
	_, err = queue.ask(t.Context(), "x", "")
	fails(t, err, core.FaultUnsupported, "request to x", "queue", "rpc")
	_, err = asker.ask(t.Context(), "x", "", "k", "a\nb")
	fails(t, err, core.FaultInvalid, `"k"`)
	_, err = asker.ask(t.Context(), "", "")
	fails(t, err, core.FaultInvalid, "no name")

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1024)
	ask := func(headers ...string) {
		_, err := asker.ask(ctx, "x", "", headers...)
		ended <- err
	}
	go ask("correlation-id", "mine")
	responder.take(s, 1)
	_, err = asker.ask(ctx, "x", "", "correlation-id", "mine")
	fails(t, err, core.FaultConflict, "mine")
	for range 1023 {
		go ask()
	}
	responder.take(s, 1023)
	_, err = asker.ask(ctx, "x", "")
	fails(t, err, core.FaultExhausted, "1024 requests")
	cancel()
	for range 1024 {
		fails(t, <-ended, core.FaultCanceled)
	}
}

// A reply to a peer that has left is refused, and names it.
func TestReplyToPeerThatLeft(t *testing.T) {
	responder, asker := pair(t, settings.PatternRPC, "calc", true, anyPort)
	got := make(chan core.Message, 1)
	responder.responder("calc", func(m core.Message) []pluginapi.Outgoing { got <- m; return nil })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := asker.ask(ctx, "x", "1")
		ended <- err
	}()
	m := <-got
	cancel()
	<-ended
	asker.end()
	eventually(t, "the peer is gone", func() bool {
		r := responder.publish(replyTo(m, "late"))[0]
		if r.Status != pluginapi.ReceiptRefused {
			return false
		}
		fails(t, r.Fault, core.FaultNotFound, header(m, "reply-to"))
		return true
	})
}

// A reply still leaves when intake has stopped.
func TestReplyAfterStop(t *testing.T) {
	responder, asker := pair(t, settings.PatternRPC, "calc", true, anyPort)
	s := responder.subscribe("calc")
	type answer struct {
		m   core.Message
		err error
	}
	got := make(chan answer, 1)
	go func() {
		m, err := asker.ask(asker.ctx, "x", "1")
		got <- answer{m, err}
	}()
	m := responder.take(s, 1)[0].Message
	s.(pluginapi.IntakeStopper).StopIntake()
	if err := s.Close(responder.ctx); err != nil {
		t.Fatal(err)
	}
	responder.put(replyTo(m, "done"))
	if a := <-got; a.err != nil || string(a.m.Payload) != "done" {
		t.Errorf("got %+v", a)
	}
}
