// SPDX-License-Identifier: Apache-2.0

package pulsarbroker

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
)

// Run runs a broker until ctx ends, for commands, and prints its URL to out when
// it serves.
func Run(ctx context.Context, c Config, out io.Writer) error {
	folder, err := os.MkdirTemp("", "longshore-pulsar-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }() // it is one of the system's for temporary files
	s, err := newServer(c, folder)
	if err != nil {
		return err
	}
	if err := s.start(); err != nil {
		return err
	}
	if c.Archive != "" {
		if err := s.exercise(ctx); err != nil {
			s.kill()
			return err
		}
		return s.stop()
	}
	if _, err := fmt.Fprintln(out, (&Broker{nil, s}).URL()); err != nil {
		s.kill()
		return err
	}
	select {
	case <-ctx.Done():
		return s.stop()
	case <-s.ended:
		return fmt.Errorf("the broker has ended:\n%s", s.log())
	}
}

// exercise has it load the classes of what tests do.
func (s *server) exercise(ctx context.Context) error {
	for _, r := range []struct {
		method, path string
		body         any
	}{
		{http.MethodGet, "brokers/health", nil}, // produces and consumes
		{http.MethodPut, "namespaces/public/a", nil},
		{http.MethodPut, path("public/a/b") + "/partitions", 2},
		{http.MethodPut, path("public/a/c"), nil},
		{http.MethodPut, path("public/a/c") + "/subscription/s", map[string]any{"ledgerId": -1, "entryId": -1, "partitionIndex": -1}},
		{http.MethodGet, path("public/a/c") + "/stats?getPreciseBacklog=true", nil},
		{http.MethodPut, path("public/a/c") + "/unload", nil},
		{http.MethodDelete, path("public/a/c") + "?force=true", nil},
	} {
		if err := s.admin(ctx, r.method, r.path, r.body, nil); err != nil {
			return err
		}
	}
	return nil
}
