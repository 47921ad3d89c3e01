// SPDX-License-Identifier: Apache-2.0

// Package libzmq drives sockets of libzmq, the implementation of ZeroMQ that
// most programs use, for tests of interoperability. They live in processes of
// Python, whose binding of it, pyzmq, is packaged everywhere.
package libzmq

import (
	"bufio"
	_ "embed" // the program
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"testing"
	"time"
)

//go:embed peer.py
var program string

// limit is how long a test waits for anything, on a busy machine.
const limit = 2 * time.Minute

// longestLine holds a message of 64 MiB in base64.
const longestLine = 128 << 20

// Peer is a process with sockets of libzmq. Its methods, and those of its
// sockets, are called by the test's goroutine; they fail the test where something
// goes wrong.
type Peer struct {
	tb      testing.TB
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan line
	ended   chan struct{} // closed when the process is gone

	mu      sync.Mutex
	sockets map[string]*Socket
	opened  int
}

// line is one line of the program.
type line struct {
	Answer  bool     `json:"answer"`
	Error   string   `json:"error"`
	Address string   `json:"address"`
	Socket  string   `json:"socket"`
	Frames  [][]byte `json:"frames"`
	Event   string   `json:"event"`
}

// command is one line for the program.
type command struct {
	Do     string `json:"do"`
	Socket string `json:"socket,omitempty"`
	*Options
	Kind   string   `json:"kind,omitempty"`
	Frames [][]byte `json:"frames,omitempty"`
	Times  int      `json:"times,omitempty"`
	Limit  int64    `json:"limit,omitempty"`  // ms
	Linger int64    `json:"linger"`           // ms
	Quiet  int64    `json:"quiet,omitempty"`  // ms
	Prefix string   `json:"prefix,omitempty"` // "" = everything
}

// Python returns an interpreter that has pyzmq. Debian's own has it where the
// package is installed, another one on PATH may not. Where there is none it fails
// the test and names what to install.
func Python(tb testing.TB) string {
	tb.Helper()
	path := python()
	if path == "" {
		tb.Fatal("no python3 here can import zmq, the binding of libzmq: run apt-get install python3-zmq")
	}
	return path
}

// python tries them once, and returns "" where none will do.
var python = sync.OnceValue(func() string {
	for _, path := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(path, "-c", "import zmq").Run() == nil {
			return path
		}
	}
	return ""
})

// Start returns a peer, which ends with the test.
func Start(tb testing.TB) *Peer {
	tb.Helper()
	p := &Peer{
		tb: tb, cmd: exec.Command(Python(tb), "-c", program),
		answers: make(chan line, 1), ended: make(chan struct{}), sockets: make(map[string]*Socket),
	}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	p.cmd.Stderr = tb.Output()
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go p.read(out)
	tb.Cleanup(p.Kill)
	return p
}

// read takes what the program says until it ends.
func (p *Peer) read(out io.Reader) {
	defer close(p.ended)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			p.tb.Errorf("the peer says %q", lines.Bytes())
			break
		}
		switch s := p.socket(l.Socket); {
		case l.Answer:
			p.answers <- l
		case s == nil: // closed since
		case l.Event != "":
			s.events.add(l.Event)
		default:
			s.received.add(l.Frames)
		}
	}
	_ = p.cmd.Wait() // it is killed
}

func (p *Peer) socket(name string) *Socket {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sockets[name]
}

// do sends a command and waits for its answer.
func (p *Peer) do(c command) (line, error) {
	p.tb.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		p.tb.Fatal(err)
	}
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		p.tb.Fatalf("%s: the peer is gone: %v", c.Do, err)
	}
	timer := time.NewTimer(2 * limit)
	defer timer.Stop()
	select {
	case l := <-p.answers:
		if l.Error != "" {
			return l, fmt.Errorf("%s %s: %s", c.Do, c.Kind, l.Error)
		}
		return l, nil
	case <-p.ended:
		p.tb.Fatalf("%s: the peer has ended", c.Do)
	case <-timer.C:
		p.tb.Fatalf("%s: the peer does not answer", c.Do)
	}
	return line{}, nil
}

// must is do where nothing may go wrong.
func (p *Peer) must(c command) line {
	p.tb.Helper()
	l, err := p.do(c)
	if err != nil {
		p.tb.Fatal(err)
	}
	return l
}

// PID returns the process's id.
func (p *Peer) PID() int { return p.cmd.Process.Pid }

// Kill kills the process and waits for its end: its connections are closed by
// the kernel.
func (p *Peer) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}
