// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/longshore-go/longshore/cmd/longshore/internal/config"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/conform"
	"github.com/longshore-go/longshore/internal/process"
)

// The exit statuses, as the help text documents them.
const (
	ExitOK        = 0
	ExitInternal  = 1  // a defect, an output that cannot be written, or what has no status of its own
	ExitUsage     = 2  // wrong arguments, or an error in the service file
	ExitStart     = 3  // the start was refused: nothing was delivered
	ExitEndpoint  = 4  // an endpoint was lost for good, a closed standard output included
	ExitAbandoned = 5  // a stop cut work off at its limit
	ExitHandler   = 6  // a message stopped the service, as on_undecodable: fail_fast says
	ExitFailed    = 7  // a case of the conformance suite failed
	ExitNoPlugin  = 8  // what was to be proved is no plugin
	ExitSettings  = 9  // the plugin refuses its settings, subscription or destination
	ExitConnect   = 10 // the plugin does not connect
	exitSignal    = 128
)

// exitStatuses is the part of the help text about them.
const exitStatuses = `Exit status:
  0    done; a stop by SIGINT or SIGTERM that waited for all work included
  1    internal error, or the output cannot be written
  2    wrong arguments, or an error in the service file
  3    the start was refused; nothing was delivered
  4    an endpoint was lost, for instance the reader of standard output is gone
  5    a stop cut work off at the drain limit
  6    a message stopped the service (on_undecodable: fail_fast)
  7    a case failed; 7 to 10 are those of longshore conform, see its help
  130  ended at once by a second SIGINT (143: SIGTERM)`

// usageError is a mistake in the arguments.
type usageError struct {
	command string // whose help says more
	err     error
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%v; %s --help says what there is", e.err, e.command)
}

func (e *usageError) Unwrap() error { return e.err }

// interruptedError says that a signal ended a command before it was done.
type interruptedError struct{ signal os.Signal }

func (e *interruptedError) Error() string {
	if s, ok := e.signal.(syscall.Signal); ok {
		return "interrupted by " + unix.SignalName(s)
	}
	return "interrupted"
}

// status returns the exit status for what a command returned.
func status(err error) int {
	var (
		usage       *usageError
		file        *config.Error
		unreadable  *os.PathError
		refused     *host.StartError
		plugin      *process.StartError
		endpoint    *host.EndpointError
		abandoned   *host.AbandonedError
		handler     *host.HandlerError
		interrupted *interruptedError
		failed      *failedError
		noPlugin    *noPluginError
		settings    *conform.SettingsError
		unconnected *conform.ConnectError
	)
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &interrupted):
		if s, ok := interrupted.signal.(syscall.Signal); ok {
			return exitSignal + int(s)
		}
		return exitSignal + int(syscall.SIGINT)
	case errors.As(err, &usage), errors.As(err, &file):
		return ExitUsage
	case errors.As(err, &failed):
		return ExitFailed
	case errors.As(err, &noPlugin):
		return ExitNoPlugin
	case errors.As(err, &settings):
		return ExitSettings
	case errors.As(err, &unconnected):
		return ExitConnect
	case errors.As(err, &handler):
		return ExitHandler
	case errors.As(err, &endpoint):
		return ExitEndpoint
	case errors.As(err, &abandoned):
		return ExitAbandoned
	case errors.As(err, &refused), errors.As(err, &plugin):
		return ExitStart
	case errors.As(err, &unreadable) && unreadable.Op != "write": // the service file
		return ExitUsage
	case errors.Is(err, context.Canceled):
		return exitSignal + int(syscall.SIGINT)
	}
	return ExitInternal
}
