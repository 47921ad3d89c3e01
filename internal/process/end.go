// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"time"
)

// reapLimit is how long a killed process, and then go-plugin, may take to end.
// Only a process stuck in the kernel needs longer than a moment.
const reapLimit = 5 * time.Second

func (s *started) pid() int              { return s.runner.process().pid }
func (s *started) done() <-chan struct{} { return s.runner.process().done }
func (s *started) exit() Exit            { return s.runner.process().result() }
func (s *started) stderr() []string      { return s.runner.logged.tail.lines() }
func (s *started) kill()                 { s.runner.process().kill() }

// finish drops the leash, waits for the limit, kills, and returns when the
// process is reaped, go-plugin has ended and nothing is left.
func (s *started) finish(ctx context.Context, limit time.Duration) error {
	r := s.runner
	defer r.dir.remove()
	c := r.process()
	if c != nil {
		_ = r.pipes.leash.Close()
		within(ctx, c.done, limit)
		c.kill()
		if !within(context.Background(), c.done, reapLimit) {
			return fmt.Errorf("end plugin process %d: it is not dead %v after it was killed", c.pid, reapLimit)
		}
	}
	r.handshake.end()
	if !s.endClient() {
		return fmt.Errorf("end go-plugin's client: it did not end within %v", reapLimit)
	}
	r.output.Wait()
	return nil
}

// endClient lets go-plugin clean up after a process that is dead already; it
// would hang on one that is stopped.
func (s *started) endClient() bool {
	done := make(chan struct{})
	go func() {
		s.client.Kill()
		close(done)
	}()
	return within(context.Background(), done, reapLimit)
}

// within reports whether done is closed within the limit and ctx.
func within(ctx context.Context, done <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}
