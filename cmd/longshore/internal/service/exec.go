// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/longshore-go/longshore/cmd/longshore/internal/command"
	"github.com/longshore-go/longshore/cmd/longshore/internal/config"
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

// handle returns the handler of a subscription, nil where it only forwards.
func handle(f *config.File, s *config.Subscription, o Options) (host.Handler[[]byte], error) {
	if s.Exec == nil {
		return nil, nil
	}
	path, err := command.Find(s.Exec.Command[0])
	if err != nil {
		return func(context.Context, *host.Message[[]byte]) error { return err }, err
	}
	e := &execHandler{
		endpoint: s.From, subscription: s.Name, trim: s.Exec.TrimNewline, exits: exits(f, s),
		command: command.Command{
			Path: path, Args: s.Exec.Command[1:], Timeout: f.TimeoutOf(s), Payload: s.Forward != nil,
			Env: o.Environ, Logger: o.Logger.With("endpoint", s.From, "subscription", s.Name),
		},
	}
	if snooze := f.SnoozeOf(s); snooze != nil {
		e.snooze = time.Duration(snooze.Delay)
	}
	return e.handle, nil
}

// exits returns what exit statuses mean for s.
func exits(f *config.File, s *config.Subscription) map[int]string {
	out := map[int]string{command.StatusDrop: config.ExitDrop, command.StatusDeadLetter: config.ExitDeadLetter}
	if f.SnoozeOf(s) != nil {
		out[command.StatusSnooze] = config.ExitSnooze
	}
	maps.Copy(out, f.OnExitOf(s))
	return out
}

// execHandler runs a command for each message.
type execHandler struct {
	command                command.Command
	endpoint, subscription string
	trim                   bool
	exits                  map[int]string
	snooze                 time.Duration
}

// handle runs the command and reads its exit status as the outcome.
func (e *execHandler) handle(ctx context.Context, m *host.Message[[]byte]) error {
	out, err := e.command.Run(ctx, command.Input{
		Endpoint: e.endpoint, Subscription: e.subscription, Attempt: m.Attempt(),
		Message: core.Message{Name: m.Name(), Headers: m.Headers(), Payload: m.Payload()},
	})
	if err == nil {
		if e.command.Payload {
			m.Replace(e.payload(out))
		}
		return nil
	}
	return e.outcome(err)
}

// outcome says what the failure of a command means. What is the rules' to say
// stays as it is, see statusRules.
func (e *execHandler) outcome(err error) error {
	var exit *command.ExitError
	if errors.As(err, &exit) && exit.Timeout == 0 {
		switch e.exits[exit.Status] {
		case "", config.ExitRetry:
		case config.ExitSnooze:
			return host.Snooze(e.snooze, err)
		default:
			return err
		}
	}
	return host.Retry(err)
}

// statusRules are the rules for exit statuses.
func statusRules(exits map[int]string) []host.Rule {
	var rs []host.Rule
	for _, status := range slices.Sorted(maps.Keys(exits)) {
		if r, ok := exitReactions[exits[status]]; ok {
			rs = append(rs, host.OnError(host.Is(command.Status(status)), r))
		}
	}
	return rs
}

// exitReactions are the outcomes of exit statuses that are errors like any other.
var exitReactions = map[string]host.Reaction{
	config.ExitDrop:       host.AsDrop,
	config.ExitDeadLetter: host.AsDeadLetter,
	config.ExitGiveUp:     host.NeverRetry,
	config.ExitFailFast:   host.FailFast,
}

// payload returns what a command's output is as a payload.
func (e *execHandler) payload(out []byte) []byte {
	if n := len(out); e.trim && n > 0 && out[n-1] == '\n' {
		out = out[:n-1]
		if n > 1 && out[n-2] == '\r' {
			out = out[:n-2]
		}
	}
	return out
}
