// SPDX-License-Identifier: Apache-2.0

package peering

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// patience is how long a test waits for what takes moments.
const patience = zmqtest.Patience

// lines is a log that a test reads.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
	all *slog.Logger
}

func newLines() *lines {
	l := &lines{}
	l.all = slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelInfo}))
	return l
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// with returns the lines with all of some words.
func (l *lines) with(words ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
next:
	for _, line := range strings.Split(strings.TrimSpace(l.buf.String()), "\n") {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue next
			}
		}
		found = append(found, line)
	}
	return found
}

// served is a Peering whose peers are read.
type served struct {
	*Peering
	log *lines

	mu   sync.Mutex
	got  []string // the last frames of messages, in order of arrival
	left []error  // how peers ended
	link []string
}

// serve starts a Peering that notes what comes. change may be nil.
func serve(t *testing.T, typ zmq4.SocketType, change func(*Config)) *served {
	t.Helper()
	s := &served{log: newLines()}
	p, err := Start(t.Context(), s.config(typ, change))
	if err != nil {
		t.Fatal(err)
	}
	s.Peering = p
	t.Cleanup(func() { s.end(t) })
	return s
}

// config is what tests have in common.
func (s *served) config(typ zmq4.SocketType, change func(*Config)) Config {
	c := Config{
		Handshake: zmtp.Options{Type: typ, MaxMessage: 1 << 20},
		Log:       s.log.all,
		Serve:     s.read,
		Link: func(up bool, reason string) {
			s.mu.Lock()
			s.link = append(s.link, fmt.Sprint(up, " ", reason))
			s.mu.Unlock()
		},
	}
	if change != nil {
		change(&c)
	}
	return c
}

// bound is a Config's change that binds.
func bound(t *testing.T, text string, more ...func(*Config)) func(*Config) {
	t.Helper()
	a, err := ParseAddress(text, true)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *Config) {
		c.Bind = &a
		for _, change := range more {
			change(c)
		}
	}
}

// connected is a Config's change that dials.
func connected(t *testing.T, addresses ...string) func(*Config) {
	t.Helper()
	return func(c *Config) {
		for _, text := range addresses {
			a, err := ParseAddress(text, false)
			if err != nil {
				t.Fatal(err)
			}
			c.Connect = append(c.Connect, a)
		}
	}
}

// read is the reading loop of a peer.
func (s *served) read(p *Peer) error {
	err := p.Read(func(f *zmtp.Frames) error {
		if f.Command == "" {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.got = append(s.got, string(f.List[len(f.List)-1]))
		}
		return nil
	}, func() {})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = append(s.left, err)
	return err
}

// have returns how many messages came.
func (s *served) have() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.got)
}

// links returns what Link was told.
func (s *served) links() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.link...)
}

// peers waits for a number of peers.
func (s *served) peers(t *testing.T, n int) {
	t.Helper()
	zmqtest.Until(t, fmt.Sprintf("%d peers", n), func() bool { return s.Counters().Peers == n })
}

// end closes the Peering, as often as it is called.
func (s *served) end(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// raw dials an address and says nothing.
func raw(t *testing.T, text string) net.Conn {
	t.Helper()
	a, err := ParseAddress(text, false)
	if err != nil {
		t.Fatal(err)
	}
	network, address := a.system()
	nc, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc
}

// foreign dials an address and does the handshake as a socket of a type.
func foreign(t *testing.T, text string, typ zmq4.SocketType) *zmtp.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := zmtp.Open(ctx, raw(t, text), zmtp.Options{Type: typ, MaxMessage: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// send writes a message of two frames.
func send(t *testing.T, conn *zmtp.Conn, payload string) {
	t.Helper()
	b := zmtp.AppendFrame(zmtp.AppendFrame(nil, []byte("jobs"), true), []byte(payload), false)
	if _, err := conn.NetConn().Write(b); err != nil {
		t.Fatal(err)
	}
}

// ends reports whether the other side closes a connection in time; what it sends
// before is skipped.
func ends(nc net.Conn, within time.Duration) bool {
	_ = nc.SetReadDeadline(time.Now().Add(within))
	b := make([]byte, 4096)
	for {
		if _, err := nc.Read(b); err != nil {
			return !errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
}

// push queues a message for a peer.
func push(p *Peer, payload string, t outq.Ticket) bool {
	return p.Out.Push(&core.Message{Name: "jobs", Payload: []byte(payload)}, "jobs", nil, t)
}

// startFault is the fault of a start that must fail.
func startFault(t *testing.T, change func(*Config)) *core.Fault {
	t.Helper()
	s := &served{log: newLines()}
	p, err := Start(t.Context(), s.config(zmq4.Pull, change))
	if err == nil {
		_ = p.Close(context.Background())
		t.Fatal("it starts")
	}
	var f *core.Fault
	if !errors.As(err, &f) {
		t.Fatalf("it fails with %T: %v", err, err)
	}
	if len(f.Diagnostics) != 1 || f.Diagnostics[0].Path != "bind" || f.Diagnostics[0].Fix == "" {
		t.Errorf("the fault does not name the field and a fix: %+v", f)
	}
	return f
}

// ticket asks for a receipt that must be a confirmation.
func ticket(t *testing.T) outq.Ticket {
	return outq.Ticket{Done: func(_ int, r pluginapi.Receipt) {
		if r.Status != pluginapi.ReceiptConfirmed {
			t.Errorf("a message was not sent: %+v", r)
		}
	}}
}
