// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/intake"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// What was read and not delivered is counted, and what had come or comes until
// the sender has seen the end and leaves.
func TestWhatAStopLeavesIsCounted(t *testing.T) {
	b := listen(t, zmq4.Pull, intake.Options{Name: "jobs"}, nil)
	p, idle := b.dial(zmq4.Push, ""), b.dial(zmq4.Push, "")
	b.served(2)
	p.send("jobs", "m0", "m1", "m2", "m3")
	b.texts(1, pluginapi.Room{Messages: 1, Bytes: 1 << 20})
	eventually(t, func() bool { return b.in.Ready() == 1 })
	raw := message.Append(nil, &core.Message{Payload: make([]byte, 1000)}, "jobs")
	p.write(raw) // nobody reads it before the stop
	own(t, b.in, "own", pluginapi.PurposeApplication)
	own(t, b.in, "copy", pluginapi.PurposeRetry)
	b.in.Stop()
	b.in.Stop()
	for _, r := range []*remote{p, idle} {
		if _, err := r.nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the peer reads %v, want the end", err)
		}
	}
	p.send("jobs", "m5") // under way when the end came
	p.write(raw[:700])
	for _, r := range []*remote{p, idle} {
		r.nc.Close()
		if err := b.ended(); err != nil {
			t.Errorf("Serve returns %v, want nil", err)
		}
	}
	size := func(payload int) int64 { return int64(len("jobs") + payload) }
	want := intake.Left{Messages: 5, Bytes: 4*size(2) + size(1000) + 700, Own: 2}
	if got := b.in.Left(); got != want {
		t.Errorf("left %+v, want %+v", got, want)
	}
	if _, err := b.in.Receive(t.Context(), wide); !errors.Is(err, io.EOF) {
		t.Errorf("Receive returns %v, want io.EOF", err)
	}
	f := b.in.Own(core.Message{Name: "jobs"}, pluginapi.PurposeRetry)
	if f == nil || f.Code != core.FaultClosed || f.Transient || !strings.Contains(f.Message, "jobs") {
		t.Errorf("publishing to it is refused with %v", f)
	}
}

// A peer that does not care for our end is counted as cut off when it is closed.
func TestAPeerThatStaysIsCutOff(t *testing.T) {
	b := listen(t, zmq4.Pull, intake.Options{}, nil)
	p := b.dial(zmq4.Push, "")
	b.served(1)
	b.in.Stop()
	p.send("jobs", "m0")
	eventually(t, func() bool { return b.in.Left().Messages == 1 })
	b.served(1)[0].Close(peering.ErrClosed)
	if err := b.ended(); err != nil {
		t.Errorf("Serve returns %v, want nil", err)
	}
	if got := b.in.Left(); got.Cut != 1 {
		t.Errorf("left %+v, want one that was cut off", got)
	}
}

// A peer whose handshake ends behind the stop is read and counted as others are.
func TestAPeerAfterTheStop(t *testing.T) {
	b := listen(t, zmq4.Pull, intake.Options{}, nil)
	b.in.Stop()
	p := b.dial(zmq4.Push, "")
	p.send("jobs", "m0", "m1")
	p.nc.Close()
	if err := b.ended(); err != nil {
		t.Errorf("Serve returns %v, want nil", err)
	}
	if got := b.in.Left(); got.Messages != 2 {
		t.Errorf("left %+v, want 2 messages", got)
	}
}

// A ROUTER's peers stay after Stop, since replies to them are still to come: they
// are answered, what they send is counted, and their end is seen.
func TestPeersWithRepliesStay(t *testing.T) {
	b := listen(t, zmq4.Router, intake.Options{Source: intake.Source{ReplyTo: true}}, nil)
	p, late := b.dial(zmq4.Dealer, "a"), b.dial(zmq4.Dealer, "b")
	b.served(2)
	p.send("sum", "m0", "m1")
	eventually(t, func() bool { return b.in.Ready() == 1 })
	b.in.Stop()
	p.send("sum", "m2")
	p.write(zmtp.AppendPing(nil, 0, []byte("there?")))
	var f zmtp.Frames
	if p.next(&f); f.Command != zmtp.CommandPong || string(f.Body) != "there?" {
		t.Errorf("a PING is answered with %s %q", f.Command, f.Body)
	}
	p.nc.Close()
	if err := b.ended(); !errors.Is(err, io.EOF) {
		t.Errorf("the loop of a peer that has left returns %v, want io.EOF", err)
	}
	if got := b.in.Left(); got.Messages != 3 {
		t.Errorf("left %+v, want 3 messages", got)
	}
	for _, peer := range b.served(2) {
		if string(peer.Conn.PeerIdentity()) == "b" {
			peer.Close(errors.New("closed"))
		}
	}
	if err := b.ended(); err == nil {
		t.Error("the loop of a peer that was closed returns nil")
	}
	late.nc.Close()
	// One that comes now is served like them.
	b.dial(zmq4.Dealer, "c").send("sum", "m3")
	eventually(t, func() bool { return b.in.Left().Messages == 4 })
}

// With many peers that all have something, and one that waits to be read.
func TestStopWithManyPeers(t *testing.T) {
	b := listen(t, zmq4.Pull, intake.Options{}, nil)
	const peers = 200
	var all []*remote
	for range peers {
		p := b.dial(zmq4.Push, "")
		p.send("jobs", "m0", "m1")
		all = append(all, p)
	}
	eventually(t, func() bool { return b.in.Ready() == peers })
	received := make(chan int)
	go func() {
		n := 0
		for {
			batch, err := b.in.Receive(t.Context(), pluginapi.Room{Messages: 7, Bytes: 1 << 20})
			if n += len(batch.Deliveries); err != nil {
				received <- n
				return
			}
		}
	}()
	eventually(t, func() bool { return b.in.Counters().Messages > 100 })
	b.in.Stop()
	for _, p := range all {
		p.nc.Close()
		if err := b.ended(); err != nil {
			t.Errorf("Serve returns %v", err)
		}
	}
	if got := b.in.Left().Messages + <-received; got != 2*peers {
		t.Errorf("%d messages were received or left, want %d", got, 2*peers)
	}
}
