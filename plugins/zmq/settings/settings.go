// SPDX-License-Identifier: Apache-2.0

// Package settings holds the settings of the ZeroMQ transport.
package settings

import "github.com/longshore-go/longshore/core"

// The values of Pattern.
const (
	PatternQueue  = "queue"   // PUSH to PULL: each message to one of those that are connected
	PatternFanOut = "fan-out" // PUB to SUB: each message to all that subscribed to its name
	PatternRPC    = "rpc"     // DEALER to ROUTER: a request and its reply
)

// SecurityNull is the value of Security: connections are neither authenticated
// nor encrypted.
const SecurityNull = "null"

// Settings are the ZeroMQ transport's settings. Pattern and one of Bind and
// Connect are required, everything else has a default.
//
// An address is tcp://host:port, where host is a name, an IPv4 address or an IPv6
// address in brackets, or ipc:///path/of/a/socket.
type Settings struct {
	// Pattern says what the endpoint's sockets are: PatternQueue, PatternFanOut
	// or PatternRPC. Both ends must agree.
	Pattern string `json:"pattern" required:"true" enum:"queue,fan-out,rpc" doc:"What goes over the sockets: queue (PUSH, PULL), fan-out (PUB, SUB) or rpc (DEALER, ROUTER)."`
	// Bind is the address to listen on. The host * listens on all interfaces, the
	// port 0 on one that is free, which a restarted plugin takes again.
	Bind string `json:"bind,omitempty" doc:"The address to listen on, as in tcp://*:5555 or ipc:///run/jobs.sock; in place of connect."`
	// Connect are the addresses to dial, and to dial again whenever a connection
	// is lost. A sender of a queue and a requester take them in turn, all others
	// use all of them.
	Connect []string `json:"connect,omitempty" max:"256" doc:"The addresses to dial, as in tcp://broker:5555; in place of bind."`
	// MaxMessage is the most bytes of payload and headers of one message, read or
	// published. One that is read and has more is not handled: it fails to decode.
	// A peer that announces frames of more than 512 KiB beyond it, among them the
	// name and what separates headers, is disconnected before any memory is taken
	// for them. Default and most: 64 MiB.
	MaxMessage int64 `json:"max_message,omitempty" default:"67108864" min:"1" max:"67108864" doc:"The most bytes of payload and headers of one message; a larger one is not handled, and a peer that sends far more is disconnected."`
	// SendQueue is how many messages wait for one peer at most. Default 1000.
	SendQueue int `json:"send_queue,omitempty" default:"1000" min:"1" max:"1000000" doc:"The most messages that wait for one peer."`
	// SendQueueBytes is how many bytes wait for one peer at most; one message is
	// taken always. Default 64 MiB.
	SendQueueBytes int64 `json:"send_queue_bytes,omitempty" default:"67108864" min:"1" doc:"The most bytes that wait for one peer."`
	// SendTotalBytes is how many bytes wait for all peers of a fan-out together:
	// those that have stopped reading at different times share little of what waits
	// for them. Beyond it the one that is the furthest behind loses what waits for
	// it. Default 256 MiB.
	SendTotalBytes int64 `json:"send_total_bytes,omitempty" default:"268435456" min:"1" doc:"The most bytes that wait for all peers of a fan-out together."`
	// MaxPeers is how many connections are accepted at a time, those that have not
	// introduced themselves yet included. Default 1024.
	MaxPeers int `json:"max_peers,omitempty" default:"1024" min:"1" max:"65536" doc:"The most connections that are accepted at a time."`
	// HandshakeTimeout is how long a peer may take to introduce itself. Default
	// 10 s.
	HandshakeTimeout core.Duration `json:"handshake_timeout,omitempty" default:"10s" min:"1ms" doc:"How long a peer may take to introduce itself."`
	// PeerWait is how long a message of a queue, a request, and the first message
	// of a fan-out that dials wait for a peer. Default 5 s, at most 10 s: a host
	// waits no longer for the last receipts at its end.
	PeerWait core.Duration `json:"peer_wait,omitempty" default:"5s" min:"1ms" max:"10s" doc:"How long a message waits for a peer where none is connected."`
	// Linger is how long closing waits until what was published is sent, at most.
	// Default 1 s.
	Linger core.Duration `json:"linger,omitempty" default:"1s" min:"1ms" doc:"How long closing waits until what was published is sent."`
	// Heartbeat is how often a peer is asked for a sign of life; one that gives
	// none for three times as long is disconnected. Default 0, never. Peers that
	// ask are answered always.
	Heartbeat core.Duration `json:"heartbeat,omitempty" default:"0s" min:"0s" max:"10m" doc:"How often a peer is asked for a sign of life; 0: never."`
	// Security is the mechanism of the connections. SecurityNull is all there is.
	Security string `json:"security,omitempty" default:"null" doc:"The mechanism of the connections: null, that is none."`
}
