// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/poison"
	"github.com/longshore-go/longshore/plugins/zmq/internal/intake"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
)

// window is what hosts grant to sources that nothing can be settled of.
const window = 64

// handled is a host with a window: its handler runs on a goroutine of its own,
// one message at a time, and gives the credit back. It ends after n messages, or
// when handle says so.
func (b *bench) handled(n int, handle func(m *core.Message) (goOn bool)) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), testLimit)
	defer cancel()
	work := make(chan core.Message, window)
	credit := make(chan struct{}, window)
	var handler sync.WaitGroup
	handler.Go(func() {
		defer cancel()
		for range n {
			select {
			case m := <-work:
				if !handle(&m) {
					return
				}
				credit <- struct{}{}
			case <-ctx.Done():
				b.t.Error("it stands still")
				return
			}
		}
	})
	defer handler.Wait()
	for room := window; ; {
		for more := true; more; {
			select {
			case <-credit:
				room++
			default:
				more = false
			}
		}
		if room == 0 {
			select {
			case <-credit:
				room++
			case <-ctx.Done():
				return
			}
		}
		batch, err := b.in.Receive(ctx, pluginapi.Room{Messages: room, Bytes: 8 << 20})
		if err != nil {
			return
		}
		room -= len(batch.Deliveries)
		for i := range batch.Deliveries {
			work <- batch.Deliveries[i].Message
		}
	}
}

// flood makes peers send messages that count up until the test ends.
func (b *bench) flood(peers int) {
	var all sync.WaitGroup
	var conns []*remote
	for i := range peers {
		p := b.dial(zmq4.Push, "")
		conns = append(conns, p)
		all.Go(func() {
			for n := 0; ; n += 100 {
				var raw []byte
				for k := range 100 {
					text := fmt.Sprintf("p%d %d", i, n+k)
					raw = message.Append(raw, &core.Message{Payload: []byte(text)}, "jobs")
				}
				if _, err := p.nc.Write(raw); err != nil {
					return
				}
			}
		})
	}
	b.t.Cleanup(func() {
		for _, p := range conns {
			p.nc.Close()
		}
		all.Wait()
	})
}

// S-ZMQ-05 with every message failing for ever: a bound queue whose copies went
// through its own socket would stand still with the window full of deliveries
// that wait for their copies, and the socket full of new messages.
func TestS_ZMQ_05_AllMessagesFailForEver(t *testing.T) {
	total := 1_000_000
	if poison.On {
		total = 30_000
	}
	b := listen(t, zmq4.Pull, intake.Options{Name: "jobs"}, nil)
	b.flood(4)
	seen := map[string]int{}
	b.handled(total, func(m *core.Message) bool {
		seen[string(m.Payload)]++
		if f := b.in.Own(*m, pluginapi.PurposeRetry); f != nil {
			t.Errorf("a copy is refused: %v", f)
			return false
		}
		return true
	})
	// New messages are let in as long as there are not too many copies, and are few.
	if len(seen) <= window+total/1000 || len(seen) > window+4096+intake.BatchMessages {
		t.Errorf("%d messages went round, want more than the window's %d and at most 4096 more", len(seen), window)
	}
	var all []string
	for text := range seen {
		all = append(all, text)
	}
	last := map[string]int{}
	for _, text := range all {
		who, number, _ := strings.Cut(text, " ")
		var n int
		fmt.Sscan(number, &n)
		last[who] = max(last[who], n)
	}
	sum := 0
	for _, n := range last {
		sum += n + 1
	}
	if len(last) != 4 || sum != len(seen) {
		t.Errorf("%d of 4 peers were read, and %d of %d messages are lost", len(last), sum-len(seen), sum)
	}
}

// S-ZMQ-06 with every message failing twice under a cap.
func TestS_ZMQ_06_AllMessagesFailTwice(t *testing.T) {
	const each, runs = 5000, 3
	b := listen(t, zmq4.Pull, intake.Options{Name: "jobs"}, nil)
	for i := range 4 {
		p := b.dial(zmq4.Push, "")
		go p.nc.Write(encoded(fmt.Sprint("p", i), each))
	}
	seen := map[string]int{}
	b.handled(4*each*runs, func(m *core.Message) bool {
		seen[string(m.Payload)]++
		if seen[string(m.Payload)] == runs {
			return true
		}
		if f := b.in.Own(*m, pluginapi.PurposeRetry); f != nil {
			t.Errorf("a copy is refused: %v", f)
			return false
		}
		return true
	})
	for text, n := range seen {
		if n != runs {
			t.Errorf("%s was handled %d times, want %d", text, n, runs)
		}
	}
	if len(seen) != 4*each {
		t.Errorf("%d messages were handled, want %d", len(seen), 4*each)
	}
}

func encoded(who string, n int) []byte {
	var raw []byte
	for _, text := range numbers(who, n) {
		raw = message.Append(raw, &core.Message{Payload: []byte(text)}, "jobs")
	}
	return raw
}

// A window full of messages that fail for ever does not keep new ones out.
func TestNewMessagesAmongCopiesThatFailForEver(t *testing.T) {
	const wanted = 200
	b := listen(t, zmq4.Pull, intake.Options{Name: "jobs"}, nil)
	for _, text := range numbers("fails", window) {
		own(t, b.in, text, pluginapi.PurposeRetry)
	}
	b.flood(2)
	fine := 0
	b.handled(wanted*8*window, func(m *core.Message) bool {
		if strings.HasPrefix(string(m.Payload), "fails") {
			return b.in.Own(*m, pluginapi.PurposeRetry) == nil
		}
		fine++
		return fine < wanted
	})
	if fine < wanted {
		t.Errorf("%d new messages came among %d that fail for ever, want %d", fine, window, wanted)
	}
}

// Where very many fail, new messages stay where they are.
func TestManyCopiesKeepNewMessagesOut(t *testing.T) {
	b := listen(t, zmq4.Pull, intake.Options{Name: "jobs"}, nil)
	b.dial(zmq4.Push, "").send("jobs", "new")
	eventually(t, func() bool { return b.in.Ready() == 1 })
	for _, text := range numbers("fails", 5000) {
		own(t, b.in, text, pluginapi.PurposeRetry)
	}
	b.handled(50_000, func(m *core.Message) bool {
		if string(m.Payload) == "new" {
			t.Error("a new message is let in")
		}
		return b.in.Own(*m, pluginapi.PurposeRetry) == nil
	})
}

// Copies go before everything else, in their order.
func TestCopiesComeFirst(t *testing.T) {
	b := listen(t, zmq4.Pull, intake.Options{Name: "jobs"}, nil)
	p := b.dial(zmq4.Push, "")
	p.send("jobs", numbers("peer", 3)...)
	eventually(t, func() bool { return b.in.Ready() == 1 })
	for _, text := range numbers("service", 2) {
		own(t, b.in, text, pluginapi.PurposeApplication)
	}
	for i, text := range numbers("copy", 4) {
		own(t, b.in, text, []pluginapi.Purpose{pluginapi.PurposeRetry, pluginapi.PurposeDeadLetter}[i%2])
	}
	got := b.texts(3, pluginapi.Room{Messages: 3, Bytes: 1 << 20})
	got = append(got, b.texts(6, wide)...)
	want := "[copy 0 copy 1 copy 2 copy 3 peer 0 peer 1 peer 2 service 0 service 1]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}

func own(t testing.TB, in *intake.Intake, text string, p pluginapi.Purpose) {
	t.Helper()
	if f := in.Own(core.Message{Name: "jobs", Payload: []byte(text)}, p); f != nil {
		t.Fatal(f)
	}
}

// What the service publishes to itself takes turns with the peers, until there
// is much of it.
func TestOwnMessagesTakeTurns(t *testing.T) {
	b := listen(t, zmq4.Pull, intake.Options{Name: "jobs"}, nil)
	b.flood(1)
	release(b.receive(wide))
	for i := range 8000 {
		own(t, b.in, fmt.Sprint("service ", i), pluginapi.PurposeApplication)
	}
	share := func(batches int) (service, all int) {
		for range batches {
			eventually(t, func() bool { return b.in.Ready() == 2 })
			for _, text := range b.texts(1, wide) {
				all++
				if strings.HasPrefix(text, "service ") {
					service++
				}
			}
		}
		return service, all
	}
	if n, all := share(20); n < all/8 || n > 7*all/8 {
		t.Errorf("of %d messages %d are the service's own, want each to have its turns", all, n)
	}
	for i := range 30_000 {
		own(t, b.in, fmt.Sprint("service ", i), pluginapi.PurposeApplication)
	}
	if n, all := share(20); n < all*9/10 {
		t.Errorf("with many waiting %d of %d are the service's own, want nearly all", n, all)
	}
}

// The own queue has bounds, apart for copies and the rest, and never waits.
func TestOwnQueueIsBounded(t *testing.T) {
	b := listen(t, zmq4.Pull, intake.Options{Name: "jobs"}, nil)
	refused := func(payload []byte, p pluginapi.Purpose) bool {
		f := b.in.Own(core.Message{Name: "jobs", Payload: payload}, p)
		if f != nil && (f.Code != core.FaultExhausted || !f.Transient || !strings.Contains(f.Message, "jobs")) {
			t.Fatalf("refused with %v", f)
		}
		return f != nil
	}
	for _, c := range []struct {
		purpose  pluginapi.Purpose
		payload  int
		messages int
	}{
		{pluginapi.PurposeApplication, 0, 65_536},
		{pluginapi.PurposeApplication, 1 << 20, 64},
		{pluginapi.PurposeRetry, 0, 262_144},
	} {
		body := make([]byte, c.payload)
		for i := range c.messages {
			if refused(body, c.purpose) {
				t.Fatalf("message %d of %d bytes is refused", i, c.payload)
			}
		}
		if !refused(body, c.purpose) {
			t.Errorf("more than %d messages of %d bytes are taken", c.messages, c.payload)
		}
		if c.purpose == pluginapi.PurposeApplication && refused(nil, pluginapi.PurposeDeadLetter) {
			t.Error("a dead letter has no place")
		}
		b.texts(1, pluginapi.Room{Messages: 1, Bytes: 1})
		b.texts(1, pluginapi.Room{Messages: 1, Bytes: 1})
		if refused(body, c.purpose) {
			t.Error("it is refused although there is room again")
		}
		for b.in.Waiting() > 0 {
			release(b.receive(wide))
		}
	}
}

// What a message lay in is the caller's again.
func TestOwnMessagesAreCopied(t *testing.T) {
	b := listen(t, zmq4.Pull, intake.Options{Name: "jobs"}, nil)
	m := core.Message{Name: "jobs", Payload: []byte("m1"), Headers: core.Headers{{Name: "a", Value: []byte("1")}}}
	if f := b.in.Own(m, pluginapi.PurposeRetry); f != nil {
		t.Fatal(f)
	}
	m.Payload[0], m.Headers[0].Value[0] = 'x', 'x'
	got := b.receive(wide).Deliveries[0].Message
	if string(got.Payload) != "m1" || got.Headers.Value("a") != "1" {
		t.Errorf("got %v %q", got.Headers, got.Payload)
	}
}
