// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// most is the largest payload with headers.
const most = 64 << 20

// large is a message of a size.
func large(payload, headers, value int) core.Message {
	m := core.Message{Payload: make([]byte, payload)}
	for i := range min(payload, 1<<16) {
		m.Payload[i] = byte(i >> 8)
	}
	for done := 1 << 16; done < payload; done *= 2 { // it begins anew
		copy(m.Payload[done:], m.Payload[:done])
	}
	for i := range headers {
		m.Headers = append(m.Headers, core.Header{Name: fmt.Sprintf("h%04d", i), Value: bytes.Repeat([]byte{byte('a' + i%26)}, value)})
	}
	return m
}

// sum tells messages apart by all they hold.
func sum(m core.Message) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d ", len(m.Payload))
	h.Write(m.Payload)
	for _, hd := range m.Headers {
		fmt.Fprintf(h, "%q=%q;", hd.Name, hd.Value)
	}
	return fmt.Sprintf("%d bytes, %d headers, %x", len(m.Payload), len(m.Headers), h.Sum(nil)[:8])
}

// L-06: messages of 3, 5 and 64 MiB, and one with 1 MiB in 3000 headers, pass
// byte-equal from plugin to host and back. Above the limit one message is
// refused by name, size and limit; the streams stay, and the next one passes.
func TestL06LargeMessages(t *testing.T) {
	t.Parallel()
	fits := []core.Message{
		large(3<<20, 0, 0), large(5<<20, 0, 0), large(most, 0, 0), large(10, 3000, 350-5), large(most-10*(5+95), 10, 95),
	}
	tooLarge := []core.Message{large(most+1, 0, 0), large(most-10*100+1, 10, 95), large(0, frame.MaxHeaders+1, 0)}
	b := newBench(t)
	s := newService(t)
	in := b.attach(s, "mem", b.Settings.With("orders", settings.KindA()))
	var received []string
	var failed []error
	next := make(chan struct{}, 100)
	publisher := host.To[core.Message](s.Host, in.To("out"))
	host.Handle(in.Subscription("orders"), func(ctx context.Context, m *host.Message[core.Message]) error {
		received = append(received, sum(m.Value))
		_, err := publisher.Publish(ctx, m.Value)
		if err != nil {
			failed = append(failed, err)
		}
		next <- struct{}{}
		return nil
	})
	handled := func() {
		t.Helper()
		select {
		case <-next:
		case <-b.ctx.Done():
			t.Fatalf("a message is not handled; %v", b.Account())
		}
	}
	s.serve()
	plugin := b.client("mem").PID()
	var want []string
	for _, m := range fits {
		b.Publish("orders", memory.Message{Payload: m.Payload, Headers: m.Headers})
		want = append(want, sum(m))
		handled()
	}
	if diff := cmp.Diff(want, received); diff != "" || len(failed) > 0 {
		t.Errorf("from plugin to host (-want +got):\n%s%v", diff, failed)
	}
	var got []string
	for _, m := range b.Published("out") {
		got = append(got, sum(core.Message{Payload: m.Payload, Headers: m.Headers}))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("from host to plugin (-want +got):\n%s", diff)
	}

	for _, m := range tooLarge {
		_, err := publisher.Publish(b.ctx, m)
		var refused *host.PublishError
		var fault *core.Fault
		if !errors.As(err, &refused) || refused.MaybeSent || !errors.As(err, &fault) || fault.Code != core.FaultTooLarge {
			t.Errorf("publishing %s: got %v", sum(m)[:20], err)
			continue
		}
		if size := len(m.Payload) + m.Headers.Size(); len(m.Headers) <= frame.MaxHeaders &&
			(!strings.Contains(err.Error(), fmt.Sprint(size)) || !strings.Contains(err.Error(), fmt.Sprint(most))) {
			t.Errorf("%v does not name %d and %d", err, size, most)
		}
	}
	// The memory broker itself cannot carry that many headers.
	tooLarge = tooLarge[:2]
	for _, m := range tooLarge {
		b.Publish("orders", memory.Message{Payload: m.Payload, Headers: m.Headers})
	}
	b.Publish("orders", memory.Text("next"))
	handled()
	b.must(b.WaitPublished(b.ctx, "out", len(fits)+1))
	b.must(b.WaitIdle(b.ctx, "orders"))
	lines := s.log.of("L-DEC", "orders")
	if len(lines) != len(tooLarge) {
		t.Errorf("%d messages were refused to the host, want %d: %v", len(lines), len(tooLarge), lines)
	}
	for _, l := range lines {
		if !strings.Contains(l.text("error"), fmt.Sprint(most)) {
			t.Errorf("%v does not name the limit", l)
		}
	}
	if a := b.Account("orders"); a.Rejected != len(tooLarge) || a.Acked != len(fits)+1 {
		t.Errorf("account: %v", a)
	}
	if c := b.client("mem"); c.PID() != plugin || c.Generation() != 1 {
		t.Errorf("the plugin is process %d, generation %d", c.PID(), c.Generation())
	}
	s.stops()
}

// L-06 over ZeroMQ, from service to service.
func TestL06LargeMessagesOverZeroMQ(t *testing.T) {
	t.Parallel()
	fits := []core.Message{
		large(3<<20, 0, 0), large(5<<20, 0, 0), large(10, 3000, 350-5), large(most-10*(5+95), 10, 95),
	}
	tooLarge := []core.Message{large(most+1, 0, 0), large(most-10*100+1, 10, 95), large(0, frame.MaxHeaders+1, 0)}
	r := newService(t)
	in := r.zmq("in", bound("queue", anyPort))
	received := make(chan string, len(fits)+1)
	host.Handle(in.Subscription("jobs"), func(_ context.Context, m *host.Message[core.Message]) error {
		received <- sum(m.Value)
		return nil
	})
	r.serve()
	s := newService(t)
	out := s.zmq("out", dialing("queue", r.at(in)))
	to := host.To[core.Message](s.Host, out.To("jobs"))
	s.serve()
	expect := func(m core.Message) {
		t.Helper()
		if _, err := to.Publish(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-received:
			if diff := cmp.Diff(sum(m), got); diff != "" {
				t.Errorf("received (-want +got):\n%s", diff)
			}
		case <-time.After(patience):
			t.Fatal("nothing is received")
		}
	}
	for _, m := range fits {
		expect(m)
	}
	for _, m := range tooLarge {
		var f *core.Fault
		if _, err := to.Publish(t.Context(), m); !errors.As(err, &f) || f.Code != core.FaultTooLarge || !strings.Contains(err.Error(), "limit of") {
			t.Errorf("got %v", err)
		}
		expect(large(100, 1, 1))
	}
	r.stops()
	s.stops()
}
