// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// Each message goes to one of the peers, in turn.
func TestEachMessageGoesToOne(t *testing.T) {
	for pattern, kind := range map[string]zmq4.SocketType{settings.PatternQueue: zmq4.Pull, settings.PatternRPC: zmq4.Router} {
		t.Run(pattern, func(t *testing.T) {
			sender := connect(t, binds(pattern, anyPort), pluginapi.Usage{})
			peers := []*stranger{meet(t, sender.address(), kind, ""), meet(t, sender.address(), kind, "")}
			came := make(chan int, 100)
			for i, p := range peers {
				go func() {
					for {
						if _, _, err := p.hears(); err != nil {
							return
						}
						came <- i
					}
				}()
			}
			send := func() int { // who gets it
				if pattern == settings.PatternQueue {
					sender.put(servicetest.Message("jobs", "x"))
					return <-came
				}
				ctx, cancel := context.WithCancel(sender.ctx)
				ended := make(chan struct{})
				go func() { defer close(ended); _, _ = sender.ask(ctx, "jobs", "x") }() // nobody answers
				defer func() { cancel(); <-ended }()
				return <-came
			}
			var seen [2]int
			eventually(t, "both are there", func() bool {
				seen[send()]++
				return seen[0] > 0 && seen[1] > 0
			})
			seen = [2]int{}
			const n = 10
			for range n {
				seen[send()]++
			}
			if seen != [2]int{n / 2, n / 2} || len(came) > 0 {
				t.Errorf("shares %v and %d more, want %d each", seen, len(came), n/2)
			}
		})
	}
}

// A message for nobody is never reported as sent, whoever binds, and also when
// the last peer has left.
func TestNobodyIsThere(t *testing.T) {
	for _, pattern := range []string{settings.PatternQueue, settings.PatternFanOut} {
		for _, binding := range []bool{true, false} {
			if pattern == settings.PatternFanOut && binding {
				continue // it publishes to those that are there, which may be none
			}
			t.Run(fmt.Sprintf("%s, sender binds %v", pattern, binding), func(t *testing.T) {
				var sender, reader *bench
				if binding {
					set := binds(pattern, anyPort)
					set.PeerWait = core.Duration(50 * time.Millisecond)
					sender = connect(t, set, pluginapi.Usage{})
					reader = connect(t, dials(pattern, sender.address()), reading("jobs"))
				} else {
					reader = connect(t, binds(pattern, anyPort), reading("jobs"))
					set := dials(pattern, reader.address())
					set.PeerWait = core.Duration(50 * time.Millisecond)
					sender = connect(t, set, pluginapi.Usage{})
				}
				eventually(t, "a message arrives", func() bool {
					r := sender.publish(servicetest.Message("jobs", "1"))[0]
					return r.Status == pluginapi.ReceiptConfirmed && !r.Unrouted
				})
				reader.end()
				eventually(t, "the end is seen without a message that is lost", func() bool {
					return sender.publish(servicetest.Message("jobs", "2"))[0].Status == pluginapi.ReceiptRefused
				})
				r := sender.publish(servicetest.Message("jobs", "3"))[0]
				if r.Status != pluginapi.ReceiptRefused || !r.Fault.Transient || !strings.Contains(r.Fault.Error(), "jobs") {
					t.Errorf("%+v %v", r, r.Fault)
				}
			})
		}
	}
}

// The end of a peer is seen without a message, so none is given to it.
func TestEndsAreSeenWithoutSending(t *testing.T) {
	stays := connect(t, binds(settings.PatternQueue, anyPort), reading("jobs"))
	leaves := connect(t, binds(settings.PatternQueue, anyPort), reading("jobs"))
	sender := connect(t, dials(settings.PatternQueue, stays.address(), leaves.address()), pluginapi.Usage{})
	s := stays.subscribe("jobs")
	eventually(t, "both are connected", func() bool { return len(sender.log.Lines("connected to a peer")) == 2 })
	place := leaves.address()
	leaves.end()
	eventually(t, "the end is told", func() bool { return len(sender.log.Lines("WARN", "is lost", place)) == 1 })
	var want []string
	for i := range 10 {
		sender.put(servicetest.Message("jobs", fmt.Sprint(i)))
		want = append(want, fmt.Sprint("jobs ", i))
	}
	servicetest.Expect(t, "deliveries", servicetest.Texts(stays.take(s, len(want))), want...)
}

// Dialing goes on beside publishing, at every address and for as long as it takes.
func TestDialsBesidePublishing(t *testing.T) {
	var places []string
	for range 2 {
		places = append(places, heldPort(t))
	}
	sender := connect(t, dials(settings.PatternQueue, places...), pluginapi.Usage{})
	for round := range 2 { // the first dials, the second dials again
		receipts := make(chan pluginapi.Receipt, 2)
		sender.conn.Publish(sender.ctx, []pluginapi.Outgoing{servicetest.Message("jobs", "1"), servicetest.Message("jobs", "2")},
			func(_ int, r pluginapi.Receipt) { receipts <- r })
		if n := len(receipts); n > 0 {
			t.Errorf("Publish has waited for %d receipts", n)
		}
		first := connect(t, binds(settings.PatternQueue, places[0]), reading("jobs"))
		servicetest.Expect(t, "deliveries", servicetest.Texts(first.take(first.subscribe("jobs"), 2)), "jobs 1", "jobs 2")
		for range 2 {
			if r := <-receipts; r.Status != pluginapi.ReceiptConfirmed {
				t.Errorf("%+v %v", r, r.Fault)
			}
		}
		second := connect(t, binds(settings.PatternQueue, places[1]), reading("jobs"))
		got := second.deliveries(second.subscribe("jobs"))
		eventually(t, "the other address has its share", func() bool {
			sender.put(servicetest.Message("jobs", "3"))
			return len(got) > 0
		})
		first.end()
		second.end()
		eventually(t, fmt.Sprintf("both ends of round %d are seen", round), func() bool {
			return len(sender.log.Lines("WARN", "is lost")) == 2*(round+1)
		})
	}
}

// A subscriber that does not read holds nobody up, costs a bounded memory, and
// what it misses is told.
func TestSlowSubscriber(t *testing.T) {
	set := binds(settings.PatternFanOut, anyPort)
	set.SendQueueBytes = 4 << 20
	sender := connect(t, set, pluginapi.Usage{})
	slow := meet(t, sender.address(), zmq4.Sub, "")
	slow.say("\x01jobs")
	reader := connect(t, dials(settings.PatternFanOut, sender.address()), reading("jobs"))
	got := reader.deliveries(reader.subscribe("jobs"))
	eventually(t, "the reader has subscribed", func() bool {
		sender.publish(servicetest.Message("jobs", ""))
		return len(got) > 0
	})
	payload := strings.Repeat("x", 256<<10)
	const n = 200
	missing := n
	for range n {
		sender.put(servicetest.Message("jobs", payload))
		for len(next(t, got)) < len(payload) { // the first, empty ones
		}
		missing--
	}
	if missing != 0 {
		t.Errorf("%d of %d messages did not reach the one that reads", missing, n)
	}
	lines := sender.log.Lines("WARN", "does not read as fast", "peer=tcp://"+slow.nc.LocalAddr().String(), "dropped=")
	if len(lines) == 0 {
		t.Errorf("logged %s", sender.log)
	}
}

// Endpoints that are closed leave nothing running.
func TestEndpointsLeaveNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 30 {
		for _, pattern := range []string{settings.PatternQueue, settings.PatternFanOut, settings.PatternRPC} {
			reader := connect(t, binds(pattern, anyPort), reading("jobs"))
			reader.end()
			sender := connect(t, binds(pattern, anyPort), pluginapi.Usage{})
			sender.end()
		}
	}
	eventually(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
}

// Closing sends what was published.
func TestCloseSendsWhatIsQueued(t *testing.T) {
	for _, pattern := range []string{settings.PatternQueue, settings.PatternFanOut} {
		for network, address := range addresses(t) {
			t.Run(pattern+" over "+network, func(t *testing.T) {
				reader := connect(t, binds(pattern, address), reading("jobs"))
				set := dials(pattern, reader.address())
				set.Linger = core.Duration(servicetest.Limit)
				sender := connect(t, set, pluginapi.Usage{})
				s := reader.subscribe("jobs")
				const n = 500
				payload := strings.Repeat("x", 8<<10)
				receipts := make(chan pluginapi.Receipt, n)
				for range n {
					sender.conn.Publish(sender.ctx, []pluginapi.Outgoing{servicetest.Message("jobs", payload)}, func(_ int, r pluginapi.Receipt) { receipts <- r })
				}
				ended := make(chan struct{})
				go func() { defer close(ended); sender.end() }()
				reader.take(s, n)
				<-ended
				for range n {
					if r := <-receipts; r.Status != pluginapi.ReceiptConfirmed {
						t.Fatalf("%+v %v", r, r.Fault)
					}
				}
			})
		}
	}
}

// What is refused at the end was not sent, and nothing was sent twice.
func TestReceiptsTellWhatWasSent(t *testing.T) {
	set := binds(settings.PatternQueue, anyPort)
	set.Linger = core.Duration(50 * time.Millisecond)
	sender := connect(t, set, pluginapi.Usage{})
	p := meet(t, sender.address(), zmq4.Pull, "")
	const n = 300
	var mu sync.Mutex
	receipts := map[string]pluginapi.Receipt{}
	done := make(chan struct{}, n)
	for i := range n {
		m := servicetest.Message("jobs", fmt.Sprintf("%03d", i)+strings.Repeat("x", 64<<10))
		sender.conn.Publish(sender.ctx, []pluginapi.Outgoing{m}, func(_ int, r pluginapi.Receipt) {
			mu.Lock()
			receipts[fmt.Sprintf("%03d", i)] = r
			mu.Unlock()
			done <- struct{}{}
		})
	}
	<-done // the system has taken something
	done <- struct{}{}
	sender.end() // the peer has read nothing
	for range n {
		<-done
	}
	came := map[string]int{}
	for {
		_, frames, err := p.hears()
		if err != nil {
			break
		}
		came[frames[2][:3]]++
	}
	refused := 0
	for i, r := range receipts {
		switch {
		case r.Status == pluginapi.ReceiptRefused && came[i] > 0:
			t.Errorf("%s was refused and came", i)
		case came[i] > 1:
			t.Errorf("%s came %d times", i, came[i])
		case r.Status == pluginapi.ReceiptRefused:
			refused++
		}
	}
	if refused == 0 || len(came) == 0 {
		t.Errorf("%d of %d were refused, %d came: nothing is shown", refused, n, len(came))
	}
}

// An ipc path is taken over from a process that was killed, and never from one
// that lives; closing leaves alone what another has put there.
func TestPathsOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	address := "ipc://" + path
	dead, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	first := connect(t, binds(settings.PatternQueue, address), reading("jobs"))
	if _, err := resume(t, binds(settings.PatternQueue, address), reading("jobs"), nil); err == nil {
		t.Fatal("a path was taken from an endpoint that lives")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	second := connect(t, binds(settings.PatternQueue, address), reading("jobs"))
	first.end()
	sender := connect(t, dials(settings.PatternQueue, address), pluginapi.Usage{})
	sender.put(servicetest.Message("jobs", "1"))
	servicetest.Expect(t, "deliveries", servicetest.Texts(second.take(second.subscribe("jobs"), 1)), "jobs 1")
	second.end()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
}

// A listener that gives way to another is closed: the port is free at the end.
func TestPortsAreFreeAtTheEnd(t *testing.T) {
	b := connect(t, binds(settings.PatternQueue, anyPort), pluginapi.Usage{})
	place := strings.TrimPrefix(b.address(), "tcp://")
	if err := b.subscribe("jobs").Close(b.ctx); err != nil {
		t.Fatal(err)
	}
	b.subscribe("jobs")
	if got := b.address(); got != "tcp://"+place {
		t.Errorf("listens at %s, before at %s", got, place)
	}
	b.end()
	l, err := net.Listen("tcp", place)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// Of two peers with one identity the first is answered, and the second told of.
func TestOneIdentityTwice(t *testing.T) {
	responder := connect(t, binds(settings.PatternRPC, anyPort), reading("calc"))
	responder.responder("calc", echo)
	first := meet(t, responder.address(), zmq4.Dealer, "same")
	first.say("calc", "", "1")
	first.expect("reply", "correlation-id: ", "calc 1")
	second := meet(t, responder.address(), zmq4.Dealer, "same")
	second.dropped("the second")
	eventually(t, "it is told of", func() bool {
		return len(responder.log.Lines("WARN", fmt.Sprintf("%x", "same"), first.nc.LocalAddr().String(), second.nc.LocalAddr().String())) == 1
	})
	first.say("calc", "", "2")
	first.expect("reply", "correlation-id: ", "calc 2")
}

// Who waits for messages or for a peer does not outlive the endpoint.
func TestCloseEndsWhoWaits(t *testing.T) {
	reader := connect(t, binds(settings.PatternQueue, anyPort), reading("jobs"))
	s := reader.subscribe("jobs")
	received := make(chan error, 1)
	go func() {
		_, err := s.Receive(t.Context(), servicetest.Plenty)
		received <- err
	}()
	p := meet(t, reader.address(), zmq4.Push, "")
	reader.end()
	if err := <-received; err == nil {
		t.Error("Receive returns no error")
	}
	p.dropped("behind Close")

	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	set := dials(settings.PatternQueue, "tcp://"+mute.Addr().String(), closed)
	set.Linger = core.Duration(20 * time.Millisecond)
	set.HandshakeTimeout = core.Duration(servicetest.Limit)
	sender := connect(t, set, pluginapi.Usage{})
	receipts := make(chan pluginapi.Receipt, 1)
	sender.conn.Publish(sender.ctx, []pluginapi.Outgoing{servicetest.Message("jobs", "1")}, func(_ int, r pluginapi.Receipt) { receipts <- r })
	began := time.Now()
	sender.end()
	if took := time.Since(began); took > servicetest.Limit/3 {
		t.Errorf("Close took %v, the time of a handshake is %v", took, servicetest.Limit)
	}
	if r := <-receipts; r.Status != pluginapi.ReceiptRefused || r.Fault.Code != core.FaultClosed {
		t.Errorf("%+v %v", r, r.Fault)
	}
}
