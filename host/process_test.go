// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/memtest"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// bench is a memory broker whose plugins run as real processes, with a folder
// of their own for what they might leave behind.
type bench struct {
	*memtest.Bench
	ctx context.Context
	dir string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := openBench(t, runtimeFolder(t))
	t.Setenv(memory.EnvAddress, b.Address)
	return b
}

// runtimeFolder makes the folder of this process' sockets for a test.
func runtimeFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ls-h-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return dir
}

// openBench is newBench for tests that run side by side: its plugins hear of
// their broker when they are configured, so no test can stop them before.
func openBench(t *testing.T, dir string) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	return &bench{Bench: memtest.Start(t), ctx: ctx, dir: dir}
}

// service is newService with limits of a plugin's life for a busy machine.
func (b *bench) service(opts ...host.Option) *service {
	return newService(append([]host.Option{
		host.WithStartLimit(patience), host.WithConnectLimit(patience),
	}, opts...)...)
}

// attach attaches a memory plugin.
func (b *bench) attach(h *host.Host, name string, s settings.Settings) *host.Endpoint {
	s.Control = true
	return h.Endpoint(name, host.Plugin{Name: "memory", Path: b.Path, Env: []string{memory.EnvAddress}}, s)
}

// nothingLeft checks that no process and no file of a host that ended is there.
func (b *bench) nothingLeft(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, "the plugin is gone", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	}
	if files := b.files(t); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

// files lists what plugins have in the folder of their sockets.
func (b *bench) files(t *testing.T) []string {
	t.Helper()
	var out []string
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		inner, _ := os.ReadDir(b.dir + "/" + e.Name())
		if !e.IsDir() || len(inner) > 0 {
			out = append(out, e.Name())
		}
		for _, i := range inner {
			out = append(out, e.Name()+"/"+i.Name())
		}
	}
	return out
}

func (b *bench) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestSettlementsThroughARealProcess runs the outcomes through a plugin
// process, as in TestHandlersSettle. E-11: what is dropped leaves no copy, and
// what is dead-lettered at once has one attempt and a reason.
func TestSettlementsThroughARealProcess(t *testing.T) {
	b := newBench(t)
	s := b.service()
	in := b.attach(s.Host, "mem", b.Settings.With("orders", settings.KindA()))
	host.Handle(in.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		switch string(m.Value) {
		case "drop":
			return host.Drop(errors.New("unwanted"))
		case "dead":
			return host.DeadLetter(errors.New("poison"))
		case "fails":
			return errors.New("always")
		case "twice":
			if m.Attempt() == 1 {
				return host.RetryAfter(10*time.Millisecond, nil)
			}
		case "panics":
			panic("boom")
		}
		return nil
	}, host.MaxAttempts(2), host.DeadLetterTo(in.To("graves")))
	for _, p := range []string{"ok", "drop", "dead", "fails", "twice", "panics"} {
		b.Publish("orders", memory.Message{Payload: []byte(p), Headers: core.Headers{{Name: "X-Tenant", Value: []byte("a")}}})
	}
	s.serve(t)
	c, err := b.Client(b.ctx, "mem")
	b.must(t, err)
	b.must(t, b.Wait(b.ctx, "three dead letters and no work", func(v memory.View) bool {
		a := v.Account("orders")
		return len(v.Published("graves")) == 3 && a.Queued == 0 && a.Outstanding == 0 && a.Published == 9
	}))
	s.stop()
	if err := s.result(t); err != nil {
		t.Fatal(err)
	}
	a := b.Account("orders")
	if a.Acked != 8 || a.Rejected != 1 || a.Lost != 0 {
		t.Errorf("account: %v", a)
	}
	reasons := map[string]string{}
	for _, m := range b.Published("graves") {
		reason, _ := m.Header("x-longshore-reason")
		tenant, _ := m.Header("x-tenant")
		count, _ := m.Header("x-ruststream-retry-count")
		attempts, _ := m.Header("x-longshore-attempts")
		reasons[string(m.Payload)] = strings.Join([]string{reason, tenant, count, attempts, string(m.Carry)}, "|")
	}
	want := map[string]string{
		"dead": "poison|a|1|1|carry dead", "fails": "always|a|2|2|carry fails",
		"panics": "handler panicked: boom|a|2|2|carry panics",
	}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("dead letters (-want +got):\n%s", diff)
	}
	b.nothingLeft(t, c.PID())
}

// TestPluginKilledDuringTheStart kills, stops or cuts short at each step: the
// host does not start, says so, and leaves nothing.
func TestPluginKilledDuringTheStart(t *testing.T) {
	for _, at := range []memory.Point{
		memory.AtExec, memory.AtDescribe, memory.AtConfigure, memory.AtInspect, memory.AtConnect, memory.AtSubscribe,
	} {
		for how, do := range map[string]func(s *service, pid int){
			"kill -9":   func(_ *service, pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) },
			"cut short": func(s *service, _ int) { s.stop() },
			"aborted":   func(s *service, _ int) { s.Abort() },
		} {
			t.Run(string(at)+" "+how, func(t *testing.T) {
				b := newBench(t)
				pause := b.PauseAt("", at)
				s := b.service()
				in := b.attach(s.Host, "mem", b.Settings.With("orders", settings.KindA()))
				host.Handle(in.Subscription("orders"), func(context.Context, *host.Message[[]byte]) error {
					t.Error("something was delivered")
					return nil
				})
				b.Publish("orders", memory.Text("one"))
				s.run(t)
				stopped, err := pause.Reached(b.ctx)
				b.must(t, err)
				do(s, stopped.PID)
				err = s.result(t)
				var e *host.StartError
				if !errors.As(err, &e) {
					t.Fatalf("got %v, want a *StartError", err)
				}
				if how == "kill -9" && (len(e.Findings) != 1 || e.Findings[0].Endpoint != "mem") {
					t.Errorf("got %v, want one finding about the endpoint", err)
				}
				if how != "kill -9" && !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want it to say that it was cut short", err)
				}
				b.nothingLeft(t, stopped.PID)
				if a := b.Account("orders"); a.Queued != 1 {
					t.Errorf("account: %v", a)
				}
				pause.Release()
			})
		}
	}
}

// A start that one endpoint refuses ends the plugins of the others in order,
// though their streams have only just been opened.
func TestRefusedStartEndsTheOthersInOrder(t *testing.T) {
	for range 10 {
		b := newBench(t)
		b.Deny("one", memory.AtConnect, 0, &core.Fault{Code: core.FaultDenied, Message: "refused"})
		s := b.service()
		in := b.attach(s.Host, "one", b.Settings.With("orders", settings.KindA()))
		out := b.attach(s.Host, "two", b.Settings)
		host.Handle(in.Subscription("orders"), acks, host.Forward(out.To("done")))
		startError(t, s)
		if lines := append(s.log.lines("level=ERROR"), s.log.lines("killed")...); len(lines) > 0 {
			t.Fatalf("logged %q", lines)
		}
		b.nothingLeft(t)
	}
}

// TestPluginThatRefuses is L-05: what a plugin refuses at each step is told
// with its field, and leaves nothing.
func TestPluginThatRefuses(t *testing.T) {
	refusal := &core.Fault{Code: core.FaultDenied, Message: "refused", Diagnostics: []core.Diagnostic{
		{Path: "password", Message: "is wrong", Fix: "set the right one"},
	}}
	for _, at := range []memory.Point{memory.AtConfigure, memory.AtInspect, memory.AtConnect, memory.AtSubscribe} {
		t.Run(string(at), func(t *testing.T) {
			b := newBench(t)
			b.Deny("", at, 0, refusal)
			s := b.service()
			set := b.Settings.With("orders", settings.KindA())
			set.Password = core.NewSecret("hunter2")
			host.Handle(b.attach(s.Host, "mem", set).Subscription("orders"), acks)
			e := startError(t, s)
			if len(e.Findings) != 1 || e.Findings[0].Endpoint != "mem" {
				t.Errorf("got %v, want one finding about the endpoint", e)
			}
			if at != memory.AtInspect && !strings.Contains(e.Error(), "password: is wrong") {
				t.Errorf("%v does not name the field", e)
			}
			if all := e.Error() + strings.Join(s.log.lines(), ""); strings.Contains(all, "hunter2") {
				t.Errorf("the password is shown: %s", all)
			}
			b.nothingLeft(t)
		})
	}
}

// TestStopOfARealPlugin is the in-process part of L-02: the plugin ignores the
// signals that a group gets, and all handlers end with their acks at the broker.
func TestStopOfARealPlugin(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			set := b.Settings
			s := b.service(host.WithDrainLimit(patience))
			const n = 20
			started, release := make(chan struct{}, n), make(chan struct{})
			for i := range n {
				set = set.With(queueName(i), settings.KindA())
			}
			in := b.attach(s.Host, "mem", set)
			for i := range n {
				b.Publish(queueName(i), memory.Text("one"), memory.Text("two"))
				host.Handle(in.Subscription(queueName(i)), func(ctx context.Context, _ *host.Message[[]byte]) error {
					started <- struct{}{}
					select {
					case <-release:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
			}
			s.serve(t)
			for range n {
				receive(t, started)
			}
			c, err := b.Client(b.ctx, "mem")
			b.must(t, err)
			b.must(t, c.Signal(sig))
			s.stop()
			// Until a subscription's intake has stopped its lane may begin another.
			eventually(t, "all intake has stopped", func() bool { return len(s.log.lines("code=L-END")) == n })
			close(release)
			if err := s.result(t); err != nil {
				t.Error(err)
			}
			if a := b.Account(); a.Acked != n || a.Queued != n || a.Lost != 0 || a.Outstanding != 0 {
				t.Errorf("account: %v, want %d acked and %d back in their queues", a, n, n)
			}
			b.nothingLeft(t, c.PID())
		})
	}
}

func queueName(i int) string { return "q" + string(rune('a'+i)) }

// TestHungPluginIsReplaced makes the plugin stop answering: heartbeats find it.
// On a busy machine they may take one that is well for it, and it is replaced.
func TestHungPluginIsReplaced(t *testing.T) {
	b := newBench(t)
	s := b.service(host.WithHeartbeat(100*time.Millisecond, 10), host.WithBreaker(1000, time.Hour),
		host.WithRestartBackoff(time.Millisecond, time.Millisecond))
	host.Handle(b.attach(s.Host, "mem", b.Settings.With("orders", settings.KindA())).Subscription("orders"), acks)
	s.serve(t)
	var c *memory.Client
	eventually(t, "a plugin is stopped", func() bool {
		var err error
		c, err = b.Client(b.ctx, "mem")
		b.must(t, err)
		return c.Signal(syscall.SIGSTOP) == nil
	})
	b.must(t, c.WaitGone(b.ctx))
	b.Publish("orders", memory.Text("one"))
	b.must(t, b.WaitSettled(b.ctx, "orders", 1))
	s.stop()
	if err := s.result(t); err != nil {
		t.Error(err)
	}
	b.nothingLeft(t, c.PID())
}
