// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/convert"
	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/process"
	"github.com/longshore-go/longshore/internal/transportpb"
)

const (
	// endLimit is how long a plugin may live without its leash (protocol, "The
	// leash"), stretched.
	endLimit = 2 * time.Second

	// closeLimit is what Close gets for flushing, stretched.
	closeLimit = 5 * time.Second
)

// Process is one generation of the plugin under trial.
type Process struct {
	t     *Trial
	stdio *stdio // nil unless the plugin wants it
	proc  *process.Process
	link  link.Link

	endLimit time.Duration // between leash and kill

	ctx    context.Context // of its streams
	cancel context.CancelFunc
	beats  sync.WaitGroup
	watch  supervision

	mu        sync.Mutex
	publisher *Publisher
	subs      []*Sub
	links     []*transportpb.LinkState
	changed   chan struct{} // closed at every change of links
	ended     bool          // by the trial
}

// stdio is the standard input and output of a host, as two pipes.
type stdio struct {
	in, out         *os.File // the trial's ends
	theirIn, theirs *os.File
}

// Start executes the plugin's next generation and supervises it. The case ends
// where it does not start.
func (t *Trial) Start() *Process {
	p, err := t.start()
	if err != nil {
		t.Fatalf("start the plugin: %v", err)
	}
	return p
}

func (t *Trial) start() (*Process, error) {
	t.mu.Lock()
	t.generation++
	generation := t.generation
	t.mu.Unlock()
	p := &Process{t: t, changed: make(chan struct{})}
	o := t.options.process(t.Subject)
	p.endLimit = o.EndLimit
	o.Logger, o.Stray = t.log.logger(), t.log.stray
	if t.About != nil && t.About.Describe.GetWantsStdio() {
		var err error
		if p.stdio, err = newStdio(); err != nil {
			return nil, err
		}
		o.Stdio = &process.Stdio{In: p.stdio.theirIn, Out: p.stdio.theirs}
	}
	proc, err := process.Start(t.Ctx, generation, o)
	if p.stdio != nil {
		_ = p.stdio.theirIn.Close()
		_ = p.stdio.theirs.Close()
	}
	if err != nil {
		if p.stdio != nil {
			p.stdio.close()
		}
		return nil, err
	}
	p.proc, p.link = proc, proc.Link()
	p.ctx, p.cancel = context.WithCancel(t.Ctx)
	t.mu.Lock()
	t.processes = append(t.processes, p)
	t.mu.Unlock()
	if t.Subject.Collect == nil {
		p.drain()
	}
	p.supervise()
	return p, nil
}

func newStdio() (*stdio, error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		_, _ = theirIn.Close(), in.Close()
		return nil, err
	}
	_, _ = theirIn.Fd(), theirs.Fd() // blocking, as a shell hands them over
	return &stdio{in: in, out: out, theirIn: theirIn, theirs: theirs}, nil
}

func (s *stdio) close() {
	_ = s.in.Close()
	_ = s.out.Close()
}

// PID is the process's number.
func (p *Process) PID() int { return p.proc.PID() }

// Description is what Describe answered at the start.
func (p *Process) Description() *transportpb.DescribeResponse { return p.proc.Description() }

// Link is the connection itself, for calls that the methods here do not make.
func (p *Process) Link() link.Link { return p.link }

// keep takes resume bytes for the next generation.
func (t *Trial) keep(resume []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.resume = resume
}

// unexpected reports whether a stream's error is one while nobody has ended the
// process or its streams.
func (p *Process) unexpected(err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.ended && p.ctx.Err() == nil && !errors.Is(err, context.Canceled)
}

// Configure hands the settings over; nil = accepted.
func (p *Process) Configure(settings []byte) *core.Fault {
	ctx, cancel := p.t.limited()
	defer cancel()
	r, err := p.link.Configure(ctx, &transportpb.ConfigureRequest{
		Endpoint: "conform", Generation: p.proc.Generation(), Settings: settings, Stdio: p.stdio != nil,
	})
	if err != nil {
		return link.AsFault(err)
	}
	return convert.ToFault(r.GetFault())
}

// Usage is what the trial's host wants: the subscription and, where something
// can be published, the destination for each purpose that a host has.
func (t *Trial) Usage() *transportpb.InspectRequest {
	u := &transportpb.InspectRequest{}
	if t.About == nil || len(t.About.Profiles) > 0 {
		u.Registrations = append(u.Registrations, t.registration())
	}
	if t.About == nil || t.About.Publishing != nil {
		u.Destinations = append(u.Destinations, &transportpb.Target{Name: t.Destination(), Purpose: transportpb.Purpose_PURPOSE_APPLICATION, Options: t.Send})
	}
	return u
}

func (t *Trial) registration() *transportpb.Registration {
	return &transportpb.Registration{Name: t.Subscription(), Options: t.Options}
}

// Inspect asks what registrations and destinations can do.
func (p *Process) Inspect(u *transportpb.InspectRequest) *transportpb.InspectResponse {
	ctx, cancel := p.t.limited()
	defer cancel()
	r, err := p.link.Inspect(ctx, u)
	if err != nil {
		p.t.Fatalf("Inspect: %v", err)
	}
	if len(r.GetRegistrations()) != len(u.GetRegistrations()) || len(r.GetDestinations()) != len(u.GetDestinations()) {
		p.t.Fatalf("Inspect was asked about %d registrations and %d destinations and answered about %d and %d",
			len(u.GetRegistrations()), len(u.GetDestinations()), len(r.GetRegistrations()), len(r.GetDestinations()))
	}
	return r
}

// Connect opens the endpoint with what the last generation handed over.
func (p *Process) Connect() {
	ctx, cancel := p.t.limited()
	defer cancel()
	if err := p.connect(ctx); err != nil {
		p.t.Fatalf("Connect: %v", err)
	}
}

func (p *Process) connect(ctx context.Context) error {
	p.t.mu.Lock()
	resume := p.t.resume
	p.t.mu.Unlock()
	r, err := p.link.Connect(ctx, &transportpb.ConnectRequest{Resume: resume})
	if err == nil {
		p.t.keep(r.GetResume())
	}
	return err
}

// Connected starts a generation and brings it as far as a host that is about to
// subscribe and publish.
func (t *Trial) Connected() *Process {
	p := t.Configured()
	p.Inspect(t.Usage())
	p.Connect()
	return p
}

// Configured starts a generation and hands the settings over.
func (t *Trial) Configured() *Process {
	p := t.Start()
	if fault := p.Configure(t.Settings); fault != nil {
		t.Fatalf("Configure refuses the settings that it took before: %v", fault)
	}
	return p
}

// Close ends the process as a host does that stops: Close, then the leash. It
// notes what does not end by itself.
func (p *Process) Close() {
	p.leave()
	limit := stretched(closeLimit)
	ctx, cancel := context.WithTimeout(p.t.Ctx, limit+p.t.Subject.Wait)
	defer cancel()
	r, err := p.link.Close(ctx, &transportpb.CloseRequest{Limit: int64(limit)})
	if err != nil {
		p.t.Errorf("Close: %v", err)
	} else {
		p.t.keep(r.GetResume())
	}
	p.Unleash()
}

// leave notes that what ends now ends because of the trial.
func (p *Process) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

// Unleash lets go of the leash, as the end of a host does, and waits for the
// process to end by itself.
func (p *Process) Unleash() {
	p.leave()
	if err := p.proc.End(context.WithoutCancel(p.t.Ctx)); err != nil {
		p.t.Errorf("end the process: %v", err)
	}
	if exit := p.proc.Exit(); exit.Signal != nil {
		p.t.Errorf("the process did not end within %v after its leash did: it had to be killed (%v)", p.endLimit, exit)
	}
	p.release()
}

// Kill kills the process with SIGKILL and waits until nothing of it is left.
func (p *Process) Kill() {
	p.leave()
	p.t.killed.Store(true)
	_ = syscall.Kill(p.PID(), syscall.SIGKILL) // it may have ended
	p.discard()
}

// discard ends what is left of the process, however.
func (p *Process) discard() {
	p.leave()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.t.Ctx), p.endLimit)
	defer cancel()
	_ = p.proc.End(ctx) // the case is over
	p.release()
}

// release ends what the trial holds of an ended process.
func (p *Process) release() {
	p.cancel()
	p.beats.Wait()
	p.mu.Lock()
	subs, publisher := p.subs, p.publisher
	p.mu.Unlock()
	for _, s := range subs {
		s.wait.Wait()
	}
	if publisher != nil {
		publisher.wait.Wait()
	}
	if p.stdio != nil {
		p.stdio.close()
	}
}

// drain reads what a stdio plugin prints where nobody else does, so that it
// can go on.
func (p *Process) drain() {
	if p.stdio != nil {
		go func() { _, _ = io.Copy(io.Discard, p.stdio.out) }() // ends when release closes it
	}
}
