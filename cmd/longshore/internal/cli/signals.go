// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// signals turns SIGINT and SIGTERM into a stop: the first one ends the context,
// the second one closes again.
type signals struct {
	again chan struct{} // closed by the second signal
	last  os.Signal     // valid once again or the context is closed

	ch   chan os.Signal
	done chan struct{}
}

// catchSignals begins to catch signals until release is called. SIGPIPE is
// taken as well, so that a log that nobody reads does not end a service; it is
// caught and not ignored, since commands would inherit that.
func catchSignals(parent context.Context, log *slog.Logger) (ctx context.Context, s *signals, release func()) {
	ctx, cancel := context.WithCancel(parent)
	s = &signals{again: make(chan struct{}), ch: make(chan os.Signal, 2), done: make(chan struct{})}
	pipe := make(chan os.Signal, 1) // never read: delivery to it is what counts
	signal.Notify(pipe, syscall.SIGPIPE)
	signal.Notify(s.ch, os.Interrupt, syscall.SIGTERM)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		first := true
		for {
			select {
			case sig := <-s.ch:
				s.last = sig
				if !first {
					close(s.again)
					return
				}
				first = false
				log.Info("stopping; the next signal ends at once", "signal", sig.String())
				cancel()
			case <-s.done:
				return
			}
		}
	}()
	return ctx, s, func() {
		signal.Stop(s.ch)
		signal.Stop(pipe)
		close(s.done)
		<-ended
		cancel()
	}
}
