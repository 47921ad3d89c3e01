// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// keepAlive finds a machine that has gone where MQTT's own keep alive is off or
// long: within half a minute. Where bytes are on their way the system does not
// probe, and limitUnanswered does it.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// errSelf is a connection whose two ends are one: a dial to a free port of this
// machine may be given that very port as its own.
var errSelf = errors.New("nobody listens there")

// shaken is a connection behind its handshake.
type shaken struct {
	nc      net.Conn
	reader  *packet.Reader
	connack *packet.Connack
}

// connect makes one attempt, which ends within the limit, or with Close.
func (c *Client) connect(number uint64) (*shaken, error) {
	ctx, cancel := context.WithTimeoutCause(c.life, c.config.ConnectTimeout,
		fmt.Errorf("not connected within %v: %w", c.config.ConnectTimeout, context.DeadlineExceeded))
	defer cancel()
	nc, err := c.dial(ctx)
	if err != nil {
		return nil, inTime(ctx, err)
	}
	interrupted := make(chan struct{})
	interrupt := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = nc.SetDeadline(time.Unix(1, 0))
	})
	s, sent, err := c.shake(nc, number)
	if !interrupt() {
		<-interrupted
		if err == nil {
			s.reader.Close()
			err = context.Cause(ctx)
		}
		if sent && c.life.Err() != nil {
			c.part(nc)
		}
	}
	if err != nil {
		_ = nc.Close()
		return nil, inTime(ctx, err)
	}
	return s, nil
}

// part takes leave of a server that may have read the CONNECT, and has not refused
// it yet: from one that says nothing it would publish the will. A DISCONNECT may be
// sent before the CONNACK comes (3.1.4). What comes is read until the
// server's end, as closing with bytes unread may take the DISCONNECT away.
func (c *Client) part(nc net.Conn) {
	c.mu.Lock()
	code := c.code
	c.mu.Unlock()
	if nc.SetDeadline(time.Now().Add(c.times.parting)) != nil {
		return
	}
	if _, err := nc.Write(packet.AppendDisconnect(nil, code)); err != nil {
		return
	}
	if half, ok := nc.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, nc)
}

// inTime is why an attempt failed: that its time was over, where it was.
func inTime(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// dial opens the connection itself: no proxy that a variable of the environment
// names comes between. Package net sets TCP_NODELAY.
func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	dial := c.config.Dial
	if dial == nil {
		dial = func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext(ctx, "tcp", c.config.Address.hostPort())
		}
	}
	nc, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	if tc, ok := nc.(*net.TCPConn); ok && tc.LocalAddr().String() == tc.RemoteAddr().String() {
		_ = nc.Close()
		return nil, errSelf
	}
	if raw := rawOf(nc); raw != nil {
		limitUnanswered(raw, c.times.stall)
	}
	if !c.config.Address.TLS {
		return nc, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.config.TLS != nil {
		config = c.config.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = c.config.Address.Host
	}
	secure := tls.Client(nc, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = nc.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return secure, nil
}

// shake sends the CONNECT and takes the CONNACK. sent says that the CONNECT was
// written.
func (c *Client) shake(nc net.Conn, number uint64) (s *shaken, sent bool, err error) {
	params := c.config.Connect
	// Once connected, clean start would throw away what the server keeps for a
	// connection that was lost. Where it is to keep nothing, a connection that it
	// has not missed yet must not be resumed either.
	params.CleanStart = params.CleanStart && (number == 1 || params.SessionExpiry == 0)
	b, err := packet.AppendConnect(nil, &params)
	if err != nil {
		return nil, false, &configError{err}
	}
	_, writeErr := nc.Write(b)
	r := packet.NewReader(nc, params.MaxPacket)
	connack, err := takeConnack(r)
	switch {
	case err == nil && connack.SessionPresent && params.CleanStart: // [MQTT-3.2.2-2]
		err = &foreignError{errors.New("it resumes a session where a new one was to begin")}
	case err == nil:
		return &shaken{nc: nc, reader: r, connack: connack}, true, nil
	case errors.Is(err, ErrLost) && writeErr != nil: // what was sent before its end tells more than a failed write
		err = writeErr
	}
	r.Close()
	return nil, writeErr == nil, err
}

// takeConnack waits for the first packet, which is a CONNACK [MQTT-3.2.0-1].
func takeConnack(r *packet.Reader) (*packet.Connack, error) {
	var p packet.Packet
	for {
		there, err := r.Next(&p)
		switch {
		case err != nil:
			return nil, &foreignError{err}
		case there && p.Type == packet.TypeDisconnect: // [MQTT-3.14.0-1] forbids it, some do it
			defer r.Spent()
			return nil, disconnected(&p)
		case there && p.Type != packet.TypeConnack:
			return nil, &foreignError{fmt.Errorf("%s came in place of CONNACK", packet.Name(p.Type))}
		case there:
			defer r.Spent()
			return accepted(&p)
		}
		if err := r.Fill(); err != nil {
			return nil, lost(err)
		}
	}
}

// accepted reads a CONNACK.
func accepted(p *packet.Packet) (*packet.Connack, error) {
	c, err := packet.ParseConnack(p)
	switch {
	case err != nil:
		return nil, &foreignError{err}
	case c.Code != packet.CodeSuccess:
		return nil, &ReasonError{Packet: packet.TypeConnack, Code: c.Code, Reason: c.Reason, ServerReference: c.ServerReference}
	}
	return c, nil
}
