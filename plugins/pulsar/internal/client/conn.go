// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// A ConsumerHandler is who gets what a broker sends to one consumer. Its methods are
// called by the goroutine that reads the connection, one at a time, and must not block.
type ConsumerHandler interface {
	// Entry takes a MESSAGE. Its command is valid during the call, its payload for good.
	Entry(m *wire.Delivery)
	// Pause says that nothing more has come for now: what was gathered is to be passed on.
	Pause()
	// Active says whose turn it is on Failover.
	Active(now bool)
	// Closed says that the broker has closed the consumer, which is registered no more.
	Closed()
	// Lost says that the connection has ended. It is the last call, from any goroutine.
	Lost(err error)
}

// A ProducerHandler is who gets what a broker sends to one producer. Its methods are
// called by the goroutine that reads the connection, one at a time, and must not block.
type ProducerHandler interface {
	// Receipt takes a SEND_RECEIPT.
	Receipt(r wire.SendReceipt)
	// Failed takes a SEND_ERROR.
	Failed(sequence uint64, code wire.ServerError, message string)
	// Pause says that nothing more has come for now.
	Pause()
	// Room says that the connection takes more, after Room of the Conn was false.
	Room()
	// Closed says that the broker has closed the producer, which is registered no more.
	Closed()
	// Lost says that the connection has ended. It is the last call, from any goroutine.
	Lost(err error)
}

// Conn is a connection to the broker that serves a topic. It belongs to the client, and
// may be used from any goroutine.
type Conn struct{}

// Broker returns a connection to the broker that serves a topic, given in full: it is
// looked up, and connected to unless there is a connection that is free. Errors are for
// Explain.
func (c *Client) Broker(ctx context.Context, topic string) (*Conn, error) {
	return nil, errDown
}

// Consumer registers a consumer and returns its id.
func (c *Conn) Consumer(h ConsumerHandler) uint64 { return 0 }

// Producer registers a producer and returns its id.
func (c *Conn) Producer(h ProducerHandler) uint64 { return 0 }

// Forget ends that anything is passed to a consumer, or a producer: when it returns, no
// call to its handler is under way, unless it is called by one.
func (c *Conn) ForgetConsumer(id uint64) {}

// ForgetProducer is ForgetConsumer for producers.
func (c *Conn) ForgetProducer(id uint64) {}

// Ask sends a request and waits for its answer, which is of a type. A refusal is a
// *ServerError; where the connection ends first the error says so.
func (c *Conn) Ask(ctx context.Context, want wire.Type, request func(dst []byte, number uint64) []byte) (wire.Command, error) {
	return wire.Command{}, errDown
}

// Send has frames written that build appends. It does not wait, and drops them where
// the connection has ended.
func (c *Conn) Send(build func(dst []byte) []byte) {}

// Room reports whether less than the connection's bound waits to be written. Where it
// does not, every producer of the connection hears of it when there is room again.
func (c *Conn) Room() bool { return false }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return nil }

// MaxMessageSize is the size of the largest message that its broker takes, in bytes.
func (c *Conn) MaxMessageSize() int { return defaultMaxMessage }
