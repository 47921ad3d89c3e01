// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// Close waits for the last answers, over a reconnect too.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.up(Server{})
		q1, q2 := r.add(1), r.add(2)
		closed := make(chan error, 1)
		go func() { closed <- r.o.Close(t.Context()) }()
		synctest.Wait()
		if f := r.want(r.add(1), pluginapi.ReceiptRefused).Fault; f.Code != core.FaultClosed {
			t.Errorf("after Close: %v", f)
		}
		r.ack(packet.TypePubrec, 2, 0)
		r.ack(packet.TypePuback, 1, 0)
		r.want(q1, pluginapi.ReceiptConfirmed)
		r.down()
		time.Sleep(5 * time.Second)
		r.up(Server{Present: true})
		r.wantSent("PUBREL #2\n")
		select {
		case err := <-closed:
			t.Fatalf("closed before PUBCOMP: %v", err)
		default:
		}
		r.ack(packet.TypePubcomp, 2, 0)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		r.want(q2, pluginapi.ReceiptConfirmed)
	})
}

// Close returns when the last receipt has been taken, not when it is given.
func TestCloseWaitsForReceipts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.up(Server{})
		taking := make(chan struct{})
		r.add(1, func(p *Post) { p.Done = func(int, pluginapi.Receipt) { <-taking } })
		go r.ack(packet.TypePuback, 1, 0)
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- r.o.Close(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-closed:
			t.Fatalf("closed before its receipt was taken: %v", err)
		default:
		}
		close(taking)
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// At the end of its time Close says of each message whether it may have arrived.
func TestCloseInTime(t *testing.T) {
	for _, down := range []bool{false, true} {
		r := newRig(t, Config{Window: 3})
		r.up(Server{})
		r.add(1)
		r.add(2)
		r.add(2)
		r.ack(packet.TypePubrec, 3, 0)
		r.w.stuck = true
		r.add(0)
		r.add(1) // no room for it
		if down {
			r.down()
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.o.Close(ctx); err == nil {
			t.Error("Close says that all was answered")
		}
		for i := range 3 {
			r.want(i, pluginapi.ReceiptUnknown)
		}
		if down {
			r.want(3, pluginapi.ReceiptRefused)
		} else {
			r.want(3, pluginapi.ReceiptUnknown) // the link may write it yet
		}
		if f := r.want(4, pluginapi.ReceiptRefused).Fault; !f.Transient {
			t.Errorf("%v", f)
		}
	}
}

// S-MQT-24: a connection that is refused for good ends what waits for it, and what
// comes.
func TestFail(t *testing.T) {
	r := newRig(t, Config{})
	r.up(Server{})
	sent := r.add(1)
	r.down()
	waits := r.add(1)
	r.o.Fail(&core.Fault{Code: core.FaultDenied, Message: "connect: not authorized (0x87)"})
	r.want(sent, pluginapi.ReceiptUnknown)
	for _, i := range []int{waits, r.add(1)} {
		f := r.want(i, pluginapi.ReceiptRefused).Fault
		if f.Code != core.FaultDenied || f.Transient || !strings.Contains(f.Message, "not authorized") || !strings.HasPrefix(f.Message, "publish to") {
			t.Errorf("message %d: %v", i, f)
		}
	}
	if err := r.o.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// What was never written is not kept for as long as the connection is down.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Wait: 10 * time.Second})
		r.up(Server{})
		sent := r.add(1)
		r.down()
		time.Sleep(4 * time.Second)
		first := r.add(1)
		time.Sleep(4 * time.Second)
		second := r.add(0)
		time.Sleep(5999 * time.Millisecond)
		r.want(first, 0)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if f := r.want(first, pluginapi.ReceiptRefused).Fault; !f.Transient || !strings.Contains(f.Message, "no connection for 10s; the message was not sent") {
			t.Errorf("%v", f)
		}
		r.want(second, 0)
		time.Sleep(4 * time.Second)
		synctest.Wait()
		r.want(second, pluginapi.ReceiptRefused)
		time.Sleep(time.Hour)
		r.want(sent, 0)
		third := r.add(1)
		r.up(Server{Present: true})
		time.Sleep(time.Hour)
		r.want(third, 0)
		r.wantSent("PUBLISH q1 #1 dup t/0\nPUBLISH q1 #2 t/3\n")
		r.ack(packet.TypePuback, 1, 0)
		r.ack(packet.TypePuback, 2, 0)
		if err := r.o.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// What a connection had no room for waits no longer than what came behind it.
func TestWaitOfWhatWasThereBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Wait: 10 * time.Second})
		r.up(Server{ReceiveMaximum: 1})
		sent, never := r.add(1), r.add(1)
		time.Sleep(time.Hour) // while there is a connection
		r.o.ring(r.o.alarm)   // of a timer that had rung when it was stopped
		r.down()
		time.Sleep(9999 * time.Millisecond)
		r.want(never, 0)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		r.want(never, pluginapi.ReceiptRefused)
		r.want(sent, 0)
		r.up(Server{Present: true})
		r.ack(packet.TypePuback, 1, 0)
		r.want(sent, pluginapi.ReceiptConfirmed)
	})
}

// An expired message is not sent. A copy of it is done with, and told of; what may
// have arrived before is not told to be refused.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := newRig(t, Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
		r.up(Server{})
		expires := func(p *Post) { p.Deadline = time.Now().Add(3500 * time.Millisecond).UnixMilli() }
		maybe := r.add(1, expires)
		if got := r.expiry(); got != 4 {
			t.Errorf("expiry %d, want 4 (of 3.5 s)", got)
		}
		r.down()
		app := r.add(1, expires)
		copied := r.add(1, expires, func(p *Post) { p.Copy = true })
		time.Sleep(2 * time.Second)
		r.up(Server{Present: true})
		if got := r.expiry(); got != 2 {
			t.Errorf("expiry %d, want 2", got)
		}
		r.down()
		time.Sleep(2 * time.Second)
		r.up(Server{Present: true})
		r.wantSent("PUBLISH q1 #1 dup t/0\nPUBLISH q1 #2 dup t/1\nPUBLISH q1 #3 dup t/2\n") // handshakes go on
		r.down()
		never := r.add(2, func(p *Post) { p.Deadline = time.Now().Add(-time.Second).UnixMilli() })
		another := r.add(2, func(p *Post) { p.Copy, p.Deadline = true, 1 })
		r.up(Server{})
		r.wantSent("")
		r.want(maybe, pluginapi.ReceiptUnknown)
		r.want(app, pluginapi.ReceiptUnknown)
		r.want(copied, pluginapi.ReceiptConfirmed)
		r.want(another, pluginapi.ReceiptConfirmed)
		if f := r.want(never, pluginapi.ReceiptRefused).Fault; f.Code != core.FaultTimeout || f.Transient {
			t.Errorf("%v", f)
		}
		if strings.Count(log.String(), "expired") != 1 || !strings.Contains(log.String(), "count=2") {
			t.Errorf("log:\n%s", &log)
		}
		r.add(1, func(p *Post) { p.Copy, p.Deadline = true, 1 })
		if err := r.o.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if strings.Count(log.String(), "expired") != 2 {
			t.Errorf("log:\n%s", &log)
		}
	})
}

// expiry returns the Message Expiry Interval of the packet that was written first
// since it was asked.
func (r *rig) expiry() uint32 {
	r.Helper()
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	reader := packet.NewReader(bytes.NewReader(r.w.all[r.read:]), 0)
	defer reader.Close()
	var p packet.Packet
	var pub packet.Publish
	if err := reader.Fill(); err != nil {
		r.Fatal(err)
	}
	if _, err := reader.Next(&p); err != nil {
		r.Fatal(err)
	}
	if err := packet.ParsePublish(&p, &pub); err != nil {
		r.Fatal(err)
	}
	r.read = len(r.w.all)
	seconds, _ := pub.Expiry()
	return seconds
}
