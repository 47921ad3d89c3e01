// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// cutDelays are when a call is cancelled.
func cutDelays() []time.Duration {
	return []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond}
}

func cutCases() []Case {
	return []Case{
		{
			ID: "stop/during-connect", Section: sectionCalls,
			Claim: "A Connect that is cancelled is undone or has succeeded: connecting again works, and the process ends by itself.",
			Run:   stopDuringConnect,
		},
		{
			ID: "stop/during-subscribe", Section: sectionCalls,
			Claim:   "A Subscribe that is cancelled is undone: the registration can be opened again.",
			Applies: reads, Run: stopDuringSubscribe,
		},
	}
}

// stopDuringConnect cancels Connect at several moments.
func stopDuringConnect(t *Trial) {
	for _, after := range cutDelays() {
		p := t.Configured()
		p.Inspect(t.Usage())
		ctx, cancel := context.WithTimeout(t.Ctx, after)
		_ = p.connect(ctx) // cut, or just in time
		cancel()
		p.connectAgain(after)
		x := t.traffic(p)
		x.round(1)
		x.end()
		p.Close()
		p = t.Configured()
		p.Inspect(t.Usage())
		ctx, cancel = context.WithTimeout(t.Ctx, after)
		_ = p.connect(ctx) // likewise; now it has to end
		cancel()
		p.Unleash()
	}
}

// retryEvery is the pause between calls that may be too early.
const retryEvery = 5 * time.Millisecond

// connectAgain connects behind a Connect that was cut: a CONFLICT says that it
// had succeeded, or that it is not over yet.
func (p *Process) connectAgain(after time.Duration) {
	t := p.t
	ctx, cancel := t.limited()
	defer cancel()
	retry := time.NewTicker(retryEvery)
	defer retry.Stop()
	for {
		err := p.connect(ctx)
		if err == nil || early(err) && p.connected(ctx) {
			return
		}
		select {
		case <-retry.C:
			if early(err) {
				continue
			}
		case <-ctx.Done():
		}
		t.Fatalf("Connect was cancelled after %v, and connecting again is answered with %v", after, err)
	}
}

// connected reports whether a stream that needs a connection is taken.
func (p *Process) connected(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	name := "Subscribe"
	if p.t.About.reads() != "" {
		name = "Publish"
	}
	out := frame.Outgoing{ID: 1, Message: p.t.Messages(p.t.Destination(), 1, 0)[0], Options: p.t.Send}
	return firstAnswer(ctx, p.link, p.t.registration(), out, name) == nil
}

// early reports whether a call may be too early behind one that was cut.
func early(err error) bool {
	var fault *core.Fault
	return errors.As(err, &fault) && (fault.Code == core.FaultConflict || fault.Transient)
}

// stopDuringSubscribe cancels Subscribe at several moments.
func stopDuringSubscribe(t *Trial) {
	p := t.Connected()
	for _, after := range cutDelays() {
		s, err := p.begin(t.registration())
		if err != nil {
			t.Fatalf("Subscribe: %v", err)
		}
		if after > 0 {
			s.await(after, func() bool { return s.over })
		}
		s.Cancel()
		s = p.reopened(after)
		if t.About.feeds() == "" {
			s.Credit(windowMessages, windowBytes)
			s.Finish(s.feedTake(1)...)
			s.Barrier()
		}
		s.End()
	}
	p.Close()
}

// reopened opens the registration behind a stream that was cancelled, which may
// still be closing.
func (p *Process) reopened(after time.Duration) *Sub {
	t := p.t
	ctx, cancel := t.limited()
	defer cancel()
	retry := time.NewTicker(retryEvery)
	defer retry.Stop()
	for {
		s, err := p.open(t.registration())
		if err == nil {
			return s
		}
		select {
		case <-retry.C:
			if early(err) {
				continue
			}
		case <-ctx.Done():
		}
		t.Fatalf("Subscribe was cancelled after %v, and opening the registration again is answered with %v", after, err)
	}
}
