// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/memory"
)

// betweenText is a service that passes on what comes by standard input to a
// queue, and what comes by another queue to standard output.
const betweenText = `
endpoints:
  pipe: {transport: pipe, stdio: true}
  mem: {transport: memory, settings: %s}
subscriptions:
  - {from: pipe, name: orders, forward: {to: mem, name: received}, retry_to: {to: mem, name: again}}
  - {from: mem, name: outgoing, forward: {to: pipe, name: out}}
`

func between(t *testing.T, b *bench) string {
	t.Helper()
	return serviceFile(t, fmt.Sprintf(betweenText, inYAML(t, b.Settings)))
}

// lineForm is the documented form of a line.
var lineForm = regexp.MustCompile(`^\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d \| ([A-Za-z0-9_.-]+) \| (\d+)\] (.+)\n$`)

// S-01: ten lines, one of 70 KiB, one of 8 MiB: all of them arrive byte-equal. A
// line beyond the limit is one report, and the next one is handled.
func TestS01VeryLongLine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var want []string
	var in strings.Builder
	for i := 1; i <= 10; i++ {
		payload := fmt.Sprintf("line %d", i)
		switch i {
		case 5:
			payload = strings.Repeat("m", 70<<10)
		case 7:
			fmt.Fprintf(&in, "[orders] %s\n", strings.Repeat("t", 65<<20)) // above 64 MiB
		case 8:
			payload = strings.Repeat("l", 8<<20)
		}
		fmt.Fprintf(&in, "[orders] %s\n", payload)
		want = append(want, payload)
	}
	p := startProgram(t, between(t, b), nil, func(c *exec.Cmd) { c.Stdin = strings.NewReader(in.String()) })
	b.must(b.WaitPublished(b.ctx, "received", len(want)))
	for i, m := range b.Published("received") {
		if string(m.Payload) != want[i] {
			t.Errorf("line %d: %d bytes differ from %d", i+1, len(m.Payload), len(want[i]))
		}
	}
	reports := p.log.of("L-STREAM", "orders")
	if len(reports) != 1 || reports[0].text("position") != "line 7" || !strings.Contains(reports[0].text("error"), "67108864") {
		t.Errorf("reports: %v, want one that names line 7 and the limit", reports)
	}
	p.signal(syscall.SIGTERM)
	if status := p.status(); status != 0 {
		t.Errorf("status %d", status)
	}
}

// S-03: with debug logs, a handler that panics, a plugin that logs and one that
// writes to its own standard output, standard output has message lines alone.
func TestS03StrayOutput(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var out bytes.Buffer
	input, feed, err := os.Pipe()
	b.must(err)
	c := childConfig{
		Endpoints: []childEndpoint{
			{Name: "pipe", Plugin: "pipe", Path: pipePlugin(t), Stdio: true},
			{Name: "mem", Plugin: "memory", Path: b.Path, Settings: asMap(t, b.Settings)},
		},
		Subscriptions: []childSubscription{
			{From: "pipe", Name: "orders", Forward: "out", RetryTo: "again", PanicDrops: true},
			{From: "mem", Name: "idle"},
		},
	}
	p := startChild(t, c, func(cmd *exec.Cmd) { cmd.Stdin, cmd.Stdout = input, &out })
	_ = input.Close()
	p.next("ready")
	noisy := b.client("mem")
	for _, stream := range []string{"stdout", "stderr", "log"} {
		b.must(noisy.Noise(b.ctx, stream, "[orders | 0] not a message\n", 10))
	}
	_, err = feed.WriteString("[orders] ack\n[orders] panic\n[not | a | line] x\n[orders] ack\n")
	b.must(err)
	b.must(feed.Close())
	for range 3 {
		p.next("run")
	}
	p.says("code", "L-END", "subscription", "orders")
	p.signal(syscall.SIGTERM)
	if status := p.status(); status != 0 {
		t.Errorf("status %d", status)
	}
	for _, code := range []string{"L-PAN", "L-STREAM"} {
		if len(p.log.of(code, "")) == 0 {
			t.Errorf("the log has no %s", code)
		}
	}
	n := 0
	for text := range strings.Lines(out.String()) {
		m := lineForm.FindStringSubmatch(text)
		if m == nil || m[1] != "out" || m[2] != fmt.Sprint(n) {
			t.Errorf("line %q on standard output", text)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d lines, want 2", n)
	}
}

// S-04: what follows the form is handled byte-equal, anything else is one report
// with the number of its line; together they are all lines.
func TestS04LineSyntax(t *testing.T) {
	t.Parallel()
	lines := []struct {
		text, want string
		bad        bool
	}{
		{"\xef\xbb\xbf[orders] a mark before the first", "a mark before the first", false},
		{"", "", false},
		{"[x", "[x", false},
		{"[orders | 5] two fields", "two fields", false},
		{"[orders | five] no number", "", true},
		{"[orders | 5 | x] no shard", "", true},
		{"[orders] carriage return\r", "carriage return\r", false},
		{"[orders] a | b ] c", "a | b ] c", false},
		{"[orders] \x00", "\x00", false},
		{"\xef\xbb\xbf[orders] a mark later on", "\xef\xbb\xbf[orders] a mark later on", false},
		{`["an","array"]`, "", true},
		{"[\xff\xfe] x", "", true},
		{"[orders] last", "last", false},
	}
	b := newBench(t)
	var in strings.Builder
	var want, wrong []string
	for i, l := range lines {
		in.WriteString(l.text + "\n")
		if l.bad {
			wrong = append(wrong, fmt.Sprintf("line %d", i+1))
		} else {
			want = append(want, l.want)
		}
	}
	p := startProgram(t, between(t, b), nil, func(c *exec.Cmd) { c.Stdin = strings.NewReader(in.String()) })
	b.must(b.WaitPublished(b.ctx, "received", len(want)))
	p.signal(syscall.SIGTERM)
	if status := p.status(); status != 0 {
		t.Errorf("status %d", status)
	}
	var got, reported []string
	for _, m := range b.Published("received") {
		got = append(got, string(m.Payload))
	}
	for _, l := range p.log.of("L-STREAM", "orders") {
		reported = append(reported, l.text("position"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("payloads (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wrong, reported); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

// S-05: the next stage does not read. Memory stays flat, the input is not read
// on, and a stop with a limit of 3 s ends soon after that and says how many
// messages were not settled.
func TestS05SlowNextStage(t *testing.T) {
	t.Parallel()
	const (
		lines = 10_000
		limit = 3 * time.Second
	)
	file := serviceFile(t, `
endpoints:
  pipe: {transport: pipe, stdio: true}
subscriptions:
  - {from: pipe, name: orders, forward: {to: pipe, name: out}, retry_to: {to: pipe, name: orders}}
`)
	input, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	sleeper, output, err := os.Pipe() // the reader is open and never reads
	if err != nil {
		t.Fatal(err)
	}
	defer sleeper.Close()
	p := startProgram(t, file, []string{"--drain-limit", limit.String()}, func(c *exec.Cmd) { c.Stdin, c.Stdout = input, output })
	_ = input.Close()
	_ = output.Close()
	var fed atomic.Int64
	fedAll := make(chan struct{})
	go func() {
		defer close(fedAll)
		defer feed.Close()
		for range lines {
			if _, err := fmt.Fprintf(feed, "[orders] %s\n", strings.Repeat("x", 1<<10)); err != nil {
				return
			}
			fed.Add(1)
		}
	}()
	p.serves()
	// Blocked is when nothing was taken for a while, beyond what its pipes hold.
	last, since := int64(-1), time.Now()
	eventually(t, "the input is not read on", func() bool {
		if n := fed.Load(); n != last {
			last, since = n, time.Now()
		}
		return last > 150 && time.Since(since) > 2*time.Second
	})
	// Two pipes of 64 KiB, the reader's buffer, 64 deliveries and their publishes.
	if last > 1000 {
		t.Errorf("%d of %d lines were taken", last, lines)
	}
	for name, pid := range map[string]int{"host": p.cmd.Process.Pid, "plugin": p.plugins()["pipe"]} {
		if kib := resident(t, pid); kib > 80<<10 {
			t.Errorf("the %s has %d KiB resident", name, kib)
		}
	}
	began := time.Now()
	p.signal(syscall.SIGTERM)
	status := p.status()
	if took := time.Since(began); took > limit+late {
		t.Errorf("it ended after %v", took)
	}
	<-fedAll
	said := p.says("msg", "host stopped").text("error")
	if !regexp.MustCompile(`subscription orders of endpoint pipe: .*[1-9]\d* settlements were cut off`).MatchString(said) || status != 5 {
		t.Errorf("status %d; it does not say how many were not settled: %s", status, said)
	}
}

// resident returns what a process has in memory, in KiB.
func resident(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("no /proc here")
	}
	for l := range strings.Lines(string(text)) {
		var kib int
		if n, _ := fmt.Sscanf(l, "VmRSS: %d kB", &kib); n == 1 {
			return kib
		}
	}
	t.Errorf("process %d shows no memory", pid)
	return 0
}

// S-06: of two plugins one has the host's standard input and output. All lines
// are handled, all come out, and after kill -9 of the host the writer before it
// gets a broken pipe.
func TestS06WhoReadsStdin(t *testing.T) {
	t.Parallel()
	const lines = 1000
	b := newBench(t)
	input, feed, err := os.Pipe()
	b.must(err)
	drain, output, err := os.Pipe()
	b.must(err)
	defer drain.Close()
	p := startProgram(t, between(t, b), nil, func(c *exec.Cmd) { c.Stdin, c.Stdout = input, output })
	_ = input.Close()
	_ = output.Close()
	for i := range lines {
		_, err := fmt.Fprintf(feed, "[orders] in %d\n", i)
		b.must(err)
	}
	b.must(b.WaitPublished(b.ctx, "received", lines))
	for i, m := range b.Published("received") {
		if string(m.Payload) != fmt.Sprintf("in %d", i) {
			t.Fatalf("line %d is %q", i, m.Payload)
		}
	}
	for i := range lines {
		b.Publish("outgoing", memory.Text(fmt.Sprintf("out %d", i)))
	}
	out := bufio.NewReader(drain)
	for i := range lines {
		text, err := out.ReadString('\n')
		b.must(err)
		m := lineForm.FindStringSubmatch(text)
		if m == nil || m[1] != "out" || m[3] != fmt.Sprintf("out %d", i) {
			t.Fatalf("line %d on standard output is %q", i, text)
		}
	}
	b.must(b.WaitSettled(b.ctx, "outgoing", lines))
	if held := descriptors(t, p.plugins()["mem"]); held[link(t, feed)] || held[link(t, drain)] {
		t.Errorf("the other plugin holds standard input or output: %v", held)
	}
	broken := make(chan error, 1)
	go func() {
		for {
			if _, err := feed.WriteString("[orders] more\n"); err != nil {
				broken <- err
				return
			}
		}
	}()
	p.kill()
	select {
	case err := <-broken:
		if !errors.Is(err, syscall.EPIPE) {
			t.Errorf("the writer got %v", err)
		}
	case <-time.After(patience):
		t.Error("the writer gets no broken pipe")
	}
	_ = feed.Close()
	if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
		t.Errorf("standard output ends with %q, %v", rest, err)
	}
}

// link is what a descriptor of this process leads to, as /proc shows it.
func link(t *testing.T, f *os.File) string {
	t.Helper()
	text, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		t.Skip("no /proc here")
	}
	return text
}

// descriptors is what the descriptors of a process lead to.
func descriptors(t *testing.T, pid int) map[string]bool {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, e := range entries {
		if text, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			out[text] = true
		}
	}
	return out
}
