// SPDX-License-Identifier: Apache-2.0

package zmtp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/go-zeromq/zmq4"
)

// The greeting (RFC 23, "The Greeting"): signature of ten bytes, version of
// two, mechanism of twenty, as-server, padding.
const (
	greetingLen    = 64
	signatureLen   = 10
	signatureFirst = 0xff
	signatureLast  = 0x7f
	majorAt        = 10
	mechanismAt    = 12
	mechanismEnd   = 32
	serverAt       = 32
	versionMajor   = 3
)

// guard is the connection as the library sees it during the handshake. It
// reads no byte ahead, hands on what was checked alone, and writes what the
// library writes in pieces at once.
type guard struct {
	net.Conn
	own     zmq4.SocketType
	stage   Stage
	refused error // what the peer did wrong

	ctx       context.Context //nolint:containedctx // of Open, whose call this is
	accepted  bool            // the peer dialed us
	impatient bool            // nothing waits for the peer any more
	sent      int             // bytes

	out     []byte // written by the library and not yet sent
	checked []byte // read from the peer and not yet taken by the library
	ready   ready  // what the peer's READY says
}

// Write keeps what the library writes until it reads.
func (g *guard) Write(p []byte) (int, error) {
	g.out = append(g.out, p...)
	return len(p), nil
}

// Read sends what was written and gives what was checked.
func (g *guard) Read(p []byte) (int, error) {
	if err := g.flush(); err != nil {
		return 0, err
	}
	if len(g.checked) == 0 {
		if err := g.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, g.checked)
	g.checked = g.checked[n:]
	return n, nil
}

// patience is how long what we say waits for what the peer says. None that we
// know of waits for us, but RFC 23 does not say who is first.
const patience = 200 * time.Millisecond

// flush sends what the library has written, as far as it is due. Who accepts a
// connection says at first only that it speaks ZMTP 3 (RFC 23, "The Greeting"):
// libzmq answers with its whole greeting then, and to that with its READY. Where
// it finds another mechanism or type in ours before, it says nothing and hangs up,
// and all that could be told is that somebody did.
func (g *guard) flush() error {
	most := len(g.out)
	switch {
	case !g.accepted || g.impatient:
	case g.stage == StageGreeting:
		most = min(most, mechanismAt-1-g.sent)
	case g.stage == StageReady:
		most = min(most, greetingLen-g.sent)
	}
	if most == 0 {
		return nil
	}
	n, err := g.Conn.Write(g.out[:most])
	g.out, g.sent = g.out[n:], g.sent+n
	return err
}

// finish sends all that is left.
func (g *guard) finish() error {
	g.impatient = true
	return g.flush()
}

// patient reads what the peer says. One that waits for us gets what it waits for.
type patient struct{ *guard }

// Read implements io.Reader.
func (g patient) Read(b []byte) (int, error) {
	if len(g.out) == 0 {
		return g.Conn.Read(b)
	}
	_ = g.SetReadDeadline(time.Now().Add(patience))
	n, err := g.Conn.Read(b)
	deadline, _ := g.ctx.Deadline() // without one it is zero, which is none
	_ = g.SetReadDeadline(deadline)
	if g.ctx.Err() != nil {
		return n, context.Cause(g.ctx)
	}
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, g.finish()
	}
	return n, err
}

// next reads the greeting, then READY.
func (g *guard) next() error {
	switch g.stage {
	case StageGreeting:
		return g.greeting()
	case StageReady:
		return g.command()
	default:
		return io.ErrUnexpectedEOF
	}
}

// refuse ends the handshake for what the peer sent.
func (g *guard) refuse(stage Stage, format string, args ...any) error {
	g.stage, g.refused = stage, fmt.Errorf(format, args...)
	return g.refused
}

// greeting reads and checks a greeting as it comes: peers of other protocols
// and of older versions send less than a whole one and then wait.
func (g *guard) greeting() error {
	b := make([]byte, greetingLen)
	got := 0
	for got < greetingLen {
		n, err := patient{g}.Read(b[got:])
		got += n
		if fault := g.looksWrong(b[:got]); fault != nil {
			return fault
		}
		switch {
		case err == nil || got == greetingLen:
		case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
			// libzmq says no more than its signature, if that, where it finds another
			// mechanism than its own.
			stage := StageMechanism
			if got == 0 {
				stage = StageGreeting // as it is with who looks whether the port is open
			}
			return g.refuse(stage, "the peer hung up at our greeting: it speaks no ZMTP, or wants a mechanism other than NULL (PLAIN, CURVE), which is not supported: %w", io.EOF)
		default:
			return err
		}
	}
	if name := mechanismName(b); name != string(zmq4.NullSecurity) {
		return g.refuse(StageMechanism, "the peer wants the mechanism %q: only NULL is supported", name)
	}
	if b[serverAt] > 1 {
		return g.refuse(StageGreeting, "as-server is %d: the peer speaks no ZMTP", b[serverAt])
	}
	g.stage, g.checked = StageReady, b
	return nil
}

// looksWrong checks the beginning of a greeting.
func (g *guard) looksWrong(b []byte) error {
	switch {
	case len(b) > 0 && b[0] != signatureFirst && looksLikeHTTP(b):
		return g.refuse(StageGreeting, "the peer speaks HTTP, not ZMTP: it began with %q", b)
	case len(b) >= 2 && b[0] == 1 && b[1] <= 1, len(b) >= signatureLen && b[0] == signatureFirst && b[signatureLen-1]&1 == 0:
		// A frame with an identity: a length, then flags whose lowest bit says
		// that no other follows (RFC 13).
		return g.refuse(StageGreeting, "the peer speaks ZMTP 1: version 3 is needed, ZeroMQ 4.0 or later")
	case len(b) > 0 && b[0] != signatureFirst, len(b) >= signatureLen && b[signatureLen-1] != signatureLast:
		return g.refuse(StageGreeting, "the peer speaks no ZMTP: it began with %q", b)
	case len(b) > majorAt && b[majorAt] < versionMajor:
		return g.refuse(StageGreeting, "the peer speaks ZMTP 2 or older (revision %d): version 3 is needed, ZeroMQ 4.0 or later", b[majorAt])
	}
	return nil
}

// looksLikeHTTP reports whether b begins as a request or an answer does.
func looksLikeHTTP(b []byte) bool {
	for _, word := range []string{"GET ", "POST ", "PUT ", "HEAD ", "OPTIONS ", "DELETE ", "CONNECT ", "PATCH ", "PRI ", "HTTP/"} {
		if bytes.HasPrefix(b, []byte(word)) {
			return true
		}
	}
	return false
}

// mechanismName is the mechanism of a greeting, up to the first zero.
func mechanismName(greeting []byte) string {
	name, _, _ := bytes.Cut(greeting[mechanismAt:mechanismEnd], []byte{0})
	return string(name)
}

// maxReady bounds the peer's READY: socket type, identity and a few resources
// and X- properties.
const maxReady = 4 << 10

// command reads the peer's READY. The library is given one of our own making
// that says the same.
func (g *guard) command() error {
	body, err := g.frame()
	if err != nil {
		return err
	}
	name, rest, ok := cutShort(body)
	switch {
	case !ok:
		return g.refuse(StageReady, "a command without a name")
	case string(name) == commandError:
		reason, _, _ := cutShort(rest)
		return g.refuse(StageReady, "the peer refuses: %q", reason)
	case string(name) != commandReady:
		return g.refuse(StageReady, "the peer sent %q, not READY", name)
	}
	if g.ready, err = parseReady(rest); err != nil {
		return g.refuse(StageReady, "%w", err)
	}
	if !known(g.ready.socket) || !g.ready.socket.IsCompatible(g.own) {
		_ = g.finish() // so that the peer can name both types as well
		return g.refuse(StageType, "the peer is a %q socket, which does not go with our %s; it has to be %s", g.ready.socket, g.own, partners(g.own))
	}
	g.checked = g.ready.frame()
	return nil
}

// frame reads one command frame.
func (g *guard) frame() ([]byte, error) {
	var head [longHead]byte
	if _, err := io.ReadFull(patient{g}, head[:shortHead]); err != nil {
		return nil, err
	}
	size := uint64(head[1])
	switch head[0] {
	case flagCommand:
	case flagCommand | flagLong:
		if _, err := io.ReadFull(patient{g}, head[shortHead:]); err != nil {
			return nil, err
		}
		size = binary.BigEndian.Uint64(head[1:])
	default:
		return nil, g.refuse(StageReady, "a frame with the flags %#02x where a command is due", head[0])
	}
	if size > maxReady {
		return nil, g.refuse(StageReady, "a command of %d bytes: the limit is %d", size, maxReady)
	}
	body := make([]byte, size)
	_, err := io.ReadFull(patient{g}, body)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return body, err
}
