// SPDX-License-Identifier: Apache-2.0

// Package service makes a host of a service file.
package service

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/longshore-go/longshore/cmd/longshore/internal/command"
	"github.com/longshore-go/longshore/cmd/longshore/internal/config"
	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

// Options say how a service is run.
type Options struct {
	Logger  *slog.Logger
	Host    []host.Option // beside the logger
	Environ []string      // of the commands
}

// Build declares all that f holds on a new host. Its findings are what only the
// command line can see, such as commands that are not there; the host has none
// of them.
func Build(f *config.File, o Options) (*host.Host, []host.Finding) {
	h := host.New(append(slices.Clone(o.Host), host.WithLogger(slog.New(formHandler{o.Logger.Handler()})))...)
	endpoints := make(map[string]*host.Endpoint, len(f.Endpoints))
	for _, name := range slices.Sorted(maps.Keys(f.Endpoints)) {
		e := f.Endpoints[name]
		p := host.Plugin{Name: e.Transport, Path: e.Path, Checksum: e.Checksum, Env: e.Env, Optional: e.Optional}
		if e.Stdio {
			p.Stdio = &host.Stdio{In: os.Stdin, Out: os.Stdout}
		}
		var settings any
		if e.Settings != nil {
			settings = e.Settings
		}
		endpoints[name] = h.Endpoint(name, p, settings)
	}
	var found []host.Finding
	for _, s := range f.Subscriptions {
		var opts []host.SubscriptionOption
		if s.Options != nil {
			opts = append(opts, host.Options(s.Options))
		}
		sub := endpoints[s.From].Subscription(s.Name, opts...)
		handler, err := handle(s, o)
		if err != nil {
			found = append(found, host.Finding{
				Endpoint: s.From, Subscription: s.Name, Option: optionCommand, Message: err.Error(), Err: err,
			})
		}
		host.Handle(sub, handler, rules(s)...)
	}
	return h, found
}

// handle returns the handler of a subscription, nil where it only forwards.
func handle(s *config.Subscription, o Options) (host.Handler[[]byte], error) {
	if s.Exec == nil {
		return nil, nil
	}
	path, err := command.Find(s.Exec.Command[0])
	if err != nil {
		return func(context.Context, *host.Message[[]byte]) error { return err }, err
	}
	timeout := time.Duration(s.Exec.Timeout)
	if timeout == 0 {
		timeout = config.DefaultExecTimeout
	}
	e := &execHandler{
		endpoint: s.From, subscription: s.Name, trim: s.Exec.TrimNewline,
		command: command.Command{
			Path: path, Args: s.Exec.Command[1:], Timeout: timeout, Payload: s.Forward != nil,
			Env: o.Environ, Logger: o.Logger.With("endpoint", s.From, "subscription", s.Name),
		},
	}
	return e.handle, nil
}

// execHandler runs a command for each message.
type execHandler struct {
	command                command.Command
	endpoint, subscription string
	trim                   bool
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
	var exit *command.ExitError
	if errors.As(err, &exit) && exit.Timeout == 0 {
		switch exit.Status {
		case command.StatusDrop:
			return host.Drop(err)
		case command.StatusDeadLetter:
			return host.DeadLetter(err)
		}
	}
	return host.Retry(err)
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

// rules returns what a subscription declares.
func rules(s *config.Subscription) []host.Rule {
	var rs []host.Rule
	if s.Forward != nil {
		rs = append(rs, host.Forward(core.Destination{Endpoint: s.Forward.To, Name: s.Forward.Name}))
	}
	if s.MaxAttempts > 0 {
		rs = append(rs, host.MaxAttempts(int(s.MaxAttempts)))
	}
	if s.RetryTo != nil {
		rs = append(rs, host.RetryTo(core.Destination{Endpoint: s.RetryTo.To, Name: s.RetryTo.Name}))
	}
	if d := s.DeadLetter; d != nil {
		var opts []host.DeadLetterOption
		if d.Causes {
			opts = append(opts, host.WithCauses())
		}
		rs = append(rs, host.DeadLetterTo(core.Destination{Endpoint: d.To, Name: d.Name}, opts...))
	}
	if s.Backoff != nil {
		rs = append(rs, host.Backoff(host.Exponential(time.Duration(s.Backoff.First), time.Duration(s.Backoff.Max))))
	}
	if s.Floor != nil {
		rs = append(rs, host.Floor(time.Duration(*s.Floor)))
	}
	if r, ok := reactions[s.OnUndecodable]; ok {
		rs = append(rs, host.OnUndecodable(r))
	}
	return rs
}

// reactions are the values of on_undecodable.
var reactions = map[string]host.Reaction{
	"drop":        host.AsDrop,
	"retry":       host.AsRetry,
	"dead_letter": host.AsDeadLetter,
	"ack":         host.AsAck,
	"fail_fast":   host.FailFast,
}
