// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/longshore-go/longshore/internal/link"
	"github.com/longshore-go/longshore/internal/transportpb"
)

const (
	// beatEvery is how often heartbeats are sent, beatLimit when a plugin that has
	// not answered is hung, stretched: as a host would, 5 beats of a second.
	beatEvery = 250 * time.Millisecond
	beatLimit = 5 * time.Second
)

// supervision is the Supervise stream of a process.
type supervision struct {
	stream link.SuperviseStream
	send   sync.Mutex

	mu       sync.Mutex
	changed  chan struct{} // closed at every answer
	sent     uint64
	answered uint64
	wrong    string    // what was wrong with the first answer that was
	waiting  time.Time // since when the oldest beat has been waiting
}

// supervise sends heartbeats and takes what the plugin reports.
func (p *Process) supervise() {
	s, err := p.link.Supervise(p.ctx)
	if err != nil {
		p.t.Errorf("open Supervise: %v", err)
		return
	}
	w := &p.watch
	w.stream, w.changed, w.waiting = s, make(chan struct{}), time.Now()
	p.beats.Go(func() {
		tick := time.NewTicker(beatEvery)
		defer tick.Stop()
		for p.beat() {
			select {
			case <-tick.C:
			case <-p.ctx.Done():
				return
			}
		}
	})
	p.beats.Go(func() {
		for {
			r, err := s.Recv()
			if err != nil {
				if p.unexpected(err) {
					p.t.Errorf("the Supervise stream ended while the process was needed: %v", err)
				}
				return
			}
			p.supervised(r)
		}
	})
}

// beat sends the next heartbeat and notes that one is missing; false = the
// stream is over.
func (p *Process) beat() bool {
	w := &p.watch
	w.send.Lock()
	defer w.send.Unlock()
	w.mu.Lock()
	if w.sent == w.answered {
		w.waiting = time.Now()
	} else if waited := time.Since(w.waiting); waited > beatLimit && waited > stretched(beatLimit) && !p.leaving() {
		p.t.Errorf("beat %d is not answered after %v: a host would take the process for hung and kill it", w.answered+1, waited.Round(time.Millisecond))
		w.waiting = time.Now()
	}
	w.sent++
	n := w.sent
	w.mu.Unlock()
	return w.stream.Send(&transportpb.SuperviseRequest{Part: &transportpb.SuperviseRequest_Beat{Beat: n}}) == nil
}

// supervised takes one message of the plugin.
func (p *Process) supervised(r *transportpb.SuperviseResponse) {
	w := &p.watch
	switch part := r.GetPart().(type) {
	case *transportpb.SuperviseResponse_Beat:
		w.mu.Lock()
		defer w.mu.Unlock()
		n := part.Beat
		if w.wrong == "" && (n > w.sent || n < w.answered || n == 0) {
			w.wrong = fmt.Sprintf("%d heartbeats were sent, %d was the newest one answered, and one was answered with the number %d", w.sent, w.answered, n)
		}
		if n = min(n, w.sent); n > w.answered {
			w.answered, w.waiting = n, time.Now()
		}
		close(w.changed)
		w.changed = make(chan struct{})
	case *transportpb.SuperviseResponse_Link:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.links = append(p.links, part.Link)
		close(p.changed)
		p.changed = make(chan struct{})
	case *transportpb.SuperviseResponse_Resume:
		p.t.keep(part.Resume)
	}
}

// Beats sends a heartbeat and waits for its answer: false = it did not come as
// long as a host waits.
func (p *Process) Beats() bool {
	w := &p.watch
	if w.stream == nil || !p.beat() {
		return false
	}
	w.mu.Lock()
	mine := w.sent
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(p.t.Ctx, stretched(beatLimit))
	defer cancel()
	changed := func() <-chan struct{} {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.changed
	}
	return eventually(ctx, changed, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.answered >= mine
	})
}

// LogLevel sets what the plugin logs.
func (p *Process) LogLevel(level string) {
	w := &p.watch
	w.send.Lock()
	defer w.send.Unlock()
	if w.stream == nil {
		return
	}
	if err := w.stream.Send(&transportpb.SuperviseRequest{Part: &transportpb.SuperviseRequest_LogLevel{LogLevel: level}}); err != nil {
		p.t.Errorf("set the log level over Supervise: %v", err)
	}
}

// leaving reports whether the trial is ending the process.
func (p *Process) leaving() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// change returns a channel that is closed at the next link state.
func (p *Process) change() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}
