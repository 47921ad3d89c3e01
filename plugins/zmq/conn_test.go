// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// pair connects a reader and a sender. The one that binds comes first.
func pair(t *testing.T, pattern, name string, readerBinds bool, address string) (reader, sender *bench) {
	t.Helper()
	var u pluginapi.Usage
	if readerBinds {
		reader = connect(t, binds(pattern, address), reading(name))
		return reader, connect(t, dials(pattern, reader.address()), u)
	}
	sender = connect(t, binds(pattern, address), u)
	return connect(t, dials(pattern, sender.address()), reading(name)), sender
}

// addresses are one of each network.
func addresses(t *testing.T) map[string]string {
	return map[string]string{"tcp": anyPort, "ipc": "ipc://" + filepath.Join(t.TempDir(), "s.sock")}
}

// Messages go from a sender to a reader, whoever of them binds, as they were.
func TestQueue(t *testing.T) {
	for network, address := range addresses(t) {
		for _, readerBinds := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, reader binds %v", network, readerBinds), func(t *testing.T) {
				reader, sender := pair(t, settings.PatternQueue, "jobs", readerBinds, address)
				s := reader.subscribe("jobs")
				sender.put(servicetest.Message("jobs", "one", "X-Tenant", "acme", "x", "1", "x", "2"), servicetest.Message("other", ""))
				servicetest.Expect(t, "deliveries", servicetest.Texts(reader.take(s, 2)), "jobs one X-Tenant=acme x=1 x=2", "other ")
				reader.quiet(s)
			})
		}
	}
}

// A message reaches those that subscribed to a prefix of its name; the first one
// too, where the publisher dials.
func TestFanOut(t *testing.T) {
	for network, address := range addresses(t) {
		for _, readerBinds := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, reader binds %v", network, readerBinds), func(t *testing.T) {
				reader, sender := pair(t, settings.PatternFanOut, "events", readerBinds, address)
				s := reader.subscribe("events")
				if !readerBinds { // nobody waits for its subscription
					eventually(t, "it has subscribed", func() bool { return !sender.publish(servicetest.Message("events", "0"))[0].Unrouted })
					reader.take(s, 1)
				}
				if r := sender.publish(servicetest.Message("event", "nobody's")); !r[0].Unrouted || r[0].Status != pluginapi.ReceiptConfirmed {
					t.Errorf("%+v", r)
				}
				sender.put(servicetest.Message("events", "1"), servicetest.Message("events.eu", "2", "k", "v"))
				servicetest.Expect(t, "deliveries", servicetest.Texts(reader.take(s, 2)), "events 1", "events.eu 2 k=v")
				reader.quiet(s)
			})
		}
	}
}

// A fan-out that dials waits for a subscription when it connects. Nobody there is
// no error.
func TestFanOutNobodyThere(t *testing.T) {
	set := dials(settings.PatternFanOut, closed)
	set.PeerWait = core.Duration(50 * time.Millisecond)
	b := connect(t, set, pluginapi.Usage{})
	if len(b.log.Lines("WARN", "nobody has subscribed", closed)) != 1 {
		t.Errorf("logged %s", b.log)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	set.PeerWait = core.Duration(10 * time.Second)
	_, err := configure(t, set, nil).Connect(ctx, nil)
	if f, ok := errors.AsType[*core.Fault](err); !ok || f.Code != core.FaultCanceled {
		t.Errorf("got %v", err)
	}
}

// What may not be published is refused again at each publish, naming both.
func TestPublishRefuses(t *testing.T) {
	for _, w := range publishers() {
		if w.want == "" {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			var u pluginapi.Usage
			if w.reader != "" {
				u = reading(w.reader)
			}
			b := connect(t, w.set, u)
			r := b.publish(servicetest.Message(w.to, "x"))[0]
			if r.Status != pluginapi.ReceiptRefused || r.Fault.Transient {
				t.Fatalf("%+v", r)
			}
			for word := range strings.SplitSeq(w.want, "; ") {
				if text := r.Fault.Error(); !strings.Contains(text, word) {
					t.Errorf("%q lacks %q", text, word)
				}
			}
		})
	}
}

// A queue or fan-out that binds publishes to itself, whether its subscription is
// open yet or not.
func TestOwn(t *testing.T) {
	for _, pattern := range []string{settings.PatternQueue, settings.PatternFanOut} {
		t.Run(pattern, func(t *testing.T) {
			b := connect(t, binds(pattern, anyPort), reading("jobs"))
			b.put(servicetest.Message("jobs", "early"))
			s := b.subscribe("jobs")
			b.put(servicetest.Message("jobs", "1", "k", "v"))
			want := []string{"jobs early", "jobs 1 k=v"}
			if pattern == settings.PatternFanOut {
				b.put(servicetest.Message("jobs.eu", "2"))
				want = append(want, "jobs.eu 2")
			}
			servicetest.Expect(t, "deliveries", servicetest.Texts(b.take(s, len(want))), want...)
			b.quiet(s)
		})
	}
}

// Headers that no line can carry are refused, by header and destination, also
// where they would not leave the process.
func TestPublishRefusesHeaders_S_ZMQ_35(t *testing.T) {
	own := connect(t, binds(settings.PatternQueue, anyPort), reading("jobs"))
	out := connect(t, binds(settings.PatternQueue, anyPort), pluginapi.Usage{})
	for _, b := range []*bench{own, out} {
		for _, h := range [][2]string{{"x", "a\nb"}, {"x:y", "a"}, {"x", " a"}, {"x", "\xff"}} {
			r := b.publish(servicetest.Message("jobs", "1", h[0], h[1]))[0]
			if r.Status != pluginapi.ReceiptRefused || r.Fault.Transient || !strings.Contains(r.Fault.Error(), h[0]) || !strings.Contains(r.Fault.Error(), "jobs") {
				t.Errorf("%q: %+v %v", h, r, r.Fault)
			}
		}
	}
}

func TestPublishRefusesLimits(t *testing.T) {
	set := binds(settings.PatternQueue, anyPort)
	set.MaxMessage = 10
	b := connect(t, set, reading("jobs"))
	later := servicetest.Message("jobs", "1")
	later.DeliverAfter = time.Second
	for what, m := range map[string]pluginapi.Outgoing{
		"limit": servicetest.Message("jobs", "12345678", "abc", ""), "later": later, "no name": servicetest.Message("", "x"),
	} {
		if r := b.publish(m)[0]; r.Status != pluginapi.ReceiptRefused || !strings.Contains(r.Fault.Error(), what) {
			t.Errorf("%s: %+v %v", what, r, r.Fault)
		}
	}
	b.put(servicetest.Message("jobs", "1234567890"))
}

// A second subscription on an endpoint is refused by both names.
func TestSubscribeTwice_S_ZMQ_36(t *testing.T) {
	b := connect(t, binds(settings.PatternQueue, anyPort), reading("jobs"))
	b.subscribe("jobs")
	_, err := b.conn.Subscribe(b.ctx, pluginapi.Registration{Name: "mails"})
	if f, ok := errors.AsType[*core.Fault](err); !ok || f.Code != core.FaultConflict {
		t.Fatalf("got %v", err)
	}
	for _, word := range []string{"jobs", "mails", "endpoint in"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%v lacks %s", err, word)
		}
	}
}

// An address that cannot be listened on is refused with the address and what to
// do.
func TestConnectTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := "tcp://" + l.Addr().String()
	_, err = resume(t, binds(settings.PatternQueue, address), reading("jobs"), nil)
	f, ok := errors.AsType[*core.Fault](err)
	if !ok || f.Code != core.FaultConflict || len(f.Diagnostics) != 1 || f.Diagnostics[0].Path != "bind" || f.Diagnostics[0].Fix == "" {
		t.Fatalf("got %+v", err)
	}
	if !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "endpoint in") {
		t.Errorf("got %v", err)
	}
}

// A port that was chosen is taken again by the next life, and by a subscription
// that is opened where nothing was inspected.
func TestResume(t *testing.T) {
	b := connect(t, binds(settings.PatternQueue, anyPort), pluginapi.Usage{})
	address := b.address()
	kept := make(chan []byte, 4)
	b.conn.(pluginapi.Resumer).ReportResume(func(r []byte) { kept <- r })
	s := b.subscribe("jobs")
	if b.address() != address {
		t.Errorf("listens at %s, before at %s", b.address(), address)
	}
	sender := connect(t, dials(settings.PatternQueue, address), pluginapi.Usage{})
	sender.put(servicetest.Message("jobs", "1"))
	servicetest.Expect(t, "deliveries", servicetest.Texts(b.take(s, 1)), "jobs 1")
	state := b.end()
	if got := <-kept; string(got) != string(state) || len(state) == 0 {
		t.Errorf("reported %q, returned %q", got, state)
	}
	again, err := resume(t, binds(settings.PatternQueue, anyPort), reading("jobs"), state)
	if err != nil || again.address() != address {
		t.Errorf("listens at %s, %v; before at %s", again.address(), err, address)
	}
}

// An endpoint that has sent something does not become one that reads.
func TestSubscribeOnSender(t *testing.T) {
	b := connect(t, binds(settings.PatternFanOut, anyPort), pluginapi.Usage{})
	b.publish(servicetest.Message("events", "1"))
	_, err := b.conn.Subscribe(b.ctx, pluginapi.Registration{Name: "events"})
	if f, ok := errors.AsType[*core.Fault](err); !ok || f.Code != core.FaultConflict || !strings.Contains(err.Error(), "sends already") {
		t.Errorf("got %v", err)
	}
}

// A subscription that was closed can be opened again. What was there is lost, and
// said so.
func TestSubscribeAgain(t *testing.T) {
	b := connect(t, binds(settings.PatternQueue, anyPort), reading("jobs"))
	s := b.subscribe("jobs")
	b.put(servicetest.Message("jobs", "1"), servicetest.Message("jobs", "2"))
	b.take(s, 1)
	s.(pluginapi.IntakeStopper).StopIntake()
	if r := b.publish(servicetest.Message("jobs", "3"))[0]; r.Status != pluginapi.ReceiptRefused || r.Fault.Code != core.FaultClosed {
		t.Errorf("published behind the stop: %+v", r)
	}
	if err := s.Close(b.ctx); err != nil {
		t.Fatal(err)
	}
	if lines := b.log.Lines("WARN", "messages are lost", "subscription=jobs", "own=1"); len(lines) != 1 {
		t.Errorf("logged %s", b.log)
	}
	s = b.subscribe("jobs")
	b.put(servicetest.Message("jobs", "4"))
	sender := connect(t, dials(settings.PatternQueue, b.address()), pluginapi.Usage{})
	sender.put(servicetest.Message("jobs", "5"))
	servicetest.Expect(t, "deliveries", servicetest.Texts(b.take(s, 2)), "jobs 4", "jobs 5")
	b.end()
	if lines := b.log.Lines("messages are lost"); len(lines) != 1 {
		t.Errorf("logged %s", b.log)
	}
}

// The link of an endpoint that dials is up while a peer is connected.
func TestReportLink(t *testing.T) {
	reader := connect(t, binds(settings.PatternQueue, anyPort), reading("jobs"))
	sender := connect(t, dials(settings.PatternQueue, reader.address()), pluginapi.Usage{})
	states := make(chan pluginapi.LinkState, 16)
	sender.conn.(pluginapi.LinkReporter).ReportLink(func(s pluginapi.LinkState) { states <- s })
	if s := <-states; !s.Up {
		t.Errorf("got %+v", s)
	}
	reader.end()
	if s := <-states; s.Up || s.Reason == "" {
		t.Errorf("got %+v", s)
	}
}

// A message for nobody is refused after peer_wait, and names both.
func TestNoPeer(t *testing.T) {
	set := dials(settings.PatternQueue, closed)
	set.PeerWait = core.Duration(30 * time.Millisecond)
	b := connect(t, set, pluginapi.Usage{})
	r := b.publish(servicetest.Message("jobs", "1"))[0]
	if r.Status != pluginapi.ReceiptRefused || !r.Fault.Transient || !strings.Contains(r.Fault.Error(), "jobs") || !strings.Contains(r.Fault.Error(), closed) {
		t.Errorf("%+v %v", r, r.Fault)
	}
}

func TestAfterClose(t *testing.T) {
	b := connect(t, binds(settings.PatternQueue, anyPort), reading("jobs"))
	b.end()
	if r := servicetest.Publish(t.Context(), t, b.conn, servicetest.Message("jobs", "1"))[0]; r.Status != pluginapi.ReceiptRefused || r.Fault.Code != core.FaultClosed {
		t.Errorf("%+v", r)
	}
	if _, err := b.conn.Subscribe(t.Context(), pluginapi.Registration{Name: "jobs"}); err == nil {
		t.Error("subscribed")
	}
	if _, err := b.conn.Close(t.Context()); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

// Where the socket cannot be opened again to read, calls say why, until it can.
func TestExchangeFails(t *testing.T) {
	outer, err := os.MkdirTemp("", "ls-zmq-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(outer) })
	folder := filepath.Join(outer, "run")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	b := connect(t, binds(settings.PatternQueue, "ipc://"+filepath.Join(folder, "s")), pluginapi.Usage{})
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	reason := "the folder " + folder + " does not exist"
	if _, err := b.conn.Subscribe(t.Context(), pluginapi.Registration{Name: "jobs"}); err == nil || !strings.Contains(err.Error(), reason) {
		t.Errorf("subscribe: %v", err)
	}
	if r := b.publish(servicetest.Message("jobs", "1"))[0]; r.Fault == nil || !strings.Contains(r.Fault.Error(), `publish to "jobs": `) || !strings.Contains(r.Fault.Error(), reason) {
		t.Errorf("publish: %+v, %v", r, r.Fault)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	s := b.subscribe("jobs")
	b.put(servicetest.Message("jobs", "2"))
	if d := b.take(s, 1)[0]; string(d.Message.Payload) != "2" {
		t.Errorf("got %s", d.Message.Payload)
	}
}

// A message over the reader's limit is delivered by its name alone, as one that
// cannot be read; the next one is read.
func TestReceiveOverLimit(t *testing.T) {
	for _, pattern := range []string{settings.PatternQueue, settings.PatternRPC} {
		t.Run(pattern, func(t *testing.T) {
			set := binds(pattern, anyPort)
			set.MaxMessage = 1000
			reader := connect(t, set, reading("jobs"))
			s := reader.subscribe("jobs")
			sender := connect(t, dials(pattern, reader.address()), pluginapi.Usage{})
			for _, size := range []int{900, 2000} {
				m := servicetest.Message("jobs", strings.Repeat("x", size), "k", "v")
				if pattern == settings.PatternQueue {
					sender.put(m)
					continue
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { _, _ = sender.conn.(pluginapi.Requester).Request(ctx, m) }()
			}
			for range 2 {
				d := reader.take(s, 1)[0]
				switch size := len(d.Message.Payload); {
				case size == 900 && d.Undecodable == nil:
				case size == 0 && d.Undecodable != nil && d.Undecodable.Code == core.FaultTooLarge && header(d.Message, "k") == "":
				default:
					t.Errorf("%d bytes, headers %v, %v", size, d.Message.Headers, d.Undecodable)
				}
				if pattern == settings.PatternRPC && header(d.Message, "reply-to") == "" {
					t.Errorf("headers %v", d.Message.Headers)
				}
			}
		})
	}
}
