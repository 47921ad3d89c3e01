// SPDX-License-Identifier: Apache-2.0

// Package demo shows a service at work: bundled lines go through three stages,
// each a host whose transports are processes of their own. The first stage reads
// a pipe, the second one a ZeroMQ queue that the first one sends to, the third one
// an MQTT broker that the second one publishes to and the demo runs itself:
//
//	feed | register -> queue -> directory -> broker -> towers
//
// The first stage forwards, retries, drops and panics; the second one reads what
// it forwarded and its dead letters, tries some again, appends to a stream file
// that another system has begun, and announces what it has appended; the third one
// is away meanwhile, and loses its connection when it is back. The file is read in
// the end, and everything must add up.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/longshore-go/longshore/cmd/longshore/internal/term"
	"github.com/longshore-go/longshore/host"
	zmq "github.com/longshore-go/longshore/plugins/zmq/settings"
)

// Options say how the demo is shown.
type Options struct {
	Out   io.Writer
	Style term.Style
	Live  bool            // Out is a terminal: progress is shown in place
	Pace  time.Duration   // pause between two lines
	Abort <-chan struct{} // closed to end at once; nil = never
	Log   *slog.Logger    // gets all that the hosts log at level debug; otherwise the demo shows a part of it
}

// The key of the demo's lines, and the names of what is sent over the queue.
const (
	keyAirports  = "airports"
	keyDirectory = "directory"
	keyDead      = "dead"
)

// maxAttempts is how often a line is tried.
const maxAttempts = 3

// ErrCutOff says that the demo was ended at once: there is no balance then.
var ErrCutOff = errors.New("the demo was cut off; what was under way is in no balance")

// Run shows the demo until it is done. When ctx ends it feeds no more lines, and
// those that are fed are handled to their end. Its error says what did not add
// up, or why a stage ended.
func Run(ctx context.Context, o Options) error {
	lines := feed()
	pipe, err := newPipe()
	if err != nil {
		return err
	}
	defer pipe.close()
	book, err := newLogbook()
	if err != nil {
		return err
	}
	defer book.remove()
	b, err := newBroker()
	if err != nil {
		return err
	}
	defer b.close()
	s := newScreen(o, len(lines))
	first := newRegister(s, o, pipe, book.queue())
	second := newDirectory(s, o, book, b)
	third := newTowers(s, o, b)
	if err := third.subscribe(ctx); err != nil {
		return fmt.Errorf("run the demo: %w", err)
	}

	tables, err := first.host.Explain(ctx)
	if err != nil {
		return fmt.Errorf("explain the demo: %w", err)
	}
	s.opening(tables)
	stopped := s.follow()
	err = stages(ctx, o, s, first.host, second.host, func(feeding context.Context) error {
		err := write(feeding, pipe.out, lines, o.Pace, s)
		return errors.Join(err, pipe.out.Close()) // the end of the input
	})
	stopped()
	if err != nil {
		return err
	}
	s.deadLetters()
	if ctx.Err() == nil {
		if err := third.listen(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("run the demo: %w", err)
		}
	}
	if ctx.Err() == nil {
		if err := book.read(ctx, s, o); err != nil && ctx.Err() == nil {
			return fmt.Errorf("read the stream file: %w", err)
		}
	}
	return s.closing()
}

// arrival is how long a stage is given for what the one before has sent: far longer
// than the way takes. What is missing then is lost, and the balance says so.
const arrival = 15 * time.Second

// stages runs both stages while the first one is fed. The end of its input ends the
// first stage. A queue has no end: the second one is stopped when it has what the
// first one has sent.
func stages(ctx context.Context, o Options, s *screen, first, second *host.Host, feed func(context.Context) error) error {
	feeding, stop := context.WithCancel(ctx)
	defer stop()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	reading, enough := context.WithCancel(running)
	defer enough()
	ended := make(chan error, 3)
	go func() { ended <- feed(feeding) }()
	go func() {
		err := first.Run(running)
		s.wait(reading, arrival, (*counts).arrived)
		enough()
		ended <- err
	}()
	go func() {
		err := second.Run(reading)
		enough() // nothing arrives any more
		ended <- err
	}()
	var errs []error
	abort := o.Abort
	for left := cap(ended); left > 0; {
		select {
		case err := <-ended:
			left--
			if err != nil {
				errs = append(errs, err)
				stop()
				cancel()
			}
		case <-abort:
			abort = nil
			stop()
			first.Abort()
			second.Abort()
		}
	}
	if o.Abort != nil && abort == nil {
		return ErrCutOff
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("run the demo: %w", err)
	}
	return nil
}

// pipe feeds the first stage, whose own output is looked at by nobody.
type pipe struct{ in, out, nowhere *os.File }

func newPipe() (*pipe, error) {
	var p pipe
	var err error
	if p.in, p.out, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	if p.nowhere, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
		p.close()
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	return &p, nil
}

// close closes what is open.
func (p *pipe) close() {
	for _, f := range []*os.File{p.in, p.out, p.nowhere} {
		if f != nil {
			_ = f.Close() // one is closed already
		}
	}
}

// register is the first stage.
type register struct {
	host   *host.Host
	screen *screen
	bands  [15]int // airports by elevation, a band for every 1024 ft
}

// newRegister declares the first stage. What it tries again goes through its own
// pipe, all else over the queue.
func newRegister(s *screen, o Options, p *pipe, address string) *register {
	r := &register{screen: s, host: host.New(host.WithLogger(watch(s, o)))}
	lines := r.host.Endpoint("pipe", host.Plugin{
		Name: "pipe", Stdio: &host.Stdio{In: p.in, Out: p.nowhere},
	}, map[string]any{"loopback": true})
	queue := r.host.Endpoint("queue", host.Plugin{Name: "zmq"}, zmq.Settings{
		Pattern: zmq.PatternQueue, Connect: []string{address},
	})
	host.Handle(lines.Subscription(keyAirports), r.handle,
		host.Forward(queue.To(keyDirectory)),
		host.MaxAttempts(maxAttempts),
		host.DeadLetterTo(queue.To(keyDead), host.WithCauses()),
	)
	return r
}
