// SPDX-License-Identifier: Apache-2.0

package pulsarbroker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

// Process is a broker of a command's own.
type Process struct {
	s      *server
	folder string
}

// Open starts a broker for a command. It serves when Open returns, until Close.
func Open(c Config) (*Process, error) {
	folder, err := newFolder()
	if err != nil {
		return nil, err
	}
	p := &Process{folder: folder}
	if p.s, err = newServer(c, folder); err == nil {
		err = p.s.start()
	}
	if err != nil {
		if p.s != nil {
			err = errors.Join(err, p.s.end())
		}
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return p, nil
}

// URL returns where it serves.
func (p *Process) URL() string { return (&Broker{nil, p.s}).URL() }

// WebURL returns where its own API is.
func (p *Process) WebURL() string { return (&Broker{nil, p.s}).WebURL() }

// PID is the process's.
func (p *Process) PID() int { return p.s.cmd.Process.Pid }

// Close ends it.
func (p *Process) Close() error {
	return errors.Join(p.s.stop(), p.s.end(), os.RemoveAll(p.folder))
}

// Run runs a broker until ctx ends, for commands, and prints its URL to out when
// it serves, and in a second line the one of its own API.
func Run(ctx context.Context, c Config, out io.Writer) (err error) {
	p, err := Open(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if c.Archive != "" {
		return p.s.exercise(ctx)
	}
	if _, err := fmt.Fprintf(out, "%s\n%s\n", p.URL(), p.WebURL()); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-p.s.ended:
		return fmt.Errorf("the broker has ended:\n%s", p.s.log())
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
