// SPDX-License-Identifier: Apache-2.0

package pipe_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/plugins/pipe/settings"
)

var (
	errHandler = errors.New("it failed")
	loopback   = settings.Settings{Loopback: true}
)

func TestS_STD_01(t *testing.T) {
	for _, tt := range []struct {
		name string
		says error
		want int // lines of L-UNS for 20 messages at once
	}{
		{"ack", nil, 2}, // the first, and the summary of the rest
		{"drop", host.Drop(errHandler), 2},
		{"retry", host.Retry(nil), 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newService(t, settings.Settings{})
			s.Handle(s.key, servicetest.Always(tt.says), host.RetryTo(s.to("t")))
			if out := s.run(strings.Repeat("[k] x\n", 20)); len(out) != 0 {
				t.Errorf("printed %q", out)
			}
			if n := len(s.Runs()); n != 20 {
				t.Errorf("%d runs", n)
			}
			// A retry is warned of at most once a second, with the number since.
			if n := s.Log.Coded("L-UNS"); n < 1 || n > tt.want+int(time.Since(s.Began)/time.Second) {
				t.Errorf("%d lines of L-UNS\n%s", n, s.Log)
			}
		})
	}
}

func TestS_STD_02(t *testing.T) {
	for name, rules := range map[string][]host.Rule{"nothing": nil, "cap": {host.MaxAttempts(2)}} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, settings.Settings{})
			s.Handle(s.key, servicetest.Always(nil), rules...)
			s.refused("RetryTo", "k")
		})
	}
}

func TestS_STD_03(t *testing.T) {
	const d = 300 * time.Millisecond
	s := newService(t, settings.Settings{})
	s.Handle(s.key, servicetest.Always(host.RetryAfter(d, nil)), host.RetryTo(s.to("t")))
	out := s.run("[k | 7] {\"id\":7}\n")
	if took := time.Since(s.Began); took < d {
		t.Errorf("it ended after %v", took)
	}
	if diff := cmp.Diff([]string{copied("t", `{"id":7}`, 7, 1)}, parsed(t, out)); diff != "" {
		t.Error(diff)
	}
}

func TestS_STD_04(t *testing.T) {
	s := newService(t, settings.Settings{})
	s.Handle(s.key, servicetest.Always(host.Retry(nil)), host.MaxAttempts(2), host.RetryTo(s.to("k")))
	out := s.run("[k] x\n")
	if diff := cmp.Diff([]string{copied("k", "x", 0, 1)}, parsed(t, out)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"k 1 x"}, s.Runs()); diff != "" {
		t.Error("it came back: ", diff)
	}
}

func TestS_STD_05(t *testing.T) {
	s := newService(t, loopback)
	s.Handle(s.key, servicetest.Always(host.Retry(nil)), host.MaxAttempts(3))
	if out := s.run("[k] x\n"); len(out) != 0 {
		t.Errorf("printed %q", out)
	}
	if diff := cmp.Diff([]string{"k 1 x", "k 2 x", "k 3 x"}, s.Runs()); diff != "" {
		t.Error(diff)
	}
	if s.Log.Coded("L-CAP-RJ") != 1 || s.Log.Coded("L-UNS") != 0 {
		t.Errorf("log: %s", s.Log)
	}
}

func TestS_STD_06(t *testing.T) {
	s := newService(t, settings.Settings{})
	s.Handle(s.key, servicetest.Always(host.Retry(nil)), host.MaxAttempts(1), host.DeadLetterTo(s.to("q")), host.RetryTo(s.to("t")))
	out := s.run("[k] x\n")
	if diff := cmp.Diff([]string{copied("q", "x", 0, 1)}, parsed(t, out)); diff != "" {
		t.Error(diff)
	}
	if s.Log.Coded("L-CAP-DL") != 1 {
		t.Errorf("log: %s", s.Log)
	}
}

func TestS_STD_07(t *testing.T) {
	s := newService(t, settings.Settings{})
	s.Handle(s.key, servicetest.Always(host.Retry(nil)), host.DeadLetterTo(s.to("q")), host.RetryTo(s.to("t")))
	out := s.run("[k] x\n[k] y\n")
	if diff := cmp.Diff([]string{copied("q", "x", 0, 1), copied("q", "y", 1, 1)}, parsed(t, out)); diff != "" {
		t.Error(diff)
	}
	if s.Log.Coded("L-CAP-DL") != 0 {
		t.Errorf("log: %s", s.Log)
	}
}

// The count crosses processes: the next stage sees attempt 2.
func TestS_STD_08(t *testing.T) {
	inR, inW := pipes(t)
	midR, midW := pipes(t) // the first stage writes where the second one reads
	outR, outW := pipes(t)
	first := wire(t, settings.Settings{}, inR, midW)
	first.stdin = inW
	first.Handle(first.key, servicetest.Always(host.Retry(nil)), host.MaxAttempts(3), host.RetryTo(first.to("k")))
	second := wire(t, settings.Settings{}, midR, outW)
	second.collect(outR)
	second.Handle(second.key, servicetest.Always(host.Retry(nil)), host.MaxAttempts(3), host.RetryTo(second.to("k")))
	second.Launch()
	first.Launch()
	first.feed("[k] x\n")
	if err := first.Wait(); err != nil {
		t.Error(err)
	}
	out := second.ended()
	if diff := cmp.Diff([]string{"k 2 x"}, second.Runs()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{copied("k", "x", 0, 2)}, parsed(t, out)); diff != "" {
		t.Error(diff)
	}
}

func TestS_STD_09(t *testing.T) {
	s := newService(t, settings.Settings{})
	s.Handle(s.key, servicetest.Always(nil), host.RetryTo(s.to("t")))
	s.run("[k] x\n[\"a\"]\n[k] \xff\n")
	if diff := cmp.Diff([]string{"k 1 x", "k 1 \xff"}, s.Runs()); diff != "" {
		t.Error(diff)
	}
	warned := 0
	for line := range strings.Lines(s.Log.String()) {
		if strings.Contains(line, "line 2") {
			warned++
			if !strings.Contains(line, "between its brackets is no time, stream key, sequence or shard") || !strings.Contains(line, "endpoint=in") {
				t.Errorf("warned with %s", line)
			}
		}
	}
	if warned != 1 {
		t.Errorf("%d lines about the bad one\n%s", warned, s.Log)
	}
}

// The end of the input ends the host with status 0, after the waiting copies.
func TestS_STD_10(t *testing.T) {
	s := newService(t, settings.Settings{})
	s.Handle(s.key, servicetest.Always(host.RetryAfter(200*time.Millisecond, nil)), host.RetryTo(s.to("t")))
	out := s.run("[k] 1\n[k] 2\n")
	got := parsed(t, out)
	slices.Sort(got)
	if diff := cmp.Diff([]string{copied("t", "1", 0, 1), copied("t", "2", 1, 1)}, got); diff != "" {
		t.Error(diff)
	}
}

func TestS_STD_11(t *testing.T) {
	s := newService(t, settings.Settings{})
	p := host.To[[]byte](s.Host, s.to("out"))
	var got error
	s.Handle(s.key, func(*host.Message[[]byte]) error {
		_, got = p.Publish(t.Context(), []byte{})
		return nil
	}, host.RetryTo(s.to("t")))
	if out := s.run("[k] x\n"); len(out) != 0 {
		t.Errorf("printed %q", out)
	}
	var e *host.PublishError
	if !errors.As(got, &e) || e.MaybeSent || !strings.Contains(got.Error(), "empty") {
		t.Errorf("published with %v", got)
	}
}

func TestS_STD_12(t *testing.T) {
	s := newService(t, settings.Settings{})
	s.Handle(s.key, servicetest.Always(nil), host.RetryTo(s.to("t")))
	s.Handle(s.in.Subscription("other"), servicetest.Always(nil), host.RetryTo(s.to("t")))
	s.run("for all\n[other] one\n")
	got := s.Runs()
	slices.Sort(got)
	if diff := cmp.Diff([]string{"broadcast 1 for all", "broadcast 1 for all", "other 1 one"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestS_STD_13(t *testing.T) {
	s := newService(t, settings.Settings{})
	s.Handle(s.key, servicetest.Always(host.Leave()), host.RetryTo(s.to("t")))
	if out := s.run("[k] x\n"); len(out) != 0 {
		t.Errorf("printed %q", out)
	}
	for line := range strings.Lines(s.Log.String()) {
		// The one warning at start is about what retries come to here.
		if strings.Contains(line, "level=WARN") && !strings.Contains(line, "code=L-CHECK") || strings.Contains(line, "level=ERROR") {
			t.Errorf("logged %s", line)
		}
	}
}

// A waiting copy leaves before the host ends, whether its input has ended or a
// stop was asked for; within the limit of a stop.
func TestS_STD_14(t *testing.T) {
	for _, stop := range []bool{false, true} {
		t.Run(fmt.Sprintf("stop=%t", stop), func(t *testing.T) {
			s := newService(t, settings.Settings{}, host.WithDrainLimit(servicetest.Limit/3))
			ran := make(chan struct{})
			s.Handle(s.key, func(*host.Message[[]byte]) error {
				close(ran)
				return host.RetryAfter(500*time.Millisecond, nil)
			}, host.RetryTo(s.to("t")))
			s.Launch()
			if stop {
				if _, err := s.stdin.WriteString("[k] x\n"); err != nil {
					t.Fatal(err)
				}
				<-ran
				s.Cancel()
			} else {
				s.feed("[k] x\n")
			}
			out := s.ended()
			if diff := cmp.Diff([]string{copied("t", "x", 0, 1)}, parsed(t, out)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestS_STD_15(t *testing.T) {
	s := newService(t, loopback)
	s.Handle(s.key, servicetest.Always(nil), host.MaxAttempts(2), host.DeadLetterTo(s.to("k")), host.RetryTo(s.to("t")))
	s.refused("DeadLetterTo", "k")
}

func TestS_STD_16(t *testing.T) {
	s := newService(t, loopback)
	s.Handle(s.key, servicetest.Always(host.RetryAfter(100*time.Millisecond, nil)), host.MaxAttempts(2))
	if out := s.run("[k] x\n"); len(out) != 0 {
		t.Errorf("printed %q", out)
	}
	if diff := cmp.Diff([]string{"k 1 x", "k 2 x"}, s.Runs()); diff != "" {
		t.Error(diff)
	}
	if s.Log.Coded("L-CAP-RJ") != 1 {
		t.Errorf("log: %s", s.Log)
	}
}

// Many messages that all fail go round a small window and end: the copies'
// receipts wait for their deliveries, and the host for both.
func TestEveryMessageFails(t *testing.T) {
	const lines, attempts = 3000, 3
	s := newService(t, loopback)
	s.Handle(s.key, servicetest.Always(host.Retry(nil)), host.MaxAttempts(attempts))
	s.Launch()
	var in strings.Builder
	for i := range lines {
		fmt.Fprintf(&in, "[k] %d\n", i)
	}
	go s.feed(in.String())
	if out := s.ended(); len(out) != 0 {
		t.Errorf("printed %d lines", len(out))
	}
	count := map[string]int{}
	for _, run := range s.Runs() {
		count[run]++
	}
	for i := range lines {
		for n := 1; n <= attempts; n++ {
			if run := fmt.Sprintf("k %d %d", n, i); count[run] != 1 {
				t.Fatalf("%d runs of %q", count[run], run)
			}
		}
	}
	if n := s.Log.Coded("L-CAP-RJ"); n != lines {
		t.Errorf("%d lines of L-CAP-RJ", n)
	}
}
