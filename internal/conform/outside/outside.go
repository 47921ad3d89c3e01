// SPDX-License-Identifier: Apache-2.0

// Package outside reaches what is behind a transport by commands, so that an
// injector and a collector can be written in any language.
//
// A command is run without a shell, in a process group of its own, with the
// environment of this process and
//
//	LONGSHORE_CONFORM_NAME      the subscription or destination
//	LONGSHORE_CONFORM_DIR       the folder of the case
//	LONGSHORE_CONFORM_SETTINGS  the plugin's settings, as JSON
//
// Of a plugin that uses the standard input and output of its host, descriptor 3
// is the other end: of its input for an injector, of its output for a collector.
//
// Messages are lines of JSON, headers in order, values and payload in base64:
//
//	{"name":"orders","headers":[["trace","AAE="],["trace",""]],"payload":"aGVsbG8="}
//
// An injector reads them from standard input, without the name, and exits with
// status 0 once the transport has them all. A collector prints {"ready":true}
// as soon as it misses nothing more, then a line for each message, until SIGTERM
// ends it; without a name it is that of the destination.
//
// # Caveats
//
//   - Whatever a command leaves running in its process group is killed.
//   - A command that ends by itself has failed unless it is an injector that
//     exits with status 0; the last line of its standard error is the reason.
package outside

import (
	"context"
	"errors"
	"os"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/conform"
)

// The variables that a command gets.
const (
	EnvName     = "LONGSHORE_CONFORM_NAME"
	EnvDir      = "LONGSHORE_CONFORM_DIR"
	EnvSettings = "LONGSHORE_CONFORM_SETTINGS"
)

// Inject returns a function for conform.Subject that runs a command for each
// call. It may be called from any goroutine.
func Inject(command []string) func(ctx context.Context, at conform.Place, messages []core.Message) error {
	return func(ctx context.Context, at conform.Place, messages []core.Message) error {
		in := &encoder{left: messages}
		p := &program{role: "injector", command: command, env: environment(at), end: at.Stdin, stdin: in}
		if err := p.run(ctx); err != nil {
			return err
		}
		if !in.done {
			return p.failed("it exited with status 0 before it had read all messages", nil)
		}
		return nil
	}
}

// Collect returns a function for conform.Subject that runs a command until its
// context ends, and returns nil then. It may be called from any goroutine.
func Collect(command []string) func(ctx context.Context, at conform.Place, ready func(), got func(core.Message)) error {
	return func(ctx context.Context, at conform.Place, ready func(), got func(core.Message)) error {
		running, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		d := &decoder{name: at.Name, ready: ready, got: got}
		out := &lines{max: maxLine, each: d.line, failed: stop}
		p := &program{role: "collector", command: command, env: environment(at), end: at.Stdout, stdout: out}
		err := p.run(running)
		var wrong *LineError
		switch {
		case errors.As(context.Cause(running), &wrong):
			return p.failed("", wrong)
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		return p.failed("it exited with status 0 before it was ended", nil)
	}
}

// Disconnect returns a function for conform.Subject that runs a command, which
// exits with status 0 once the connection is cut.
func Disconnect(command []string) func(ctx context.Context, at conform.Place) error {
	return once("disconnect command", command)
}

// Restart returns a function for conform.Subject that runs a command, which
// exits with status 0 once the transport takes connections again.
func Restart(command []string) func(ctx context.Context, at conform.Place) error {
	return once("restart command", command)
}

// once runs a command that knows when it is done.
func once(role string, command []string) func(ctx context.Context, at conform.Place) error {
	return func(ctx context.Context, at conform.Place) error {
		p := &program{role: role, command: command, env: environment(at)}
		return p.run(ctx)
	}
}

// environment is that of a command for a place.
func environment(at conform.Place) []string {
	// Of a name that is there twice the last value counts.
	return append(os.Environ(), EnvName+"="+at.Name, EnvDir+"="+at.Dir, EnvSettings+"="+string(at.Settings))
}
