// SPDX-License-Identifier: Apache-2.0

package pipe_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
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
			s.handle(s.key, always(tt.says), host.RetryTo(s.to("t")))
			if out := s.run(strings.Repeat("[k] x\n", 20)); len(out) != 0 {
				t.Errorf("printed %q", out)
			}
			if n := len(s.runs()); n != 20 {
				t.Errorf("%d runs", n)
			}
			// A retry is warned of at most once a second, with the number since.
			if n := s.logged("L-UNS"); n < 1 || n > tt.want+int(time.Since(s.began)/time.Second) {
				t.Errorf("%d lines of L-UNS\n%s", n, s.log)
			}
		})
	}
}

func TestS_STD_02(t *testing.T) {
	for name, rules := range map[string][]host.Rule{"nothing": nil, "cap": {host.MaxAttempts(2)}} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, settings.Settings{})
			s.handle(s.key, always(nil), rules...)
			s.refused("RetryTo", "k")
		})
	}
}

// refused runs a host whose start is refused for an option of the key "k".
func (s *service) refused(option string, texts ...string) {
	s.t.Helper()
	s.start()
	err := s.wait()
	<-s.read
	var e *host.StartError
	if !errors.As(err, &e) {
		s.t.Fatalf("ended with %v", err)
	}
	for _, f := range e.Findings {
		if f.Subscription == "k" && f.Option == option && f.Fix != "" {
			for _, text := range texts {
				if !strings.Contains(f.String(), text) {
					s.t.Errorf("%q does not name %s", f, text)
				}
			}
			if len(e.Findings) != 1 {
				s.t.Errorf("findings %v", e.Findings)
			}
			return
		}
	}
	s.t.Errorf("findings %v", e.Findings)
}

func TestS_STD_03(t *testing.T) {
	const d = 300 * time.Millisecond
	s := newService(t, settings.Settings{})
	s.handle(s.key, always(host.RetryAfter(d, nil)), host.RetryTo(s.to("t")))
	out := s.run("[k | 7] {\"id\":7}\n")
	if took := time.Since(s.began); took < d {
		t.Errorf("it ended after %v", took)
	}
	if diff := cmp.Diff([]string{copied("t", `{"id":7}`, 7, 1)}, parsed(t, out)); diff != "" {
		t.Error(diff)
	}
}

func TestS_STD_04(t *testing.T) {
	s := newService(t, settings.Settings{})
	s.handle(s.key, always(host.Retry(nil)), host.MaxAttempts(2), host.RetryTo(s.to("k")))
	out := s.run("[k] x\n")
	if diff := cmp.Diff([]string{copied("k", "x", 0, 1)}, parsed(t, out)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"k 1 x"}, s.runs()); diff != "" {
		t.Error("it came back: ", diff)
	}
}

func TestS_STD_05(t *testing.T) {
	s := newService(t, loopback)
	s.handle(s.key, always(host.Retry(nil)), host.MaxAttempts(3))
	if out := s.run("[k] x\n"); len(out) != 0 {
		t.Errorf("printed %q", out)
	}
	if diff := cmp.Diff([]string{"k 1 x", "k 2 x", "k 3 x"}, s.runs()); diff != "" {
		t.Error(diff)
	}
	if s.logged("L-CAP-RJ") != 1 || s.logged("L-UNS") != 0 {
		t.Errorf("log: %s", s.log)
	}
}

func TestS_STD_06(t *testing.T) {
	s := newService(t, settings.Settings{})
	s.handle(s.key, always(host.Retry(nil)), host.MaxAttempts(1), host.DeadLetterTo(s.to("q")), host.RetryTo(s.to("t")))
	out := s.run("[k] x\n")
	if diff := cmp.Diff([]string{copied("q", "x", 0, 1)}, parsed(t, out)); diff != "" {
		t.Error(diff)
	}
	if s.logged("L-CAP-DL") != 1 {
		t.Errorf("log: %s", s.log)
	}
}

func TestS_STD_07(t *testing.T) {
	s := newService(t, settings.Settings{})
	s.handle(s.key, always(host.Retry(nil)), host.DeadLetterTo(s.to("q")), host.RetryTo(s.to("t")))
	out := s.run("[k] x\n[k] y\n")
	if diff := cmp.Diff([]string{copied("q", "x", 0, 1), copied("q", "y", 1, 1)}, parsed(t, out)); diff != "" {
		t.Error(diff)
	}
	if s.logged("L-CAP-DL") != 0 {
		t.Errorf("log: %s", s.log)
	}
}

// The count crosses processes: the next stage sees attempt 2.
func TestS_STD_08(t *testing.T) {
	first := newService(t, settings.Settings{})
	midR, midW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// The first stage writes where the second one reads.
	_ = first.out.Close()
	inR := first.closer[0]
	<-first.read
	stdin := first.stdin
	first = wire(t, settings.Settings{}, inR, midW)
	first.stdin = stdin
	first.handle(first.key, always(host.Retry(nil)), host.MaxAttempts(3), host.RetryTo(first.to("k")))
	second := wire(t, settings.Settings{}, midR, outW)
	second.read = make(chan []string, 1)
	go func() { second.read <- collectLines(outR) }()
	second.handle(second.key, always(host.Retry(nil)), host.MaxAttempts(3), host.RetryTo(second.to("k")))
	second.start()
	first.start()
	first.feed("[k] x\n")
	if err := first.wait(); err != nil {
		t.Error(err)
	}
	out := second.ended()
	if diff := cmp.Diff([]string{"k 2 x"}, second.runs()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{copied("k", "x", 0, 2)}, parsed(t, out)); diff != "" {
		t.Error(diff)
	}
}

func TestS_STD_09(t *testing.T) {
	s := newService(t, settings.Settings{})
	s.handle(s.key, always(nil), host.RetryTo(s.to("t")))
	s.run("[k] x\n[\"a\"]\n[k] \xff\n")
	if diff := cmp.Diff([]string{"k 1 x", "k 1 \xff"}, s.runs()); diff != "" {
		t.Error(diff)
	}
	warned := 0
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, "line 2") {
			warned++
			if !strings.Contains(line, "between its brackets is no time, stream key, sequence or shard") || !strings.Contains(line, "endpoint=in") {
				t.Errorf("warned with %s", line)
			}
		}
	}
	if warned != 1 {
		t.Errorf("%d lines about the bad one\n%s", warned, s.log)
	}
}

// The end of the input ends the host with status 0, after the waiting copies.
func TestS_STD_10(t *testing.T) {
	s := newService(t, settings.Settings{})
	s.handle(s.key, always(host.RetryAfter(200*time.Millisecond, nil)), host.RetryTo(s.to("t")))
	out := s.run("[k] 1\n[k] 2\n")
	got := parsed(t, out)
	slices.Sort(got)
	if diff := cmp.Diff([]string{copied("t", "1", 0, 1), copied("t", "2", 1, 1)}, got); diff != "" {
		t.Error(diff)
	}
}

func TestS_STD_11(t *testing.T) {
	s := newService(t, settings.Settings{})
	p := host.To[[]byte](s.host, s.to("out"))
	var got error
	s.handle(s.key, func(*host.Message[[]byte]) error {
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
	s.handle(s.key, always(nil), host.RetryTo(s.to("t")))
	s.handle(s.in.Subscription("other"), always(nil), host.RetryTo(s.to("t")))
	s.run("for all\n[other] one\n")
	got := s.runs()
	slices.Sort(got)
	if diff := cmp.Diff([]string{"broadcast 1 for all", "broadcast 1 for all", "other 1 one"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestS_STD_13(t *testing.T) {
	s := newService(t, settings.Settings{})
	s.handle(s.key, always(host.Leave()), host.RetryTo(s.to("t")))
	if out := s.run("[k] x\n"); len(out) != 0 {
		t.Errorf("printed %q", out)
	}
	for line := range strings.Lines(s.log.String()) {
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
			s := newService(t, settings.Settings{}, host.WithDrainLimit(30*time.Second))
			ran := make(chan struct{})
			s.handle(s.key, func(*host.Message[[]byte]) error {
				close(ran)
				return host.RetryAfter(500*time.Millisecond, nil)
			}, host.RetryTo(s.to("t")))
			s.start()
			if stop {
				if _, err := s.stdin.WriteString("[k] x\n"); err != nil {
					t.Fatal(err)
				}
				<-ran
				s.cancel()
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
	s.handle(s.key, always(nil), host.MaxAttempts(2), host.DeadLetterTo(s.to("k")), host.RetryTo(s.to("t")))
	s.refused("DeadLetterTo", "k")
}

func TestS_STD_16(t *testing.T) {
	s := newService(t, loopback)
	s.handle(s.key, always(host.RetryAfter(100*time.Millisecond, nil)), host.MaxAttempts(2))
	if out := s.run("[k] x\n"); len(out) != 0 {
		t.Errorf("printed %q", out)
	}
	if diff := cmp.Diff([]string{"k 1 x", "k 2 x"}, s.runs()); diff != "" {
		t.Error(diff)
	}
	if s.logged("L-CAP-RJ") != 1 {
		t.Errorf("log: %s", s.log)
	}
}

// Many messages that all fail go round a small window and end: the copies'
// receipts wait for their deliveries, and the host for both.
func TestEveryMessageFails(t *testing.T) {
	const lines, attempts = 3000, 3
	s := newService(t, loopback)
	s.handle(s.key, always(host.Retry(nil)), host.MaxAttempts(attempts))
	s.start()
	var in strings.Builder
	for i := range lines {
		fmt.Fprintf(&in, "[k] %d\n", i)
	}
	go s.feed(in.String())
	if out := s.ended(); len(out) != 0 {
		t.Errorf("printed %d lines", len(out))
	}
	count := map[string]int{}
	for _, run := range s.runs() {
		count[run]++
	}
	for i := range lines {
		for n := 1; n <= attempts; n++ {
			if run := fmt.Sprintf("k %d %d", n, i); count[run] != 1 {
				t.Fatalf("%d runs of %q", count[run], run)
			}
		}
	}
	if n := s.logged("L-CAP-RJ"); n != lines {
		t.Errorf("%d lines of L-CAP-RJ", n)
	}
}
