// SPDX-License-Identifier: Apache-2.0

package pipe_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
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

// The lines of the reference system, read back.
func TestReadsTheSample(t *testing.T) {
	sample, err := os.ReadFile("testdata/stdio.txt")
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, settings.Settings{})
	s := b.subscribe("orders")
	b.feed(string(sample))
	ds, rs := b.toEnd(s)
	want := []string{
		"orders hello 0 stream-sequence=0",
		"orders hello 1 stream-sequence=1",
		"orders with header x-tenant=acme stream-sequence=0",
		"orders  padded stream-sequence=0",
		"orders two\nlines stream-sequence=0",
		"orders rs1:x stream-sequence=0",
	}
	if diff := cmp.Diff(want, servicetest.Texts(ds)); diff != "" {
		t.Error(diff)
	}
	if len(rs) != 0 {
		t.Errorf("reports %v", rs)
	}
	if want := sampleTime.Truncate(time.Second); !ds[0].PublishedAt.Equal(want) || string(ds[3].Position) != "4" {
		t.Errorf("published at %v, position %q", ds[0].PublishedAt, ds[3].Position)
	}
}

// The forms of a line in observed.md and reference 3.3. S-STD-12, S-04.
func TestLineForms(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
	}{
		{"a key", "[orders] x", "orders x stream-sequence=0"},
		{"key and sequence", "[orders | 7] x", "orders x stream-sequence=7"},
		{"time, key, sequence, shard", "[2026-11-30T02:26:30.123 | orders | 8 | 2] x", "orders x stream-sequence=8"},
		{"no blanks", "[orders|7]x", "orders x stream-sequence=7"},
		{"a plus and zeros", "[orders | +007] x", "orders x stream-sequence=7"},
		{"blanks before and behind", "[ orders ]  \t x \t", "orders x \t stream-sequence=0"},
		{"an empty payload", "[orders]", "orders  stream-sequence=0"},
		{"bars and brackets in the payload", "[orders] a | b ] [c]", "orders a | b ] [c] stream-sequence=0"},
		{"a carriage return stays", "[orders] x\r", "orders x\r stream-sequence=0"},
		{"NUL and bytes that are no UTF-8", "[orders] \x00\xff", "orders \x00\xff stream-sequence=0"},
		{"no brackets", "hello", "broadcast hello stream-sequence=0"},
		{"an empty line", "", "broadcast  stream-sequence=0"},
		{"a blank line", " \t", "broadcast  \t stream-sequence=0"},
		{"a time alone", "[2026-11-30T02:26:30] x", "broadcast x stream-sequence=0"},
		{"an open bracket", "[x", "broadcast [x stream-sequence=0"},
		{"empty brackets", "[] x", "broadcast [] x stream-sequence=0"},
		{"brackets further on", " [orders] x", "broadcast  [orders] x stream-sequence=0"},
		{"JSON object", `{"a": [1]}`, `broadcast {"a": [1]} stream-sequence=0`},
		{"a mark before brackets, first line", "\xef\xbb\xbf[orders] x", "orders x stream-sequence=0"},
		{"a mark before a payload", "\xef\xbb\xbfx", "broadcast \xef\xbb\xbfx stream-sequence=0"},
		{"an envelope without brackets", "rs1:AAAAD3gtdGVuYW50OiBhY21lCnsiaWQiOjd9", `broadcast {"id":7} x-tenant=acme stream-sequence=0`},
		{"an envelope that is none", "[orders] rs1:?", "orders rs1:? stream-sequence=0"},
		{"a sequence in the envelope is overwritten", "[orders | 5] rs1:AAAAL3N0cmVhbS1zZXF1ZW5jZTogMQp4LXJ1c3RzdHJlYW0tcmV0cnktY291bnQ6IDEKeyJpZCI6N30=",
			`orders {"id":7} stream-sequence=5 x-ruststream-retry-count=1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := open(t, settings.Settings{})
			s := b.subscribe("orders")
			b.feed(tt.in + "\n")
			ds, rs := b.toEnd(s)
			if diff := cmp.Diff([]string{tt.want}, servicetest.Texts(ds)); diff != "" {
				t.Error(diff)
			}
			if len(rs) != 0 {
				t.Errorf("reports %+v", rs)
			}
		})
	}
}

// S-STD-09, S-04: a line that is none is reported with its number and reason,
// and the next line is read. The counters add up to the number of lines.
func TestBadLines_S_STD_09(t *testing.T) {
	bad := []string{
		`["a"]`, `[1,2]`, `[Jan 1, 2022] x`, `[ ] x`, `[orders | x] y`, `[orders | 1 | 2 | 3] y`, `[orders | ] y`,
		`[orders | 18446744073709551616] y`, `[orders | -1] y`, "[\xff] y", `[a b] y`, `[` + strings.Repeat("k", 250) + `] y`,
		`[2026-13-30T02:26:30 | orders] y`, `[orders | 2026-11-30T02:26:30] y`, `[2026-11-30T02:26:30. | orders] y`,
	}
	b := open(t, settings.Settings{})
	s := b.subscribe("orders")
	b.feed("[orders] first\n" + strings.Join(bad, "\n") + "\n[other] z\n[orders] last\n")
	ds, rs := b.toEnd(s)
	if diff := cmp.Diff([]string{"orders first stream-sequence=0", "orders last stream-sequence=1"}, servicetest.Texts(ds)); diff != "" {
		t.Error(diff)
	}
	if len(rs) != len(bad) {
		t.Fatalf("%d reports for %d lines: %+v", len(rs), len(bad), rs)
	}
	for i, r := range rs {
		if r.Fault.Code != core.FaultInvalid || r.Position != fmt.Sprintf("line %d", i+2) {
			t.Errorf("%s: %+v at %s", bad[i], r.Fault, r.Position)
		}
	}
	if want := `line skipped: "\"a\"" between its brackets is no time, stream key, sequence or shard; ` +
		`put a key before the payload, as in "[orders] ...", or set plain_input`; rs[0].Fault.Message != want {
		t.Errorf("reason %q", rs[0].Fault.Message)
	}
	b.end()
	total := fmt.Sprintf("lines=%d lost=0 other_keys=1 bad=%d", len(bad)+3, len(bad))
	if log := b.log.String(); !strings.Contains(log, total) {
		t.Errorf("the log has no %q: %s", total, log)
	}
}

func TestSequences(t *testing.T) {
	b := open(t, settings.Settings{})
	s := b.subscribe("a")
	b.feed("[a] 0\n[a] 1\n[other] x\nall\n[a | 7] 7\n[a] 7 again\n[a] 8\n[a | 3 | 1] shard\nall\n")
	ds, _ := b.toEnd(s)
	want := []string{
		"a 0 stream-sequence=0", "a 1 stream-sequence=1", "broadcast all stream-sequence=0",
		"a 7 stream-sequence=7", "a 7 again stream-sequence=7", "a 8 stream-sequence=8",
		"a shard stream-sequence=3", "broadcast all stream-sequence=1",
	}
	if diff := cmp.Diff(want, servicetest.Texts(ds)); diff != "" {
		t.Error(diff)
	}
}

// S-STD-12: a line without a key reaches every subscription, other keys only
// their own.
func TestSubscriptionsShareTheReader_S_STD_12(t *testing.T) {
	b := open(t, settings.Settings{})
	keys := []string{"a", "b", "a"}
	got := make([][]string, len(keys))
	done := make(chan int)
	for i, key := range keys {
		s := b.subscribe(key)
		go func() {
			ds, _, _, _ := b.all(s)
			got[i] = servicetest.Texts(ds)
			done <- i
		}()
	}
	b.feed("[a] 1\nfor all\n[b] 2\n[c] 3\n[a] 4\n")
	for range keys {
		<-done
	}
	a := []string{"a 1 stream-sequence=0", "broadcast for all stream-sequence=0", "a 4 stream-sequence=1"}
	want := [][]string{a, {"broadcast for all stream-sequence=0", "b 2 stream-sequence=0"}, a}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPlainInput(t *testing.T) {
	b := open(t, settings.Settings{PlainInput: true})
	s := b.subscribe("words")
	b.feed("[\"a\"]\n[words] x\n\n rs1:AAAAD3gtdGVuYW50OiBhY21lCnsiaWQiOjd9\r\n\xff")
	ds, rs := b.toEnd(s)
	want := []string{"words [\"a\"]", "words [words] x", "words ", "words  rs1:AAAAD3gtdGVuYW50OiBhY21lCnsiaWQiOjd9\r", "words \xff"}
	if diff := cmp.Diff(want, servicetest.Texts(ds)); diff != "" {
		t.Error(diff)
	}
	if len(rs) != 0 {
		t.Errorf("reports %v", rs)
	}
}

// S-01: lines of any length up to the limit.
func TestLongLines_S_01(t *testing.T) {
	b := open(t, settings.Settings{})
	s := b.subscribe("k")
	payload := func(i int) string {
		return map[int]string{5: strings.Repeat("m", 70<<10), 8: strings.Repeat("l", 8<<20)}[i] + fmt.Sprint("end ", i)
	}
	var in strings.Builder
	for i := 1; i <= 10; i++ {
		fmt.Fprintf(&in, "[k] %s\n", payload(i))
	}
	b.feedAll(in.String())
	ds, _ := b.toEnd(s)
	if len(ds) != 10 {
		t.Fatalf("%d deliveries", len(ds))
	}
	for i, d := range ds {
		if string(d.Message.Payload) != payload(i+1) {
			t.Errorf("line %d: %d bytes differ", i+1, len(d.Message.Payload))
		}
	}
}

// A payload of the protocol's largest size passes in its envelope; one byte more
// is reported, and so is a line beyond any limit. Lines behind them are read.
func TestLargestMessages(t *testing.T) {
	if testing.Short() {
		t.Skip("needs half a GiB")
	}
	const limit = 64 << 20
	sequence := len("stream-sequence") + 1
	enveloped := func(n int) []byte { // no header, then n bytes, of which two and each three more are four digits
		line := append([]byte("[k] rs1:AAAAAHh4"), bytes.Repeat([]byte("eHh4"), (n-2)/3)...)
		return base64.StdEncoding.AppendEncode(line, bytes.Repeat([]byte{'x'}, (n-2)%3))
	}
	b := open(t, settings.Settings{})
	s := b.subscribe("k")
	go func() {
		for _, line := range [][]byte{
			enveloped(limit - sequence), enveloped(limit - sequence + 1), append([]byte("[k] "), bytes.Repeat([]byte{'y'}, 100<<20)...), []byte("[k] z"),
		} {
			_, _ = b.in.Write(append(line, '\n'))
		}
		_ = b.in.Close()
	}()
	ds, rs := b.toEnd(s)
	if len(ds) != 2 || len(ds[0].Message.Payload) != limit-sequence || string(ds[1].Message.Payload) != "z" {
		t.Errorf("%d deliveries", len(ds))
	}
	if len(rs) != 2 || rs[0].Fault.Code != core.FaultTooLarge || rs[1].Fault.Code != core.FaultTooLarge || rs[1].Position != "line 3" {
		t.Errorf("reports %+v", rs)
	}
}

// S-02: the last line needs no line break.
func TestLastLineWithoutNewline_S_02(t *testing.T) {
	for in, want := range map[string]int{"[k] 1\n[k] 2\n[k] 3": 3, "[k] 1\n": 1, "": 0, "\n": 1, "x": 1} {
		b := open(t, settings.Settings{})
		s := b.subscribe("k")
		b.feed(in)
		if ds, _ := b.toEnd(s); len(ds) != want {
			t.Errorf("%q: %d deliveries, want %d", in, len(ds), want)
		}
	}
}

// S-STD-10: the end of the input ends every subscription, also one that is
// asked for nothing.
func TestEndOfInput_S_STD_10(t *testing.T) {
	b := open(t, settings.Settings{})
	s, idle := b.subscribe("k"), b.subscribe("idle")
	b.feed("[k] x\n")
	b.toEnd(s)
	if _, err := idle.Receive(b.ctx, pluginapi.Room{}); !errors.Is(err, io.EOF) {
		t.Errorf("the other one: %v", err)
	}
	if _, err := s.Receive(b.ctx, servicetest.Plenty); !errors.Is(err, io.EOF) {
		t.Errorf("once more: %v", err)
	}
}

// The input is read as there is room for it: never before, and not beyond a
// bound for a subscription that has none.
func TestReadsOnlyAsCreditAllows(t *testing.T) {
	t.Parallel()
	b := open(t, settings.Settings{})
	s := b.subscribe("k")
	big := strings.Repeat("x", 1000)
	var in strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&in, "[k] %d %s\n", i, big)
	}
	written := make(chan int, 1)
	go func() {
		n := 0
		for chunk := range strings.SplitAfterSeq(in.String(), "\n") {
			if err := b.in.SetWriteDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
				break
			}
			m, err := b.in.WriteString(chunk)
			n += m
			if err != nil {
				break
			}
		}
		written <- n
		_ = b.in.Close()
	}()
	batch, err := s.Receive(b.ctx, pluginapi.Room{Messages: 10, Bytes: 1 << 20})
	if err != nil || len(batch.Deliveries) == 0 || len(batch.Deliveries) > 10 {
		t.Fatalf("%d deliveries, %v", len(batch.Deliveries), err)
	}
	// A pipe of 64 KiB and one read of 64 KiB are all that is taken.
	if n := <-written; n > 200<<10 {
		t.Errorf("%d bytes taken for 10 deliveries", n)
	}
}

// Bytes of the room are overdrawn by one message at most.
func TestRoomInBytes(t *testing.T) {
	b := open(t, settings.Settings{PlainInput: true})
	s := b.subscribe("k")
	b.feed(strings.Repeat("0123456789\n", 10))
	got := 0
	for {
		batch, err := s.Receive(b.ctx, pluginapi.Room{Messages: 100, Bytes: 15})
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || len(batch.Deliveries) > 2 {
			t.Fatalf("%d deliveries, %v", len(batch.Deliveries), err)
		}
		got += len(batch.Deliveries)
	}
	if got != 10 {
		t.Errorf("%d lines", got)
	}
}

// A subscription without room holds up the others only behind a bound.
func TestSlowSubscriptionBesideAFastOne(t *testing.T) {
	b := open(t, settings.Settings{})
	fast, slow := b.subscribe("fast"), b.subscribe("slow")
	var in strings.Builder
	for i := range 50 {
		fmt.Fprintf(&in, "[slow] %d\n[fast] %d\n", i, i)
	}
	b.write(in.String())
	for got := 0; got < 50; {
		batch, err := fast.Receive(b.ctx, servicetest.Plenty)
		if err != nil {
			t.Fatal(err)
		}
		got += len(batch.Deliveries)
	}
	// 50 more would not fit the bound of 64: the fast one waits for the slow one.
	b.write(in.String())
	got := 0
	for ctx := b.ctx; ; {
		batch, err := fast.Receive(ctx, servicetest.Plenty)
		if got += len(batch.Deliveries); err != nil {
			break
		}
		if got > 0 && ctx == b.ctx { // the rest comes at once, or not at all
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(b.ctx, 100*time.Millisecond)
			defer cancel()
		}
	}
	if got == 0 || got >= 50 {
		t.Errorf("%d of the fast one's lines past a full queue", got)
	}
	if err := b.in.Close(); err != nil {
		t.Fatal(err)
	}
	done := make(chan int)
	go func() {
		ds, _, _, _ := b.all(fast)
		done <- len(ds)
	}()
	ds, _ := b.toEnd(slow)
	if rest := <-done; len(ds) != 100 || got+rest != 50 {
		t.Errorf("slow %d, fast %d + %d", len(ds), got, rest)
	}
}

// A Receive that is called back loses nothing.
func TestReceiveIsCalledBack(t *testing.T) {
	b := open(t, settings.Settings{})
	s := b.subscribe("k")
	for range 50 {
		ctx, cancel := context.WithTimeout(b.ctx, time.Millisecond)
		batch, err := s.Receive(ctx, servicetest.Plenty)
		cancel()
		if len(batch.Deliveries) != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%d deliveries, %v", len(batch.Deliveries), err)
		}
	}
	b.feed("[k] x\n")
	if ds, _ := b.toEnd(s); len(ds) != 1 {
		t.Errorf("%d deliveries", len(ds))
	}
}

// What is read and never handed on is counted when the endpoint closes.
func TestReadAheadIsCountedAtClose(t *testing.T) {
	b := open(t, settings.Settings{})
	s, other := b.subscribe("k"), b.subscribe("other")
	b.feed("[other] 1\n[other] 2\n[k] x\n")
	b.toEnd(s)
	if err := other.Close(b.ctx); err != nil {
		t.Fatal(err)
	}
	b.end()
	if log := b.log.String(); !strings.Contains(log, "level=WARN") || !strings.Contains(log, "lost=2") {
		t.Errorf("log: %s", log)
	}
}
