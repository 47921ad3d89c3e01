// SPDX-License-Identifier: Apache-2.0

package pipe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pipe/settings"
)

// A copy published under the own key comes back, is not printed, and its
// receipt leaves after its delivery is in the stream.
func TestLoopedCopy_S_STD_05(t *testing.T) {
	b := open(t, settings.Settings{Loopback: true})
	s := b.subscribe("k")
	b.feed("[k] x\n")
	ds, _, caughtUp, err := b.all(s)
	if len(ds) != 1 || !caughtUp || err != nil {
		t.Fatalf("%d deliveries, %v, %v", len(ds), caughtUp, err)
	}
	copied := servicetest.Message("k", "x", "stream-sequence", "0", "x-ruststream-retry-count", "1", "K", "a", "k", "b")
	copied.Purpose = pluginapi.PurposeRetry
	receipt := b.start(copied)
	batch, err := s.Receive(b.ctx, servicetest.Plenty)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"k x stream-sequence=1 x-ruststream-retry-count=1 K=a k=b"}
	if diff := cmp.Diff(want, servicetest.Texts(batch.Deliveries)); diff != "" {
		t.Error(diff)
	}
	if !batch.CaughtUp {
		t.Error("not caught up behind the last copy")
	}
	if len(receipt) != 0 {
		t.Error("the receipt came before the delivery was in the stream")
	}
	release(s, batch.Deliveries)
	if r := <-receipt; r.r.Status != pluginapi.ReceiptConfirmed {
		t.Errorf("receipt %+v", r.r)
	}
	b.publish(servicetest.Message("other", "y"))
	if diff := cmp.Diff("[2026-11-30T02:26:30 | other | 0] y\n", b.printed()); diff != "" {
		t.Error(diff)
	}
}

// Receive called again says that the batch before is in the stream.
func TestReceiptAtTheNextReceive(t *testing.T) {
	b := open(t, settings.Settings{Loopback: true})
	s := b.subscribe("k")
	receipt := b.start(servicetest.Message("k", "x"))
	if _, err := s.Receive(b.ctx, servicetest.Plenty); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Millisecond)
	defer cancel()
	_, _ = s.Receive(ctx, servicetest.Plenty)
	select {
	case <-receipt:
	case <-b.ctx.Done():
		t.Error("no receipt")
	}
}

// With a window that is used up by originals whose copies wait for it, the
// receipts but the newest are given, and that one as well where no credit is left,
// so that their credit comes back.
func TestFullWindowOfFailingMessages(t *testing.T) {
	for _, window := range []int{1, 2} {
		t.Run(fmt.Sprint(window), func(t *testing.T) { failsWithin(t, window) })
	}
}

func failsWithin(t *testing.T, window int) {
	t.Helper()
	const lines, attempts = 500, 3
	b := open(t, settings.Settings{Loopback: true})
	s := b.subscribe("k")
	var in strings.Builder
	for i := range lines {
		fmt.Fprintf(&in, "[k] %d\n", i)
	}
	b.feedAll(in.String())

	var outstanding atomic.Int64
	settled := make(chan struct{}, 1)
	runs := map[string]int{}
	for {
		room := pluginapi.Room{Messages: window - int(outstanding.Load()), Bytes: 1 << 20}
		ctx, cancel := context.WithCancel(b.ctx)
		stop := make(chan struct{})
		if room.Messages == 0 { // called back when there is room again, as by the SDK
			go func() {
				select {
				case <-settled:
				case <-stop:
				}
				cancel()
			}()
		}
		batch, err := s.Receive(ctx, room)
		close(stop)
		cancel()
		if b.ctx.Err() != nil {
			t.Fatalf("stands still with %d of %d lines seen", len(runs), lines)
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if len(batch.Deliveries) > room.Messages {
			t.Fatalf("%d deliveries for room of %d", len(batch.Deliveries), room.Messages)
		}
		for _, d := range batch.Deliveries {
			outstanding.Add(1)
			handle := d.Handle
			done := func() {
				release(s, []pluginapi.Delivery{{Handle: handle}})
				outstanding.Add(-1)
				select {
				case settled <- struct{}{}:
				default:
				}
			}
			payload := string(d.Message.Payload)
			if runs[payload]++; runs[payload] == attempts {
				done()
				continue
			}
			m := servicetest.Message("k", payload)
			m.Purpose = pluginapi.PurposeRetry
			b.conn.Publish(b.ctx, []pluginapi.Outgoing{m}, func(_ int, r pluginapi.Receipt) {
				if r.Status != pluginapi.ReceiptConfirmed {
					t.Errorf("receipt %+v", r)
				}
				done()
			})
		}
		if batch.CaughtUp && outstanding.Load() == 0 {
			break
		}
		if len(runs) == lines && outstanding.Load() == 0 && !pending(runs, attempts) {
			break
		}
	}
	if len(runs) != lines || pending(runs, attempts) {
		t.Errorf("%d payloads, runs %v", len(runs), runs)
	}
}

func pending(runs map[string]int, attempts int) bool {
	for _, n := range runs {
		if n != attempts {
			return true
		}
	}
	return false
}

// Copies come before new lines, and no line is read while one waits.
func TestCopiesBeforeLines(t *testing.T) {
	b := open(t, settings.Settings{Loopback: true})
	s := b.subscribe("k")
	b.start(servicetest.Message("k", "copy 1"), servicetest.Message("k", "copy 2"))
	b.feed("[k] line\n")
	ds, _, _, err := b.all(s)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"k copy 1 stream-sequence=0", "k copy 2 stream-sequence=1", "k line stream-sequence=2"}
	if diff := cmp.Diff(want, servicetest.Texts(ds)); diff != "" {
		t.Error(diff)
	}
}

// A looped message reaches every subscription of its key, each with a copy of
// its own.
func TestLoopReachesAll(t *testing.T) {
	b := open(t, settings.Settings{Loopback: true})
	s1, s2 := b.subscribe("k"), b.subscribe("k")
	receipt := b.start(servicetest.Message("k", "x", "h", "v"))
	var got []pluginapi.Delivery
	for i, s := range []pluginapi.Subscription{s1, s2} {
		batch, err := s.Receive(b.ctx, servicetest.Plenty)
		if err != nil || len(batch.Deliveries) != 1 {
			t.Fatalf("%d deliveries, %v", len(batch.Deliveries), err)
		}
		got = append(got, batch.Deliveries...)
		release(s, batch.Deliveries)
		if i == 0 && len(receipt) != 0 {
			t.Error("the receipt came before the second delivery")
		}
	}
	<-receipt
	got[0].Message.Payload[0], got[0].Message.Headers[0].Value[0] = 'X', 'X'
	if string(got[1].Message.Payload) != "x" || string(got[1].Message.Headers[0].Value) != "v" {
		t.Error("the deliveries share memory")
	}
}

// The bound of copies on their way back is refused for now, and gives way.
func TestTooManyCopies(t *testing.T) {
	b := open(t, settings.Settings{Loopback: true})
	s := b.subscribe("k")
	var refused int
	receipts := make(chan pluginapi.Receipt, 5000)
	msgs := make([]pluginapi.Outgoing, 4100)
	for i := range msgs {
		msgs[i] = servicetest.Message("k", "x")
	}
	b.conn.Publish(b.ctx, msgs, func(_ int, r pluginapi.Receipt) { receipts <- r })
	got := 0
	for got < 4096 {
		batch, err := s.Receive(b.ctx, servicetest.Plenty)
		if err != nil {
			t.Fatal(err)
		}
		got += len(batch.Deliveries)
		release(s, batch.Deliveries)
	}
	for range msgs {
		if r := <-receipts; r.Status == pluginapi.ReceiptRefused && r.Fault.Code == core.FaultExhausted && r.Fault.Transient {
			refused++
		}
	}
	if refused != 4 {
		t.Errorf("%d refused", refused)
	}
	receipt := b.start(servicetest.Message("k", "x"))
	batch, err := s.Receive(b.ctx, servicetest.Plenty)
	if err != nil || len(batch.Deliveries) != 1 {
		t.Fatalf("%d deliveries, %v", len(batch.Deliveries), err)
	}
	release(s, batch.Deliveries)
	<-receipt
}

// A copy for a subscription that has ended, or whose intake has, leaves by the
// output: nothing is lost.
func TestCopiesAfterTheEndArePrinted(t *testing.T) {
	t.Parallel()
	line := func(n int) string { return fmt.Sprintf("[2026-11-30T02:26:30 | k | %d] ", n) }
	t.Run("closed", func(t *testing.T) {
		b := open(t, settings.Settings{Loopback: true})
		s := b.subscribe("k")
		receipts := b.start(servicetest.Message("k", "on its way"), servicetest.Message("k", "newest"))
		if err := s.Close(b.ctx); err != nil {
			t.Fatal(err)
		}
		<-receipts
		<-receipts
		b.publish(servicetest.Message("k", "later"))
		envelope := "rs1:AAAAE3N0cmVhbS1zZXF1ZW5jZTog"
		got := b.printed()
		if strings.Count(got, envelope) != 2 || !strings.HasSuffix(got, line(2)+"later\n") {
			t.Errorf("printed %q", got)
		}
	})
	t.Run("intake stopped", func(t *testing.T) {
		b := open(t, settings.Settings{Loopback: true})
		s := b.subscribe("k")
		receipts := b.start(servicetest.Message("k", "handed on"))
		if batch, err := s.Receive(b.ctx, servicetest.Plenty); err != nil || len(batch.Deliveries) != 1 {
			t.Fatalf("%d deliveries, %v", len(batch.Deliveries), err)
		}
		waiting := b.start(servicetest.Message("k", "on its way"))
		stopper, ok := s.(pluginapi.IntakeStopper)
		if !ok {
			t.Fatal("is not told that intake has stopped")
		}
		stopper.StopIntake()
		<-receipts
		<-waiting
		if r := b.publish(servicetest.Message("k", "later"))[0]; r.Status != pluginapi.ReceiptConfirmed {
			t.Errorf("receipt %+v", r)
		}
		got := b.printed()
		if strings.Count(got, "\n") != 2 || !strings.HasSuffix(got, line(1)+"later\n") {
			t.Errorf("printed %q", got)
		}
		if err := s.Close(b.ctx); err != nil {
			t.Error(err)
		}
	})
	// However long it takes until Receive is called again, a copy comes back.
	t.Run("a slow host", func(t *testing.T) {
		b := open(t, settings.Settings{Loopback: true})
		s := b.subscribe("k")
		receipt := b.start(servicetest.Message("k", "back"))
		select {
		case r := <-receipt:
			t.Errorf("receipt %+v of a copy that waits", r)
		case <-time.After(2500 * time.Millisecond):
		}
		batch, err := s.Receive(b.ctx, servicetest.Plenty)
		if err != nil || len(batch.Deliveries) != 1 {
			t.Fatalf("%d deliveries, %v", len(batch.Deliveries), err)
		}
		release(s, batch.Deliveries)
		<-receipt
		if got := b.printed(); got != "" {
			t.Errorf("printed %q", got)
		}
	})
	t.Run("plain output", func(t *testing.T) {
		b := open(t, settings.Settings{Loopback: true, PlainOutput: true})
		s := b.subscribe("k")
		retry := servicetest.Message("k", "x", "x-ruststream-retry-count", "1")
		retry.Purpose = pluginapi.PurposeRetry
		receipts := b.start(retry, retry)
		if err := s.Close(b.ctx); err != nil {
			t.Fatal(err)
		}
		count := map[pluginapi.ReceiptStatus]int{}
		for range 2 {
			count[(<-receipts).r.Status]++
		}
		// The receipt of the first was given when the second came.
		if count[pluginapi.ReceiptConfirmed] != 1 || count[pluginapi.ReceiptRefused] != 1 {
			t.Errorf("receipts %v", count)
		}
		if got := b.printed(); got != "" {
			t.Errorf("printed %q", got)
		}
		if log := b.log.String(); !strings.Contains(log, "lost=2") {
			t.Errorf("log: %s", log)
		}
	})
}

// Without loopback a message under the own key is printed, and the end of the
// input is the end.
func TestNoLoopback_S_STD_04(t *testing.T) {
	b := open(t, settings.Settings{})
	s := b.subscribe("k")
	b.feed("")
	copied := servicetest.Message("k", `{"id":7}`, "stream-sequence", "1", "x-ruststream-retry-count", "1")
	copied.Purpose = pluginapi.PurposeRetry
	b.publish(copied)
	if _, err := s.Receive(b.ctx, servicetest.Plenty); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	want := "[2026-11-30T02:26:30 | k | 0] rs1:AAAAL3N0cmVhbS1zZXF1ZW5jZTogMQp4LXJ1c3RzdHJlYW0tcmV0cnktY291bnQ6IDEKeyJpZCI6N30=\n"
	if diff := cmp.Diff(want, b.printed()); diff != "" {
		t.Error(diff)
	}
}
