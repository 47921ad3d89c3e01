// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// scene runs a supervisor over fake generations and notes what happens when.
type scene struct {
	began  time.Time
	starts []time.Duration
	events []string
	fakes  []*fake
	change func(f *fake)        // before it is handed out
	failed func(n uint64) error // instead of a generation
	up     func(ctx context.Context, f *fake) error
}

func (s *scene) note(format string, args ...any) {
	s.events = append(s.events, fmt.Sprintf(format, args...))
}

func (s *scene) start(_ context.Context, n uint64) (Generation, error) {
	s.starts = append(s.starts, time.Since(s.began))
	if s.failed != nil {
		if err := s.failed(n); err != nil {
			return nil, err
		}
	}
	f := newFake(n)
	if s.change != nil {
		s.change(f)
	}
	s.fakes = append(s.fakes, f)
	return f, nil
}

func (s *scene) supervisor(p RestartPolicy) *Supervisor {
	s.began = time.Now()
	return NewSupervisor(s.start, p, Hooks{
		Up: func(ctx context.Context, g Generation) error {
			s.note("up %d", g.Generation())
			if s.up == nil {
				return nil
			}
			f, ok := g.(*fake)
			if !ok {
				return errors.New("not a fake")
			}
			return s.up(ctx, f)
		},
		Down: func(g Generation, cause error) {
			var exit *ExitError
			var lost *link.LostError
			switch {
			case !errors.As(cause, &lost):
				s.note("down %d: not lost but %v", g.Generation(), cause)
			case errors.As(cause, &exit) && exit.Killed != nil:
				s.note("down %d: killed: %v", g.Generation(), exit.Killed)
			case errors.As(cause, &exit):
				s.note("down %d: %s", g.Generation(), exit.Exit)
			default:
				s.note("down %d: %v", g.Generation(), cause)
			}
		},
		State:  func(open bool, _ error) { s.note("open %v", open) },
		Link:   func(g Generation, up bool, reason string) { s.note("link %d %v %s", g.Generation(), up, reason) },
		Resume: func(g Generation, resume []byte) { s.note("resume %d %s", g.Generation(), resume) },
	})
}

func (s *scene) expect(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, s.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for _, f := range s.fakes {
		if f.ended != 1 {
			t.Errorf("generation %d: End was called %d times", f.n, f.ended)
		}
	}
}

// dies lets every generation die a while after it is up.
func dies(after time.Duration) func(context.Context, *fake) error {
	return func(_ context.Context, f *fake) error {
		time.AfterFunc(after, func() { f.die(Exit{Code: 3}) })
		return nil
	}
}

func TestSupervisorEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{}
		sup := s.supervisor(RestartPolicy{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- sup.Run(ctx) }()
		<-sup.First()
		time.Sleep(time.Hour) // heartbeats are answered
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		s.expect(t, "up 1")
		if level := <-s.fakes[0].levels; level != "debug" {
			t.Errorf("log level: got %q", level)
		}
	})
}

// L-03: growing pauses, then the breaker.
func TestCrashLoopOpensTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{up: dies(100 * time.Millisecond)}
		err := s.supervisor(RestartPolicy{}).Run(t.Context())
		var crash *CrashError
		if !errors.As(err, &crash) {
			t.Fatalf("got %v, want a CrashError", err)
		}
		t.Log(err)
		if crash.Crashes != defaultCrashes || crash.Never || !slices.Equal(crash.Stderr, []string{"last words"}) ||
			crash.Since.Sub(s.began) != 100*time.Millisecond {
			t.Errorf("got %+v", crash)
		}
		var exit *ExitError
		if !errors.As(err, &exit) || exit.Exit.Code != 3 || exit.Generation != 5 || exit.PID != 1005 {
			t.Errorf("cause: got %+v", exit)
		}
		want := []time.Duration{250, 500, 1000, 2000}
		for i := range s.starts[1:] {
			pause := (s.starts[i+1] - s.starts[i] - 100*time.Millisecond) / time.Millisecond
			if low := want[i]; pause < low || pause > low*5/4 {
				t.Errorf("pause %d: %d ms, want %d and a quarter at most", i, pause, low)
			}
		}
		if len(s.starts) != defaultCrashes {
			t.Errorf("%d starts", len(s.starts))
		}
	})
}

func TestCrashesFarApartDoNotOpenTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{up: dies(40 * time.Second)} // three in two minutes
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := s.supervisor(RestartPolicy{}).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if n := len(s.starts); n < 80 {
			t.Errorf("%d starts", n)
		}
		for i := range s.starts[1:] {
			if pause := s.starts[i+1] - s.starts[i] - 40*time.Second; pause > 2*time.Second {
				t.Errorf("pause %v", pause)
			}
		}
	})
}

// L-03: an Optional endpoint goes on with one try a minute, and recovers.
func TestOptionalTriesOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{}
		s.up = func(ctx context.Context, f *fake) error {
			if f.n > 8 { // the good one is installed
				return nil
			}
			return dies(100*time.Millisecond)(ctx, f)
		}
		sup := s.supervisor(RestartPolicy{Optional: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := sup.Run(ctx); err != nil {
			t.Fatal(err)
		}
		exit := Exit{Code: 3}.String()
		var want []string
		for n := 1; n <= 8; n++ {
			want = append(want, fmt.Sprintf("up %d", n))
			if n > 5 {
				want = append(want, "open false")
			}
			want = append(want, fmt.Sprintf("down %d: %s", n, exit))
			if n >= 5 {
				want = append(want, "open true")
			}
		}
		s.expect(t, append(want, "up 9", "open false")...)
		for i := 5; i < 9; i++ {
			if gap := s.starts[i] - s.starts[i-1]; gap < time.Minute || gap > 61*time.Second {
				t.Errorf("start %d came after %v", i+1, gap)
			}
		}
	})
}

// At most 12 starts in 60 s.
func TestStartsAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{up: dies(100 * time.Millisecond)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_ = s.supervisor(RestartPolicy{Optional: true}).Run(ctx)
		if n := len(s.starts); n > 12 {
			t.Errorf("%d starts", n)
		}
	})
}

func TestWhatIsNotStartedAgain(t *testing.T) {
	refused := &StartError{Name: "x", Stage: StageCheck, Reason: "no"}
	fault := &core.Fault{Code: core.FaultInvalid, Message: "settings"}
	tests := []struct {
		name   string
		scene  *scene
		policy RestartPolicy
		starts int
		want   func(error) bool
	}{
		{"a first start that fails", &scene{failed: func(uint64) error { return refused }}, RestartPolicy{}, 1, func(err error) bool {
			return errors.Is(err, refused) && !errors.As(err, new(*CrashError))
		}},
		{"a refusal for good", &scene{up: func(context.Context, *fake) error { return fmt.Errorf("configure: %w", fault) }}, RestartPolicy{}, 1, func(err error) bool {
			return errors.Is(err, fault)
		}},
		{"a refusal for good, Optional", &scene{up: func(context.Context, *fake) error { return fault }}, RestartPolicy{Optional: true}, 1, func(err error) bool {
			return errors.Is(err, fault)
		}},
		{"the policy forbids it", &scene{up: dies(time.Second)}, RestartPolicy{Never: true}, 1, func(err error) bool {
			var crash *CrashError
			return errors.As(err, &crash) && crash.Never && crash.Crashes == 1
		}},
		{"the plugin forbids it", &scene{up: dies(time.Second), change: func(f *fake) { f.never = true }}, RestartPolicy{}, 1, func(err error) bool {
			var crash *CrashError
			return errors.As(err, &crash) && crash.Never
		}},
		{"the plugin forbids it, Optional", &scene{up: dies(time.Second), change: func(f *fake) { f.never = true }}, RestartPolicy{Optional: true}, 1, func(err error) bool {
			var crash *CrashError
			return errors.As(err, &crash) && crash.Never
		}},
		{"a later start that fails counts as a crash", &scene{up: dies(time.Second), failed: func(n uint64) error {
			if n > 1 {
				return refused
			}
			return nil
		}}, RestartPolicy{}, 5, func(err error) bool {
			return errors.As(err, new(*CrashError)) && errors.Is(err, refused)
		}},
		{"a transient fault counts as a crash", &scene{up: func(context.Context, *fake) error {
			return &core.Fault{Code: core.FaultUnavailable, Transient: true}
		}}, RestartPolicy{Crashes: 3}, 3, func(err error) bool {
			return errors.As(err, new(*CrashError)) && errors.As(err, new(*core.Fault))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := tt.scene.supervisor(tt.policy).Run(t.Context())
				if !tt.want(err) || len(tt.scene.starts) != tt.starts {
					t.Errorf("got %v after %d starts", err, len(tt.scene.starts))
				}
				for _, f := range tt.scene.fakes {
					if f.ended != 1 {
						t.Errorf("generation %d: End was called %d times", f.n, f.ended)
					}
				}
			})
		})
	}
}

// A hung plugin is found by its heartbeats alone, also while Up waits for it.
func TestHungPluginIsKilled(t *testing.T) {
	for _, where := range []string{"while up", "during Up"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scene{change: func(f *fake) { f.deaf = f.n == 1 }}
				if where == "during Up" {
					s.up = func(ctx context.Context, f *fake) error {
						if f.n > 1 {
							return nil
						}
						<-ctx.Done()
						return context.Cause(ctx)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := s.supervisor(RestartPolicy{}).Run(ctx); err != nil {
					t.Fatal(err)
				}
				if where == "while up" {
					s.expect(t, "up 1", "down 1: "+Exit{Hung: true}.String(), "up 2")
				} else {
					s.expect(t, "up 1", "up 2")
				}
				if !s.fakes[0].exit.Hung || s.starts[1] < 5*time.Second || s.starts[1] > 8*time.Second {
					t.Errorf("%v, second start after %v", s.fakes[0].exit, s.starts[1])
				}
			})
		})
	}
}

// A connection that breaks while the process lives is the end of a generation.
func TestBrokenConnectionEndsTheGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{}
		s.up = func(_ context.Context, f *fake) error {
			if f.n == 1 {
				time.AfterFunc(time.Second, func() { close(f.broken) })
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := s.supervisor(RestartPolicy{}).Run(ctx); err != nil {
			t.Fatal(err)
		}
		s.expect(t, "up 1", "down 1: killed: plugin lost: unexpected EOF", "up 2")
	})
}

// An error says whether a plugin died or was killed for what it did.
func TestTextsOfLosses(t *testing.T) {
	since := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	killed := &ExitError{Generation: 2, PID: 7, Exit: Exit{Code: -1, Signal: syscall.SIGKILL}, Killed: io.ErrUnexpectedEOF}
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"exit", &ExitError{Generation: 1, PID: 7, Exit: Exit{Code: 3}}, "plugin process 7 (generation 1) exited with status 3"},
		{"signal", &ExitError{Generation: 1, PID: 7, Exit: Exit{Code: -1, Signal: syscall.SIGKILL}}, "plugin process 7 (generation 1) ended by signal: killed"},
		{"hung", &ExitError{Generation: 1, PID: 7, Exit: Exit{Code: -1, Signal: syscall.SIGKILL, Hung: true}}, "plugin process 7 (generation 1) hung: it answered no heartbeat and was killed"},
		{"killed", killed, "plugin process 7 (generation 2) broke off its supervision and was killed: unexpected EOF"},
		{"no process", &ExitError{Generation: 1, Exit: Exit{Code: -1}}, "plugin (generation 1) ended, its status is not known"},
		{"one crash", &CrashError{Crashes: 1, Since: since, Cause: killed}, "plugin crashed at 2026-11-30T12:00:00Z: " + killed.Error()},
		{"crashes", &CrashError{Crashes: 5, Since: since, Stderr: []string{"a", "b"}}, `plugin crashed 5 times since 2026-11-30T12:00:00Z; its last line was "b"`},
		{"never", &CrashError{Crashes: 1, Never: true}, "plugin crashed and is not started again"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if !errors.Is(killed, io.ErrUnexpectedEOF) {
		t.Error("the cause is lost")
	}
}

func TestSuperviseThatCannotBeOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{change: func(f *fake) { f.superviseErr = &link.LostError{} }}
		err := s.supervisor(RestartPolicy{Crashes: 2}).Run(t.Context())
		if !errors.As(err, new(*CrashError)) {
			t.Errorf("got %v", err)
		}
	})
}

// Reports wait for Up, and of several the last one counts.
func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		linkState := func(up bool, reason string) *transportpb.SuperviseResponse {
			return &transportpb.SuperviseResponse{Part: &transportpb.SuperviseResponse_Link{Link: &transportpb.LinkState{Up: up, Reason: reason}}}
		}
		resume := func(b string) *transportpb.SuperviseResponse {
			return &transportpb.SuperviseResponse{Part: &transportpb.SuperviseResponse_Resume{Resume: []byte(b)}}
		}
		s := &scene{}
		s.up = func(_ context.Context, f *fake) error {
			if f.n == 2 {
				f.say(resume("c"))
				synctest.Wait()
				return &core.Fault{Code: core.FaultUnavailable, Transient: true}
			}
			f.say(linkState(false, "connecting"))
			f.say(linkState(true, ""))
			f.say(resume("a"))
			synctest.Wait()
			time.AfterFunc(time.Second, func() { f.say(linkState(false, "refused")) })
			time.AfterFunc(2*time.Second, func() { f.say(resume("b")) })
			time.AfterFunc(3*time.Second, func() { f.die(Exit{Code: 1}) })
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		if err := s.supervisor(RestartPolicy{}).Run(ctx); err != nil {
			t.Fatal(err)
		}
		s.expect(t, "up 1", "link 1 true ", "resume 1 a", "link 1 false refused", "resume 1 b",
			"down 1: "+Exit{Code: 1}.String(), "up 2", "resume 2 c", "up 3", "link 3 true ", "resume 3 a")
	})
}

// Only ticks in which the host itself ran count.
func TestPulse(t *testing.T) {
	const beat = time.Second
	steps := func(gaps []time.Duration, answered func(i int, sent uint64) uint64) (missed []int) {
		now := time.Unix(0, 0)
		p := pulse{every: beat, last: now}
		for i, gap := range gaps {
			now = now.Add(gap)
			missed = append(missed, p.tick(now, answered(i, p.sent)))
			p.sent++
		}
		return missed
	}
	none := func(int, uint64) uint64 { return 0 }
	all := func(_ int, sent uint64) uint64 { return sent }
	second := func(n int) []time.Duration { return slices.Repeat([]time.Duration{beat}, n) }
	tests := []struct {
		name     string
		gaps     []time.Duration
		answered func(int, uint64) uint64
		want     []int
	}{
		{"answered", second(4), all, []int{0, 0, 0, 0}},
		{"never answered", second(6), none, []int{0, 1, 2, 3, 4, 5}},
		{"one behind", second(4), func(_ int, sent uint64) uint64 { return max(sent, 1) - 1 }, []int{0, 1, 0, 0}},
		{"recovers", second(5), func(i int, sent uint64) uint64 {
			if i < 3 {
				return 0
			}
			return sent
		}, []int{0, 1, 2, 0, 0}},
		{"host suspended", []time.Duration{beat, beat, time.Hour, time.Hour, beat}, none, []int{0, 1, 1, 1, 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, steps(tt.gaps, tt.answered)); diff != "" {
				t.Errorf("missed (-want +got):\n%s", diff)
			}
		})
	}
}
