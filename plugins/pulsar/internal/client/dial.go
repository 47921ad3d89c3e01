// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// software is how brokers show whose connection it is.
const software = "longshore"

// errSelf is a connection whose two ends are one: a dial to a free port of this
// machine may be given that very port as its own.
var errSelf = errors.New("nobody listens there")

// A ServerError is a broker's refusal.
type ServerError struct {
	Code    wire.ServerError
	Message string // the broker's own words
}

// Error has the code and the broker's words.
func (e *ServerError) Error() string {
	if e.Message == "" {
		return e.Code.String()
	}
	return e.Code.String() + ": " + line(e.Message)
}

// foreignError is an answer to a CONNECT that is not one of a Pulsar broker.
type foreignError struct{ err error }

func (e *foreignError) Error() string { return e.err.Error() }
func (e *foreignError) Unwrap() error { return e.err }

// connect makes one try at one host, which ends within the limit of a try, or with
// Close.
func (c *Client) connect(to target, host string) (*Conn, error) {
	ctx, cancel := context.WithTimeoutCause(c.life, c.times.try,
		fmt.Errorf("no answer within %v: %w", c.times.try, context.DeadlineExceeded))
	defer cancel()
	nc, below, err := c.dial(ctx, host)
	if err != nil {
		return nil, inTime(ctx, err)
	}
	interrupted := make(chan struct{})
	interrupt := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = nc.SetDeadline(time.Unix(1, 0))
	})
	conn := newConn(c, to, host, nc)
	conn.socket = below
	err = conn.shake()
	if !interrupt() {
		<-interrupted
		if err == nil {
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		_ = nc.Close()
		return nil, inTime(ctx, err)
	}
	below.watch(c.times.ping)
	return conn, nil
}

// inTime is why a try failed: that its time was over, where it was.
func inTime(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// dial opens the connection itself: no proxy that a variable of the environment
// names comes between. It returns what is below TLS, too.
func (c *Client) dial(ctx context.Context, host string) (net.Conn, *socket, error) {
	tcp, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, nil, err
	}
	nc := &socket{Conn: tcp, born: time.Now()}
	if nc.LocalAddr().String() == nc.RemoteAddr().String() {
		_ = nc.Close()
		return nil, nil, errSelf
	}
	if !c.config.Address.TLS {
		return nc, nc, nil
	}
	config, err := c.config.TLS.load()
	if err != nil {
		_ = nc.Close()
		return nil, nil, err
	}
	if config.ServerName, _, err = net.SplitHostPort(host); err != nil {
		_ = nc.Close()
		return nil, nil, err
	}
	secure := tls.Client(nc, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = nc.Close()
		return nil, nil, &handshakeError{err}
	}
	return secure, nc, nil
}

// handshakeError is a TLS connection that was not made. Package tls begins some of
// its texts, not all, with its own name.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "TLS: " + strings.TrimPrefix(e.err.Error(), "tls: ") }
func (e *handshakeError) Unwrap() error { return e.err }

// shake sends the CONNECT and takes the CONNECTED. A broker may ask for credentials
// again in between, as methods of several steps do: once, for ours has one.
func (c *Conn) shake() error {
	auth, err := c.client.config.auth()
	if err != nil {
		return err
	}
	through := ""
	if c.to.proxy {
		through = c.to.broker
	}
	_, writeErr := c.nc.Write(wire.AppendConnect(nil, software, auth, through))
	for asked := false; ; asked = true {
		hello, err := c.takeCommand()
		switch {
		case err != nil && writeErr != nil: // what was sent before its end tells more than a failed write
			return writeErr
		case err != nil:
			return err
		case hello.Type == wire.TypeConnected:
			c.hello = hello
			c.reader.Allow(c.MaxMessageSize())
			return nil
		case hello.Type == wire.TypeError:
			return &ServerError{hello.Code, hello.Message}
		case hello.Type == wire.TypeAuthChallenge && !asked:
			if auth, err = c.client.config.auth(); err != nil {
				return err
			}
			if _, err := c.nc.Write(wire.AppendAuthResponse(nil, software, auth)); err != nil {
				return err
			}
		default:
			return &foreignError{fmt.Errorf("%s came in place of CONNECTED", hello.Type)}
		}
	}
}

// takeCommand reads a command of the handshake.
func (c *Conn) takeCommand() (wire.Command, error) {
	f, err := c.reader.Next()
	if err == nil {
		var m wire.Command
		if m, err = f.Parse(); err == nil {
			return m, nil
		}
	}
	if _, ok := errors.AsType[*wire.FrameError](err); ok {
		return wire.Command{}, &foreignError{err}
	}
	return wire.Command{}, lost(err)
}
