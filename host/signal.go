// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// abortLimit is how long the end at once may take: plugins get their leash
// dropped and are killed 1.5 s later.
const abortLimit = 3 * time.Second

// echo is how long the first signal may come again and be the same one: timeout(1)
// sends it to its child and to its process group.
const echo = 50 * time.Millisecond

// RunUntilSignal runs the host as [Host.Run] does, until one of the signals
// comes; SIGINT and SIGTERM where none are given. The first one is the end of
// Run's context: a stop in order, within the drain limit. The second one aborts
// the host; RunUntilSignal then returns a [*SignalError] within 3 s. The same one
// within 50 ms is no second one.
//
// It returns what Run returned. A start that the first signal cut short is no
// error: nothing was delivered. While it runs SIGPIPE is taken too, so that a
// log that nobody reads any more does not end the service. It does not work in a
// synctest bubble, where signals do not come; tests run hosts by [Host.Run], or by
// package hosttest.
func RunUntilSignal(ctx context.Context, h *Host, signals ...os.Signal) error {
	h.made("RunUntilSignal") // in the caller's goroutine
	signals = slices.DeleteFunc(slices.Clone(signals), func(s os.Signal) bool { return s == nil })
	if len(signals) == 0 {
		signals = []os.Signal{os.Interrupt, syscall.SIGTERM}
	}
	pipe := make(chan os.Signal, 1) // never read: delivery to it is what counts
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	caught := make(chan os.Signal, 2)
	signal.Notify(caught, signals...)
	defer signal.Stop(caught)
	return h.runUntil(ctx, caught)
}

// runUntil is RunUntilSignal with the signals that come.
func (h *Host) runUntil(ctx context.Context, caught <-chan os.Signal) error {
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	ran := make(chan error, 1)
	go func() { ran <- h.Run(stopping) }()
	log := h.options.logger
	var first os.Signal
	var since time.Time
	select {
	case err := <-ran:
		return err
	case first = <-caught:
		log.Info("stopping; the next signal ends at once", "signal", first.String())
		stop()
		since = time.Now() // behind the line, which may take its time
	}
	for {
		select {
		case err := <-ran:
			var refused *StartError
			if ctx.Err() == nil && errors.As(err, &refused) && len(refused.Findings) == 0 && errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		case s := <-caught:
			if s != first || time.Since(since) > echo {
				return h.endAtOnce(s, ran)
			}
		}
	}
}

// endAtOnce aborts a host for a second signal.
func (h *Host) endAtOnce(s os.Signal, ran <-chan error) error {
	h.Abort()
	limit := time.NewTimer(abortLimit)
	defer limit.Stop()
	select {
	case err := <-ran:
		h.options.logger.Debug("ended at once", "error", err)
		return &SignalError{Signal: s, Err: err}
	case <-limit.C:
		h.options.logger.Error("the end at once takes too long; leaving what is left to the plugins' leashes")
		return &SignalError{Signal: s}
	}
}

// SignalError says that a second signal ended a host at once: what was in work
// is not settled.
type SignalError struct {
	Signal os.Signal // the second one
	Err    error     // what Run returned; nil too where it has not returned in time
}

// Error names the signal.
func (e *SignalError) Error() string {
	text := fmt.Sprintf("ended at once by a second signal (%v)", e.Signal)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns what Run returned.
func (e *SignalError) Unwrap() error { return e.Err }

// ExitCode returns the exit status for it, 128 and the signal's number as shells
// have it: 130 for SIGINT, 143 for SIGTERM.
func (e *SignalError) ExitCode() int {
	const base = 128
	if s, ok := e.Signal.(syscall.Signal); ok {
		return base + int(s)
	}
	return base
}
