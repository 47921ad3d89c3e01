// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// DefaultConnectTimeout is the limit of an attempt where the Config has none.
const DefaultConnectTimeout = 30 * time.Second

// Config says whom a client connects to, and as whom.
type Config struct {
	Address Address
	TLS     *tls.Config // of an address with TLS; nil = the system's roots, no client certificate

	// Connect is the CONNECT, with user and password. Clean start counts for the
	// first connection; later ones begin a session anew only where none is kept
	// (session expiry 0). Packets of more than MaxPacket bytes end the connection.
	Connect        packet.ConnectParams
	ConnectTimeout time.Duration // of one attempt, from the dial to the CONNACK; 0 = DefaultConnectTimeout

	Log     *slog.Logger // nil = nothing is logged
	Handler Handler

	// Dial replaces the TCP connection, for tests. TLS goes over it all the same.
	Dial func(ctx context.Context) (net.Conn, error)
}

// A Handler is told what happens to the connections of a client, in this order: Up,
// then Packet and Handled any number of times, then Down, then Up of the next one.
// All calls come from one goroutine. None may block, or wait for Close: while one
// runs nothing is read.
type Handler interface {
	// Up is called when the server has accepted a connection, before anything else
	// of it is read. What is written to l here leaves first.
	Up(l *Link)
	// Packet is called for each PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK and
	// UNSUBACK. p is good until Handled returns, and its body as long as r's
	// memory is lent there.
	Packet(l *Link, p *packet.Packet)
	// Handled is called when all packets of one read have been passed to Packet. It
	// calls Lend or Spent. What Packet and it have written leaves behind it.
	Handled(l *Link, r *packet.Reader)
	// Down is called when l has ended, because of err, which is never nil and
	// ErrClosed after Close. Nothing is written any more: what Written does not
	// cover by then never reached the server whole.
	Down(l *Link, err error)
	// Fatal is called behind Down when there will be no other connection. It is not
	// called for what Start returns, nor after Close.
	Fatal(f *core.Fault)
}

// Limits are what a server's CONNACK allows (OASIS MQTT 5.0, 3.2.2.3), with the
// standard's defaults for what it does not say.
type Limits struct {
	ReceiveMaximum      uint16 // PUBLISH packets of QoS 1 and 2 that the server takes at a time
	MaximumQoS          byte   // that may be published
	Retain              bool   // retained messages are there
	MaxPacket           uint32 // bytes of a packet that the server takes, 0 = no limit
	Wildcards           bool   // filters may have wildcards
	Identifiers         bool   // subscriptions may have identifiers
	Shared              bool   // there are shared subscriptions
	SessionExpiry       uint32 // seconds the session is kept
	KeepAlive           uint16 // seconds, 0 = off
	ResponseInformation string // the beginning of reply topics, "" = not told
}

func limitsOf(c *packet.Connack, asked *packet.ConnectParams) Limits {
	l := Limits{
		ReceiveMaximum: c.ReceiveMaximum, MaximumQoS: c.MaximumQoS, Retain: c.Retain, MaxPacket: c.MaxPacket,
		Wildcards: c.Wildcards, Identifiers: c.Identifiers, Shared: c.Shared,
		SessionExpiry: asked.SessionExpiry, KeepAlive: asked.KeepAlive, ResponseInformation: c.ResponseInformation,
	}
	if c.SetsSessionExpiry {
		l.SessionExpiry = c.SessionExpiry
	}
	if c.SetsKeepAlive { // [MQTT-3.2.2-21]
		l.KeepAlive = c.KeepAlive
	}
	return l
}

// times are the client's own limits, and what it asks of the system.
type times struct {
	acknowledge func(socket syscall.RawConn) // now what has been read

	backoffFirst, backoffLast time.Duration // the first pause, and the longest
	settled                   time.Duration // how long a connection lives before pauses begin from the first again
	answer                    time.Duration // the least time for the answer to a ping
	stall                     time.Duration // how long the server may take no byte of what is to be written
	linger                    time.Duration // how long the last packets and the server's end may take where a connection ends by ours
	parting                   time.Duration // likewise, where it has not begun
}

func defaultTimes() times {
	return times{
		acknowledge:  acknowledge,
		backoffFirst: 100 * time.Millisecond, backoffLast: 5 * time.Second, settled: 10 * time.Second,
		answer: 5 * time.Second, stall: 30 * time.Second, linger: 2 * time.Second, parting: 200 * time.Millisecond,
	}
}
