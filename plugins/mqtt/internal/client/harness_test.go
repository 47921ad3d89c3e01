// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !so(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// within takes one value out of a channel.
func within[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain: %s", what)
		panic("not reached")
	}
}

// got is a packet that a handler was passed, out of the reader's memory.
type got struct {
	link uint64
	typ  byte
	body string
}

// recorder is a handler that notes what it is told.
type recorder struct {
	ups     chan *Link
	packets chan got
	downs   chan error
	fatals  chan *core.Fault
	onUp    func(l *Link)
	onPack  func(l *Link, p *packet.Packet)
}

func newRecorder() *recorder {
	return &recorder{
		ups: make(chan *Link, 100), packets: make(chan got, 10_000),
		downs: make(chan error, 100), fatals: make(chan *core.Fault, 10),
	}
}

func (r *recorder) Up(l *Link) {
	if r.onUp != nil {
		r.onUp(l)
	}
	select {
	case r.ups <- l:
	default: // a test that looks at no links
	}
}

func (r *recorder) Packet(l *Link, p *packet.Packet) {
	r.packets <- got{l.Number(), p.Type, string(p.Body)}
	if r.onPack != nil {
		r.onPack(l, p)
	}
}

func (r *recorder) Handled(_ *Link, rd *packet.Reader) { rd.Spent() }
func (r *recorder) Down(_ *Link, err error) {
	select {
	case r.downs <- err:
	default:
	}
}
func (r *recorder) Fatal(f *core.Fault) { r.fatals <- f }

// logged is a log that tests read.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// subject is a client under test.
type subject struct {
	*Client
	*recorder
	log *logged
}

// subjectOf returns a client with short times, which is closed with the test.
func subjectOf(t *testing.T, c Config, tune ...func(*Client)) *subject {
	t.Helper()
	s := &subject{recorder: newRecorder(), log: &logged{}}
	if c.Connect.ClientID == "" {
		c.Connect.ClientID = "subject"
	}
	if c.Handler == nil {
		c.Handler = s.recorder
	}
	c.Log = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.Client = New(c)
	s.times.backoffFirst, s.times.backoffLast = 5*time.Millisecond, 20*time.Millisecond
	for _, f := range tune {
		f(s.Client)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		_ = s.Close(ctx)
	})
	return s
}

// start starts it beside the test; the result comes out of the channel.
func (s *subject) start(t *testing.T) <-chan error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	result := make(chan error, 1)
	go func() {
		defer cancel()
		result <- s.Start(ctx)
	}()
	return result
}

// mustClose closes it within the test's patience.
func (s *subject) mustClose(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// server is a listener that plays an MQTT server of bad manners.
type server struct {
	t  *testing.T
	ln net.Listener
}

func serve(t *testing.T) *server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return &server{t, ln}
}

func (s *server) address() Address { return addressOf(s.ln.Addr()) }

func addressOf(a net.Addr) Address {
	tcp := a.(*net.TCPAddr)
	return Address{Host: tcp.IP.String(), Port: uint16(tcp.Port)}
}

// accept waits for the next connection.
func (s *server) accept() *peer {
	s.t.Helper()
	_ = s.ln.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	nc, err := s.ln.Accept()
	if err != nil {
		s.t.Fatalf("nobody connects: %v", err)
	}
	return peerOf(s.t, nc)
}

// nobody fails the test if a connection has come: connections are accepted in the
// order in which they were made, and the next one is the test's own.
func (s *server) nobody() {
	s.t.Helper()
	own, err := net.Dial("tcp", s.ln.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	defer own.Close()
	if p := s.accept(); p.nc.RemoteAddr().String() != own.LocalAddr().String() {
		s.t.Fatal("another connection comes")
	}
}

// welcome accepts a connection and its CONNECT.
func (s *server) welcome() *peer {
	s.t.Helper()
	p := s.accept()
	p.expect(packet.TypeConnect)
	p.raw(connack)
	return p
}

// peer is the server's end of a connection.
type peer struct {
	t  *testing.T
	nc net.Conn
	r  *packet.Reader
}

func peerOf(t *testing.T, nc net.Conn) *peer {
	t.Cleanup(func() { nc.Close() })
	return &peer{t, nc, packet.NewReader(nc, 0)}
}

// Packets of a server.
const (
	connack  = "\x20\x03\x00\x00\x00"
	resumed  = "\x20\x03\x01\x00\x00"
	pingresp = "\xd0\x00"
	publish  = "\x30\x06\x00\x01t\x00hi"
)

// refusal is a CONNACK of a code, and farewell a DISCONNECT.
func refusal(code byte) string  { return string([]byte{0x20, 3, 0, code, 0}) }
func farewell(code byte) string { return string([]byte{0xe0, 1, code}) }

func (p *peer) raw(s string) {
	p.t.Helper()
	if _, err := io.WriteString(p.nc, s); err != nil {
		p.t.Errorf("server: %v", err)
	}
}

// next returns the next packet, or false where the connection has ended.
func (p *peer) next() (packet.Packet, bool) {
	p.t.Helper()
	_ = p.nc.SetReadDeadline(time.Now().Add(patience))
	var q packet.Packet
	for {
		there, err := p.r.Next(&q)
		if err != nil {
			p.t.Fatalf("server: %v", err)
		}
		if there {
			q.Body = bytes.Clone(q.Body)
			p.r.Spent()
			return q, true
		}
		if err := p.r.Fill(); err != nil {
			if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
				p.t.Fatalf("server: waited in vain: %v", err)
			}
			return q, false
		}
	}
}

// expect returns the next packet, which is of a type.
func (p *peer) expect(typ byte) packet.Packet {
	p.t.Helper()
	q, ok := p.next()
	if !ok || q.Type != typ {
		p.t.Fatalf("server: %s came (%v), want %s", packet.Name(q.Type), ok, packet.Name(typ))
	}
	return q
}

// leaves expects a DISCONNECT of a code, and the end of the connection.
func (p *peer) leaves(code byte) {
	p.t.Helper()
	q := p.expect(packet.TypeDisconnect)
	if got := append(q.Body, 0)[0]; got != code {
		p.t.Errorf("the client leaves with %s, want %s", packet.Word(q.Type, got), packet.Word(q.Type, code))
	}
	if q, ok := p.next(); ok {
		p.t.Errorf("behind the DISCONNECT comes %s", packet.Name(q.Type))
	}
}

// faultWith fails unless err is a fault of a code whose text has all words.
func faultWith(t *testing.T, err error, code core.FaultCode, words ...string) {
	t.Helper()
	f, ok := errors.AsType[*core.Fault](err)
	if !ok {
		t.Fatalf("no fault: %v", err)
	}
	if f.Code != code {
		t.Errorf("the fault is of code %v, want %v: %v", f.Code, code, f)
	}
	text := f.Error() + fmt.Sprint(f.Diagnostics)
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing in: %s", w, text)
		}
	}
}
