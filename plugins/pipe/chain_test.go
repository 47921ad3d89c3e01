// SPDX-License-Identifier: Apache-2.0

package pipe_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/memtest"
	"github.com/longshore-go/longshore/internal/programtest"
	"github.com/longshore-go/longshore/internal/servicetest"
)

// stage is `longshore run` on a service file.
type stage struct {
	*exec.Cmd
	t   *testing.T
	log *servicetest.Log
}

// newStage builds the programs, all into one folder, and returns the command.
func newStage(t *testing.T, file string, args ...string) *stage {
	t.Helper()
	const module = "github.com/longshore-go/longshore"
	programtest.Path(t, module+"/plugins/pipe/longshore-transport-pipe")
	memtest.Plugin(t)
	path := filepath.Join(t.TempDir(), "service.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), servicetest.Limit)
	t.Cleanup(cancel)
	s := &stage{t: t, log: &servicetest.Log{}}
	s.Cmd = exec.CommandContext(ctx, programtest.Path(t, module+"/cmd/longshore"), append([]string{"run", path}, args...)...)
	s.Env = append(os.Environ(), "LONGSHORE_PLUGIN_DIR=")
	s.Stderr = s.log
	s.WaitDelay = servicetest.Limit / 3
	return s
}

// ends waits for the stage and checks its status.
func (s *stage) ends(status int) {
	s.t.Helper()
	_ = s.Wait()
	if got := s.ProcessState.ExitCode(); got != status {
		s.t.Errorf("%s ended with status %d, want %d:\n%s", s.Path, got, status, s.log)
	}
}

// begin starts the stage; files given to it are closed here.
func (s *stage) begin(files ...*os.File) {
	s.t.Helper()
	if err := s.Start(); err != nil {
		s.t.Fatal(err)
	}
	for _, f := range files {
		if err := f.Close(); err != nil {
			s.t.Error(err)
		}
	}
}

// forwarding is a service that passes on a key under another.
func forwarding(from, to, set string) string {
	return fmt.Sprintf(`
endpoints:
  pipe: {transport: pipe, stdio: true, settings: {%s}}
subscriptions:
  - {from: pipe, name: %s, forward: {to: pipe, name: %s}, retry_to: {to: pipe, name: %s}}
`, set, from, to, from)
}

// plainFilter is a service between two plain streams.
const plainFilter = `
endpoints:
  pipe: {transport: pipe, stdio: true, settings: {loopback: true, plain_input: true, plain_output: true}}
subscriptions:
  - {from: pipe, name: lines, forward: {to: pipe, name: out}}
`

func pipes(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// plugin returns the process id of a stage's plugin, told by its log.
func (s *stage) plugin() int {
	s.t.Helper()
	started := regexp.MustCompile(`plugin process started.* pid=(\d+)`)
	var pid int
	s.eventually("the plugin is started", func() bool {
		m := started.FindStringSubmatch(s.log.String())
		if m == nil {
			return false
		}
		pid, _ = strconv.Atoi(m[1])
		return true
	})
	return pid
}

// eventually polls a condition.
func (s *stage) eventually(what string, done func() bool) {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	const most = servicetest.Limit / 3
	limit := time.NewTimer(most)
	defer limit.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-limit.C:
			s.t.Fatalf("not within %v: %s\n%s", most, what, s.log)
		}
	}
}

// peak is the most memory a process had, in MiB, from /proc.
func peak(t *testing.T, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("no /proc here: %v", err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(data)
	if m == nil {
		t.Fatal("no VmHWM")
	}
	kb, _ := strconv.Atoi(string(m[1]))
	return kb >> 10
}

// producer | service | service: every line passes both, in order, and both end
// by themselves.
func TestChain(t *testing.T) {
	const lines = 20_000
	inR, inW := pipes(t)
	midR, midW := pipes(t)
	outR, outW := pipes(t)
	first, second := newStage(t, forwarding("orders", "checked", "")), newStage(t, forwarding("checked", "final", ""))
	first.Stdin, first.Stdout = inR, midW
	second.Stdin, second.Stdout = midR, outW
	first.begin(inR, midW)
	second.begin(midR, outW)
	go func() {
		w := bufio.NewWriter(inW)
		for i := range lines {
			_, _ = fmt.Fprintf(w, "[orders | %d] {\"id\":%d}\n", i, i)
		}
		_ = w.Flush()
		_ = inW.Close()
	}()
	got := parsed(t, collectLines(outR))
	first.ends(0)
	second.ends(0)
	if len(got) != lines {
		t.Fatalf("%d lines", len(got))
	}
	for i, line := range got {
		// The number is that of the key checked in the first stage's output.
		if want := fmt.Sprintf("final {\"id\":%d}", i); line != want {
			t.Fatalf("line %d is %q, want %q", i, line, want)
		}
	}
}

// numberedLine appends a line with its number.
func numberedLine(b []byte, i int) []byte {
	b = strconv.AppendInt(append(b, "line "...), int64(i), 10)
	b = append(b, " of a million, with some more text to make it a hundred bytes long, which is "...)
	return strconv.AppendInt(b, int64(i), 10)
}

// 1,000,000 lines pass through in bounded memory, every one of them, in order.
func TestAMillionLines(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	const lines, limit = 1_000_000, 100 // MiB
	inR, inW := pipes(t)
	outR, outW := pipes(t)
	s := newStage(t, plainFilter)
	s.Stdin, s.Stdout = inR, outW
	s.begin(inR, outW)
	plugin := s.plugin()
	went := make(chan struct{})
	go func() {
		defer close(went)
		w := bufio.NewWriterSize(inW, 64<<10)
		var line []byte
		for i := range lines {
			line = append(numberedLine(line[:0], i), '\n')
			_, _ = w.Write(line)
		}
		_ = w.Flush()
	}()
	began := time.Now()
	scan := bufio.NewScanner(outR)
	got := 0
	var want []byte
	for got < lines && scan.Scan() {
		if want = numberedLine(want[:0], got); !bytes.Equal(scan.Bytes(), want) {
			t.Fatalf("line %d is %q", got, scan.Text())
		}
		got++
	}
	took := time.Since(began)
	<-went
	host, behind := peak(t, s.Process.Pid), peak(t, plugin)
	t.Logf("%d lines in %v (%.0f a second); at most %d MiB in the host, %d MiB in the plugin",
		got, took.Round(time.Millisecond), float64(got)/took.Seconds(), host, behind)
	if host > limit || behind > limit {
		t.Errorf("%d MiB in the host, %d MiB in the plugin", host, behind)
	}
	if err := inW.Close(); err != nil {
		t.Error(err)
	}
	if scan.Scan() {
		t.Errorf("one more line: %q", scan.Text())
	}
	s.ends(0)
	_ = outR.Close()
	if got != lines {
		t.Errorf("%d lines", got)
	}
}

// S-04: what a line can look like, through a whole service: well-formed ones
// byte-equal, the others one warning each with the number of the line.
func TestLineSyntax_S_04(t *testing.T) {
	s := newStage(t, forwarding("k", "out", ""))
	s.Stdin = strings.NewReader("\xef\xbb\xbf[k] with a mark\n\n[x\n[k | x] bad\n[k | 1 | 2 | 3] bad\n[k] crlf\r\n[k] a | b ] c\n[k] \x00 nul\n[k] \xff\n[1,2]\n")
	var out bytes.Buffer
	s.Stdout = &out
	s.begin()
	s.ends(0)
	want := []string{
		"out with a mark", "out  stream-sequence=0", "out [x", "out crlf\r",
		"out a | b ] c", "out \x00 nul", "out \xff",
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if diff := cmp.Diff(want, parsed(t, lines)); diff != "" {
		t.Error(diff)
	}
	for _, n := range []int{4, 5, 10} {
		if got := strings.Count(s.log.String(), fmt.Sprintf("line %d\"", n)); got != 1 {
			t.Errorf("line %d: %d warnings\n%s", n, got, s.log)
		}
	}
}

// S-05: nobody reads for a while: memory stays flat, a stop ends the process
// within its limit and says what was not settled.
func TestSlowNextStage_S_05(t *testing.T) {
	t.Parallel()
	inR, inW := pipes(t)
	outR, outW := pipes(t)
	defer func() { _ = outR.Close() }()
	s := newStage(t, forwarding("k", "out", ""), "--drain-limit", "3s")
	s.Stdin, s.Stdout = inR, outW
	s.begin(inR, outW)
	plugin := s.plugin()
	written := make(chan int64, 1)
	go func() {
		line := "[k] " + strings.Repeat("x", 1<<10) + "\n"
		n := int64(0)
		for range 10_000 {
			if err := inW.SetWriteDeadline(time.Now().Add(2 * time.Second)); err != nil {
				break
			}
			m, err := inW.WriteString(line)
			n += int64(m)
			if err != nil {
				break
			}
		}
		written <- n
	}()
	if n := <-written; n > 4<<20 {
		t.Errorf("%d bytes of 10 MB were taken", n)
	}
	if host, behind := peak(t, s.Process.Pid), peak(t, plugin); host > 100 || behind > 100 {
		t.Errorf("%d MiB in the host, %d MiB in the plugin", host, behind)
	}
	began := time.Now()
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.ends(5)
	if took := time.Since(began); took > servicetest.Limit/3 {
		t.Errorf("the stop took %v", took)
	}
	_ = inW.Close()
	if log := s.log.String(); !regexp.MustCompile(`\d+ (settlement|outcome|handler|deliver)`).MatchString(log) {
		t.Errorf("it does not say what was not settled:\n%s", log)
	}
}

// S-06: with another transport beside the pipe nothing else holds the pipe's
// ends: every line comes through, and once the host is killed the writer gets a
// broken pipe.
func TestNobodyElseHoldsThePipes_S_06(t *testing.T) {
	t.Parallel()
	const lines = 1000
	b := memtest.Start(t)
	file := fmt.Sprintf(`
endpoints:
  pipe: {transport: pipe, stdio: true}
  mem: {transport: memory, settings: {address: %s}}
subscriptions:
  - {from: pipe, name: orders, forward: {to: mem, name: orders}, retry_to: {to: pipe, name: orders}}
  - {from: mem, name: back, forward: {to: pipe, name: back}}
`, b.Address)
	inR, inW := pipes(t)
	outR, outW := pipes(t)
	s := newStage(t, file)
	s.Stdin, s.Stdout = inR, outW
	s.begin(inR, outW)
	out := make(chan []string, 1)
	go func() { out <- collectLines(outR) }()
	for i := range lines {
		if _, err := fmt.Fprintf(inW, "[orders] %d\n", i); err != nil {
			t.Fatal(err)
		}
		b.Publish("back", memory.Text(strconv.Itoa(i)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), servicetest.Limit)
	defer cancel()
	if err := b.WaitPublished(ctx, "orders", lines); err != nil {
		t.Fatal(err)
	}
	if err := b.WaitSettled(ctx, "back", lines); err != nil {
		t.Fatal(err)
	}
	for i, m := range b.Published("orders") {
		if string(m.Payload) != strconv.Itoa(i) {
			t.Fatalf("message %d is %q", i, m.Payload)
		}
	}
	if err := s.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for {
		if _, err := io.WriteString(inW, "[orders] more\n"); err != nil {
			if !errors.Is(err, syscall.EPIPE) {
				t.Errorf("the writer got %v", err)
			}
			break
		}
		if time.Since(began) > servicetest.Limit/3 {
			t.Fatalf("the writer got no broken pipe within %v", servicetest.Limit/3)
		}
		time.Sleep(20 * time.Millisecond) // a writer at its leisure; the pipe is not to fill up
	}
	_ = inW.Close()
	_ = s.Wait()
	// The end of the output comes too: no process keeps it.
	if got := parsed(t, <-out); len(got) != lines {
		t.Errorf("%d lines came out", len(got))
	}
}

// The next stage ends first: the stage ends with the status of a lost endpoint,
// names the reason, and its writer gets a broken pipe in turn.
func TestNextStageEnds(t *testing.T) {
	inR, inW := pipes(t)
	outR, outW := pipes(t)
	s := newStage(t, plainFilter)
	s.Stdin, s.Stdout = inR, outW
	s.begin(inR, outW)
	if _, err := inW.WriteString("one\n"); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(outR).ReadString('\n') // head -1
	if err != nil || line != "one\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	if err := outR.Close(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := inW.WriteString("more\n"); err != nil {
			if !errors.Is(err, syscall.EPIPE) {
				t.Errorf("the writer got %v", err)
			}
			break
		}
	}
	s.ends(4)
	if log := s.log.String(); !strings.Contains(log, "the next stage has closed its end") {
		t.Errorf("log: %s", log)
	}
}

// A crash of the plugin ends the service: it is never started again, and the
// error says how far the input was read.
func TestNeverRestarted(t *testing.T) {
	t.Parallel()
	inR, inW := pipes(t)
	began := filepath.Join(t.TempDir(), "began")
	s := newStage(t, fmt.Sprintf(`
endpoints:
  pipe: {transport: pipe, stdio: true}
subscriptions:
  - {from: pipe, name: k, workers: 3, exec: {command: [sh, -c, "echo x >> %s; exec sleep 60"]}, retry_to: {to: pipe, name: k}}
`, began), "--drain-limit", "1s")
	s.Stdin = inR
	s.begin(inR)
	plugin := s.plugin()
	if _, err := inW.WriteString("[k] 1\n[k] 2\n[k] 3\n"); err != nil {
		t.Fatal(err)
	}
	s.eventually("the host has all three", func() bool {
		b, err := os.ReadFile(began)
		return err == nil && strings.Count(string(b), "x") == 3
	})
	if err := syscall.Kill(plugin, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = s.Wait()
	_ = inW.Close()
	log := s.log.String()
	if n := strings.Count(log, "plugin process started"); n != 1 {
		t.Errorf("%d starts", n)
	}
	if got := s.ProcessState.ExitCode(); got != 4 && got != 5 {
		t.Errorf("status %d:\n%s", got, log)
	}
	if want := "3 deliveries received, 3 unsettled, the last one at 3"; !strings.Contains(log, want) {
		t.Errorf("it does not say %q:\n%s", want, log)
	}
}
