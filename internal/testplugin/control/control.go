// SPDX-License-Identifier: Apache-2.0

// Package control lets a test stop a plugin at a chosen point, and learn that
// it is there.
package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
)

// The environment variables that a plugin under test is told by.
const (
	EnvMode    = "LONGSHORE_TEST_MODE"    // what is odd about it
	EnvControl = "LONGSHORE_TEST_CONTROL" // socket of the Server
	EnvArg     = "LONGSHORE_TEST_ARG"     // for the mode
)

// Env returns the names of all of them, and of the race detector's options, to
// be passed on to plugins.
func Env() []string { return []string{EnvMode, EnvControl, EnvArg, "GORACE"} }

// At tells the server that the plugin has come to step, and waits until it may
// go on. Without a server it returns at once.
func At(step string) {
	path := os.Getenv(EnvControl)
	if path == "" {
		return
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		return // the test is over
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "%s %d\n", step, os.Getpid()); err != nil {
		return
	}
	_, _ = conn.Read(make([]byte, 1)) // the end is the permission
}

// Visit is a plugin at a step.
type Visit struct {
	Step string
	PID  int
	conn net.Conn
}

// Go lets the plugin go on.
func (v *Visit) Go() { _ = v.conn.Close() }

// Server is the test's side.
type Server struct {
	Path   string
	lis    net.Listener
	visits chan *Visit
	tasks  sync.WaitGroup

	mu   sync.Mutex
	hold func(step string) bool
	pids map[int]bool
}

// Listen starts a server on a socket. hold says which steps are reported to
// Next; at others the plugin goes on at once.
func Listen(path string, hold func(step string) bool) (*Server, error) {
	lis, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	s := &Server{Path: path, lis: lis, visits: make(chan *Visit, 64), hold: hold, pids: map[int]bool{}}
	s.tasks.Go(s.accept)
	return s, nil
}

func (s *Server) accept() {
	for {
		conn, err := s.lis.Accept()
		if err != nil {
			return
		}
		s.tasks.Go(func() { s.visit(conn) })
	}
}

func (s *Server) visit(conn net.Conn) {
	line, err := bufio.NewReader(conn).ReadString('\n')
	step, number, ok := strings.Cut(strings.TrimSpace(line), " ")
	pid, bad := strconv.Atoi(number)
	if err != nil || bad != nil || !ok {
		_ = conn.Close()
		return
	}
	s.mu.Lock()
	s.pids[pid] = true
	hold := s.hold(step)
	s.mu.Unlock()
	if !hold {
		_ = conn.Close()
		return
	}
	select {
	case s.visits <- &Visit{Step: step, PID: pid, conn: conn}:
	default:
		_ = conn.Close()
	}
}

// Hold replaces what is reported.
func (s *Server) Hold(hold func(step string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = hold
}

// Next waits for a plugin at a step that is held.
func (s *Server) Next(ctx context.Context) (*Visit, error) {
	select {
	case v := <-s.visits:
		return v, nil
	case <-ctx.Done():
		return nil, errors.Join(errors.New("no plugin came to a step"), ctx.Err())
	}
}

// PIDs returns every plugin that has come to any step.
func (s *Server) PIDs() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pids []int
	for pid := range s.pids {
		pids = append(pids, pid)
	}
	return pids
}

// Close ends the server and lets every plugin go on.
func (s *Server) Close() {
	_ = s.lis.Close()
	s.mu.Lock()
	s.hold = func(string) bool { return false }
	s.mu.Unlock()
	for {
		select {
		case v := <-s.visits:
			v.Go()
		default:
			s.tasks.Wait()
			return
		}
	}
}
