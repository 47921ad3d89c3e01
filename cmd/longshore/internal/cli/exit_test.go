// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/longshore-go/longshore/cmd/longshore/internal/config"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/conform"
	"github.com/longshore-go/longshore/internal/process"
)

func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want int
	}{
		{"done", nil, 0},
		{"defect", errors.New("x"), 1},
		{"arguments", &usageError{"longshore", errors.New("x")}, 2},
		{"service file", &config.Error{}, 2},
		{"unreadable service file", fmt.Errorf("read: %w", &os.PathError{Op: "open", Path: "x", Err: syscall.EACCES}), 2},
		{"unwritable output", fmt.Errorf("write output: %w", &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}), 1},
		{"start", &host.StartError{}, 3},
		{"start for a file that is not there", &host.StartError{Findings: []host.Finding{{Err: &os.PathError{Err: syscall.ENOENT}}}}, 3},
		{"plugin", &process.StartError{}, 3},
		{"endpoint", &host.EndpointError{}, 4},
		{"abandoned", &host.AbandonedError{}, 5},
		{"endpoint, then abandoned", errors.Join(&host.AbandonedError{}, &host.EndpointError{}), 4},
		{"handler", &host.HandlerError{}, 6},
		{"failed cases", &failedError{}, 7},
		{"no plugin", &noPluginError{&process.StartError{}}, 8},
		{"refused settings", &settingsError{err: &conform.SettingsError{}}, 9},
		{"no connection", &conform.ConnectError{}, 10},
		{"second SIGINT", &interruptedError{syscall.SIGINT}, 130},
		{"second SIGTERM", &interruptedError{syscall.SIGTERM}, 143},
		{"cut short", fmt.Errorf("x: %w", context.Canceled), 130},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := status(tt.err); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}
