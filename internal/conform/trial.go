// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Trial is one run of one case. Its methods may be called from any goroutine,
// but Fatalf and what waits only from the case's own.
type Trial struct {
	Ctx     context.Context // ends with the run, or when the case takes far too long
	About   *About
	Subject Subject // defaults filled in
	Word    string  // this case's own, for names
	Dir     string  // this case's own folder

	Settings []byte // JSON, placeholders filled in
	Options  []byte // of the subscription, likewise
	Send     []byte // options of messages, likewise; nil = none

	options Options
	log     *logbook
	fed     atomic.Uint64 // messages made
	killed  atomic.Bool   // a process of the plugin was
	// payloads has the SHA-256 of each message made, by key.
	payloads sync.Map

	mu         sync.Mutex
	faults     []string
	notes      []string
	skipped    string
	exempt     bool // skipped, and the plugin is not concerned
	processes  []*Process
	generation uint64
	resume     []byte   // what the newest generation handed over
	cleanups   []func() // run last first
}

// faultLimit is how many faults of one case are kept; the first ones tell most.
const faultLimit = 20

// stopTrial unwinds a case.
type stopTrial struct{}

// Errorf notes what the plugin did wrong; the case goes on.
func (t *Trial) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch text := fmt.Sprintf(format, args...); {
	case slices.Contains(t.faults, text):
	case len(t.faults) < faultLimit:
		t.faults = append(t.faults, text)
	}
}

// Fatalf notes what the plugin did wrong and ends the case.
func (t *Trial) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	panic(stopTrial{})
}

// Notef notes what is worth knowing though it is not wrong.
func (t *Trial) Notef(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := fmt.Sprintf(format, args...); len(t.notes) < faultLimit && !slices.Contains(t.notes, text) {
		t.notes = append(t.notes, text)
	}
}

// Skipf ends a case that cannot be run here.
func (t *Trial) Skipf(format string, args ...any) {
	t.mu.Lock()
	t.skipped = fmt.Sprintf(format, args...)
	t.mu.Unlock()
	panic(stopTrial{})
}

// Exemptf ends a case that turns out not to concern the plugin.
func (t *Trial) Exemptf(format string, args ...any) {
	t.mu.Lock()
	t.exempt = true
	t.mu.Unlock()
	t.Skipf(format, args...)
}

// Failed reports whether something was wrong so far.
func (t *Trial) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.faults) > 0
}

// cleanup runs f at the end of the case.
func (t *Trial) cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

// limited returns a context for one step, which may take the subject's Wait.
func (t *Trial) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Ctx, t.Subject.Wait)
}

// Place is where the messages of a name are, for p's injector or collector.
func (t *Trial) place(p *Process, name string) Place {
	at := Place{Name: name, Dir: t.Dir, Settings: t.Settings}
	if p != nil && p.stdio != nil {
		at.Stdin, at.Stdout = p.stdio.in, p.stdio.out
	}
	return at
}

// fill fills placeholders in.
func (t *Trial) fill(text string) string { return Place{Dir: t.Dir}.filler(t.Word)(text) }

// Subscription is the name that this case reads.
func (t *Trial) Subscription() string { return t.fill(t.Subject.Subscription) }

// Destination is the name that this case publishes to.
func (t *Trial) Destination() string { return t.fill(t.Subject.Destination) }

// run runs the case and everything that has to be undone behind it.
func (t *Trial) run(c *Case) {
	dir, err := os.MkdirTemp("", "longshore-conform-")
	if err != nil {
		t.Errorf("the suite cannot make a folder for the case: %v", err)
		return
	}
	t.Dir = dir
	t.cleanup(func() { _ = os.RemoveAll(dir) })
	defer t.clean()
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(stopTrial); !ok {
				t.Errorf("the suite itself failed, which is no fault of the plugin: %v\n%s", p, debug.Stack())
			}
		}
	}()
	if err := t.prepare(); err != nil {
		t.Fatalf("the suite cannot prepare the case: %v", err)
	}
	if t.About.Shared {
		t.sweep()
	}
	c.Run(t)
}

// sweep takes what cases before have left where all cases read one name.
func (t *Trial) sweep() {
	if !t.About.All(canAck) || t.About.feeds() != "" {
		return
	}
	p := t.Connected()
	s := p.Subscribe()
	for ds := s.Within(t.Subject.Quiet); len(ds) > 0; ds = s.Within(t.Subject.Quiet) {
		s.Finish(ds...)
	}
	s.Barrier()
	s.End()
	p.Close()
}

// prepare fills the settings of this case in.
func (t *Trial) prepare() error {
	at := Place{Dir: t.Dir}
	for _, f := range []struct {
		name string
		from any
		to   *[]byte
	}{{"settings", t.Subject.Settings, &t.Settings}, {"options", t.Subject.Options, &t.Options}, {"send options", t.Subject.SendOptions, &t.Send}} {
		if f.from == nil && f.to != &t.Settings {
			continue
		}
		raw, err := encode(f.name, f.from)
		if err == nil {
			*f.to, err = at.expand(raw, t.Word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clean ends what the case has left running, then undoes the rest.
func (t *Trial) clean() {
	t.mu.Lock()
	processes, cleanups := t.processes, t.cleanups
	t.mu.Unlock()
	for _, p := range processes {
		p.discard()
	}
	for _, f := range slices.Backward(cleanups) {
		f()
	}
}

// result is what became of the case.
func (t *Trial) result(c *Case, took time.Duration) Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := Result{Case: c.ID, Claim: c.Claim, Section: c.Section, Status: Passed, Time: took, Notes: t.notes}
	switch {
	case len(t.faults) > 0:
		r.Status, r.Faults, r.Log = Failed, t.faults, t.log.last()
	case t.skipped != "":
		if r.Status, r.Reason = NotRun, t.skipped; t.exempt {
			r.Status = NotApplicable
		}
	}
	return r
}

// sends sends something on a stream, which cancel ends where it is not read: a
// plugin that has stopped reading would hold up the whole case.
func (t *Trial) sends(cancel context.CancelFunc, send func() error) error {
	var stuck atomic.Bool
	limit := time.AfterFunc(t.Subject.Wait, func() {
		stuck.Store(true)
		cancel()
	})
	defer limit.Stop()
	err := send()
	if stuck.Load() {
		return fmt.Errorf("the plugin has not read its stream for %v: no side may stop reading", t.Subject.Wait)
	}
	return err
}

// eventually waits until ok is true, looked at again behind each change, and
// returns false when it took too long.
func eventually(ctx context.Context, changed func() <-chan struct{}, ok func() bool) bool {
	for {
		next := changed()
		if ok() {
			return true
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ok()
		}
	}
}

// tooLong says whether a step ran into its limit rather than into an error.
func tooLong(err error) bool { return errors.Is(err, context.DeadlineExceeded) }
