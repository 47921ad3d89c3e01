// SPDX-License-Identifier: Apache-2.0

package pipe_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pipe/settings"
)

// The lines of the reference system, written. Its four last lines stem from
// processes of their own, whose sequences begin at 0.
func TestWritesTheSample(t *testing.T) {
	want, err := os.ReadFile("testdata/stdio.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, process := range [][]pluginapi.Outgoing{
		{servicetest.Message("orders", "hello 0"), servicetest.Message("orders", "hello 1")},
		{servicetest.Message("orders", "with header", "x-tenant", "acme")},
		{servicetest.Message("orders", " padded")},
		{servicetest.Message("orders", "two\nlines")},
		{servicetest.Message("orders", "rs1:x")},
	} {
		b := open(t, settings.Settings{})
		for _, r := range b.publish(process...) {
			if r.Status != pluginapi.ReceiptConfirmed {
				t.Errorf("receipt %+v", r)
			}
		}
		got.WriteString(b.printed())
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Error(diff)
	}
}

func TestSequencesByKey(t *testing.T) {
	b := open(t, settings.Settings{})
	b.publish(servicetest.Message("a", "1"), servicetest.Message("b", "2"), servicetest.Message("a", "3"), servicetest.Message("a.B_c-9", "4", "k", "v", "K", "w"))
	want := "[2026-11-30T02:26:30 | a | 0] 1\n[2026-11-30T02:26:30 | b | 0] 2\n[2026-11-30T02:26:30 | a | 1] 3\n" +
		"[2026-11-30T02:26:30 | a.B_c-9 | 0] rs1:AAAACms6IHYKSzogdwo0\n"
	if diff := cmp.Diff(want, b.printed()); diff != "" {
		t.Error(diff)
	}
}

// What is printed is read back as it was published.
func TestRoundTrip(t *testing.T) {
	msgs := []pluginapi.Outgoing{
		servicetest.Message("k", "plain"),
		servicetest.Message("k", "[x] | ]"),
		servicetest.Message("k", "\x00\xff\xfe"),
		servicetest.Message("k", " \t"),
		servicetest.Message("k", "end\r"),
		servicetest.Message("k", "\u00a0nbsp"),
		servicetest.Message("k", "", "only", "headers"),
		servicetest.Message("k", "twice", "K", "v", "k", "w", "K", "v"),
		servicetest.Message("k", "odd names", "a:b", "v", "", "empty name", "e", ""),
		servicetest.Message("k", "values", "bytes", "\x00\xff", "blank", " v ", "lines", "a\r\nb"),
	}
	b := open(t, settings.Settings{})
	b.publish(msgs...)
	text := b.printed()

	again := open(t, settings.Settings{})
	s := again.subscribe("k")
	again.feed(text)
	ds, _ := again.toEnd(s)
	if len(ds) != len(msgs) {
		t.Fatalf("%d deliveries of %d", len(ds), len(msgs))
	}
	for i, d := range ds {
		want := msgs[i].Message
		want.Headers = append(want.Headers[:len(want.Headers):len(want.Headers)], core.Header{Name: "stream-sequence", Value: fmt.Append(nil, i)})
		if diff := cmp.Diff(want, d.Message); diff != "" {
			t.Error(diff)
		}
	}
}

// What no line can carry is refused for good, and what stands beside it is
// printed. S-STD-11: a message without payload and headers.
func TestRefusals_S_STD_11(t *testing.T) {
	retry := servicetest.Message("k", "x")
	retry.Purpose = pluginapi.PurposeRetry
	late := servicetest.Message("k", "x")
	late.DeliverAfter = time.Second
	many := servicetest.Message("k", "x")
	many.Message.Headers = make(core.Headers, 1<<16+1)
	for _, tt := range []struct {
		name string
		set  settings.Settings
		msg  pluginapi.Outgoing
		code core.FaultCode
		text string
	}{
		{"empty", settings.Settings{}, servicetest.Message("k", ""), core.FaultInvalid, "empty"},
		{"a bad key", settings.Settings{}, servicetest.Message("a/b", "x"), core.FaultInvalid, `"a/b" is no stream key`},
		{"no key", settings.Settings{}, servicetest.Message("", "x"), core.FaultInvalid, "no stream key"},
		{"a long key", settings.Settings{}, servicetest.Message(strings.Repeat("k", 250), "x"), core.FaultInvalid, "no stream key"},
		{"later", settings.Settings{}, late, core.FaultUnsupported, "later"},
		{"too many headers", settings.Settings{}, many, core.FaultTooLarge, "65537 headers, the limit is 65535"},
		{"too large", settings.Settings{}, servicetest.Message("k", strings.Repeat("x", 64<<20), "k", "v"), core.FaultTooLarge, "67108866 bytes, the limit is 67108829"},
		{"plain, a line break", settings.Settings{PlainOutput: true}, servicetest.Message("k", "a\nb"), core.FaultInvalid, "line break"},
		{"plain, a copy", settings.Settings{PlainOutput: true}, retry, core.FaultUnsupported, "no headers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := open(t, tt.set)
			rs := b.publish(servicetest.Message("k", "before"), tt.msg, servicetest.Message("k", "behind"))
			if r := rs[1]; r.Status != pluginapi.ReceiptRefused || r.Fault.Code != tt.code || r.Fault.Transient ||
				!strings.Contains(r.Fault.Error(), tt.text) {
				t.Errorf("receipt %+v, %v", r, r.Fault)
			}
			if rs[0].Status != pluginapi.ReceiptConfirmed || rs[2].Status != pluginapi.ReceiptConfirmed {
				t.Errorf("the others: %+v", rs)
			}
			if n := strings.Count(b.printed(), "\n"); n != 2 {
				t.Errorf("%d lines", n)
			}
		})
	}
}

func TestPlainOutput(t *testing.T) {
	b := open(t, settings.Settings{PlainOutput: true})
	dead := servicetest.Message("dead", "[1]", "why", "because")
	dead.Purpose = pluginapi.PurposeDeadLetter
	b.publish(servicetest.Message("k", `["a"]`, "h", "v"), servicetest.Message("k", ""), servicetest.Message("k", " x \xff\r"), dead)
	if diff := cmp.Diff("[\"a\"]\n\n x \xff\r\n[1]\n", b.printed()); diff != "" {
		t.Error(diff)
	}
}

// S-STD-13: what is released prints nothing and says nothing.
func TestReleasePrintsNothing_S_STD_13(t *testing.T) {
	b := open(t, settings.Settings{})
	s := b.subscribe("k")
	b.feed("[k] x\n")
	b.toEnd(s)
	rs := s.Settle(b.ctx, []pluginapi.Verdict{{Kind: core.VerdictAck}})
	if len(rs) != 1 || rs[0].Status != pluginapi.ResultUnsupported {
		t.Errorf("an ack: %+v", rs)
	}
	if got := b.printed(); got != "" {
		t.Errorf("printed %q", got)
	}
	if log := b.log.String(); strings.Contains(log, "WARN") {
		t.Errorf("log: %s", log)
	}
}

// The next stage is gone: what is published is refused, every subscription ends
// with a typed fault, the link is reported down.
func TestNextStageGone(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := openOn(t, settings.Settings{}, w)
	s, other := b.subscribe("k"), b.subscribe("other")
	links := make(chan pluginapi.LinkState, 2)
	b.conn.(pluginapi.LinkReporter).ReportLink(func(l pluginapi.LinkState) { links <- l })
	if l := <-links; !l.Up {
		t.Errorf("link %+v", l)
	}
	ended := make(chan error)
	go func() {
		_, err := s.Receive(b.ctx, servicetest.Plenty)
		ended <- err
	}()
	if got := b.publish(servicetest.Message("k", "read"))[0]; got.Status != pluginapi.ReceiptConfirmed {
		t.Errorf("receipt %+v", got)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for i, got := range b.publish(servicetest.Message("k", "1"), servicetest.Message("k", "2"), servicetest.Message("k", strings.Repeat("x", 1<<20))) {
		if got.Status != pluginapi.ReceiptRefused || got.Fault.Code != core.FaultClosed || got.Fault.Transient {
			t.Errorf("receipt %d: %+v", i, got)
		}
	}
	if got := b.publish(servicetest.Message("k", "later"))[0]; got.Status != pluginapi.ReceiptRefused || got.Fault.Code != core.FaultClosed {
		t.Errorf("receipt %+v", got)
	}
	var f *core.Fault
	if err := <-ended; !errors.As(err, &f) || f.Code != core.FaultClosed {
		t.Errorf("subscription ended with %v", err)
	}
	if _, err := other.Receive(b.ctx, pluginapi.Room{}); !errors.As(err, &f) || f.Code != core.FaultClosed {
		t.Errorf("the other one ended with %v", err)
	}
	if l := <-links; l.Up || l.Reason == "" {
		t.Errorf("link %+v", l)
	}
}

// Nobody reads for now: publishes wait, their number is bounded, and the end of
// the wait refuses what never left.
func TestBlockedOutput_S_05(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	b := openOn(t, settings.Settings{}, w)
	long := strings.Repeat("x", 1<<10)
	receipts := make(chan pluginapi.Receipt, 10_000)
	msgs := make([]pluginapi.Outgoing, 5000)
	for i := range msgs {
		msgs[i] = servicetest.Message("k", long)
	}
	count := map[string]int{}
	tally := func(r pluginapi.Receipt) {
		switch {
		case r.Status == pluginapi.ReceiptConfirmed:
			count["confirmed"]++
		case r.Status == pluginapi.ReceiptUnknown:
			count["unknown"]++
		case r.Fault.Code == core.FaultExhausted && r.Fault.Transient:
			count["exhausted"]++
		case r.Fault.Code == core.FaultClosed:
			count["closed"]++
		}
	}
	publish := func(msgs []pluginapi.Outgoing) {
		b.conn.Publish(b.ctx, msgs, func(_ int, r pluginapi.Receipt) { receipts <- r })
	}
	publish(msgs[:1]) // has room in the pipe; of more than that nothing is confirmed while it is written
	tally(<-receipts)
	publish(msgs[1:])

	closing, cancel := context.WithTimeout(b.ctx, 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := b.conn.Close(closing); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close: %v", err)
	}
	if took := time.Since(start); took > servicetest.Limit/3 {
		t.Errorf("close took %v", took)
	}
	for range msgs[1:] {
		tally(<-receipts)
	}
	if count["confirmed"] == 0 || count["closed"] == 0 || count["unknown"] > 1 || count["exhausted"] < 500 {
		t.Errorf("receipts %v", count)
	}
	if total := count["confirmed"] + count["unknown"] + count["exhausted"] + count["closed"]; total != len(msgs) {
		t.Errorf("receipts %v add up to %d", count, total)
	}
	// Each confirmed line can be read whole, and no other.
	if err := r.SetReadDeadline(time.Now().Add(servicetest.Limit / 3)); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(r)
	for i := range count["confirmed"] {
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatalf("%d lines, %d confirmed: %v", i, count["confirmed"], err)
		}
	}
	if err := r.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if rest, err := lines.ReadString('\n'); err == nil {
		t.Errorf("one line more than the %d confirmed: %.50q", count["confirmed"], rest)
	}
	b.conn = closedConn{b.conn}
}

// closedConn is a connection that a test has closed itself.
type closedConn struct{ pluginapi.Conn }

func (closedConn) Close(context.Context) ([]byte, error) { return nil, nil }

// Close prints what was accepted before.
func TestCloseFlushes(t *testing.T) {
	b := open(t, settings.Settings{})
	var msgs []pluginapi.Outgoing
	for i := range 2000 {
		msgs = append(msgs, servicetest.Message("k", fmt.Sprintf("%d %s", i, strings.Repeat("x", 500))))
	}
	receipts := b.start(msgs...)
	lines := strings.Count(b.printed(), "\n")
	if lines != len(msgs) {
		t.Errorf("%d lines", lines)
	}
	for range msgs {
		if r := <-receipts; r.r.Status != pluginapi.ReceiptConfirmed {
			t.Fatalf("receipt %+v", r.r)
		}
	}
	if r := b.publish(servicetest.Message("k", "x"))[0]; r.Status != pluginapi.ReceiptRefused || r.Fault.Code != core.FaultClosed {
		t.Errorf("after the close: %+v", r)
	}
}
