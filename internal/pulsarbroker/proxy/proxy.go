// SPDX-License-Identifier: Apache-2.0

// Package proxy stands between a Pulsar client and its broker in tests: see
// tcpproxy. Lookups through it lead to it again, so that all connections of a
// client go through it.
package proxy

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/longshore-go/longshore/internal/tcpproxy"
)

// Types of commands [PulsarApi.proto, BaseCommand.Type].
const (
	Connect       = 2
	Connected     = 3
	Subscribe     = 4
	Producer      = 5
	Send          = 6
	SendReceipt   = 7
	Message       = 9
	Ack           = 10
	Flow          = 11
	Success       = 13
	Error         = 14
	CloseProducer = 15
	CloseConsumer = 16
	Ping          = 18
	Pong          = 19
	Redeliver     = 20
	Partitions    = 21 // PARTITIONED_METADATA
	Lookup        = 23
	LookupResult  = 24
	Seek          = 28
	AckResponse   = 38
)

// Direction is where a command goes.
type Direction = tcpproxy.Direction

// Place says where in the command that a cut waits for the connection is cut.
type Place = tcpproxy.Place

// The directions and places.
const (
	ToServer = tcpproxy.ToServer
	ToClient = tcpproxy.ToClient
	Behind   = tcpproxy.Behind
	Before   = tcpproxy.Before
	Inside   = tcpproxy.Inside
)

// Proxy is a proxy, which ends with the test.
type Proxy struct{ *tcpproxy.Proxy }

// Start starts a proxy for a broker at a host and port, without TLS.
func Start(tb testing.TB, target string) *Proxy {
	tb.Helper()
	return &Proxy{tcpproxy.Start(tb, target, read)}
}

// StartChanging is Start with frames that change may change, but for their sizes. It is
// called by several goroutines.
func StartChanging(tb testing.TB, target string, change func(kind int, frame []byte)) *Proxy {
	tb.Helper()
	return &Proxy{tcpproxy.Start(tb, target, func(from *bufio.Reader, own string) ([]byte, int, error) {
		frame, kind, err := read(from, own)
		if err == nil {
			change(kind, frame)
		}
		return frame, kind, err
	})}
}

// URL returns its address as a URL.
func (p *Proxy) URL() string { return "pulsar://" + p.Address() }

// Fields of commands.
const (
	baseType         = 1 // BaseCommand.type
	baseLookupResult = 24
	brokerServiceURL = 1 // CommandLookupTopicResponse.brokerServiceUrl
)

// most is more than any frame of a broker with its default limits has.
const most = 64 << 20

// read reads one frame: the size of all that follows, the size of the command, the
// command, and perhaps a message, which has a checksum of its own [Pulsar binary
// protocol, framing].
func read(from *bufio.Reader, own string) (frame []byte, kind int, err error) {
	var head [8]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, 0, err
	}
	total, size := binary.BigEndian.Uint32(head[:]), binary.BigEndian.Uint32(head[4:])
	if total > most || total < 4 || size > total-4 {
		return nil, 0, errors.New("a frame of an impossible size")
	}
	frame = append(head[:], make([]byte, total-4)...)
	if _, err := io.ReadFull(from, frame[8:]); err != nil {
		return nil, 0, err
	}
	command := frame[8 : 8+size]
	kind = typeOf(command)
	if kind == LookupResult {
		frame = redirected(command, own)
	}
	return frame, kind, nil
}

// typeOf returns the type of a command, 0 where it has none.
func typeOf(command []byte) int {
	for len(command) > 0 {
		field, wire, n := protowire.ConsumeTag(command)
		if n < 0 {
			return 0
		}
		if command = command[n:]; field == baseType && wire == protowire.VarintType {
			kind, _ := protowire.ConsumeVarint(command)
			return int(kind) //nolint:gosec // an enum
		}
		if n = protowire.ConsumeFieldValue(field, wire, command); n < 0 {
			return 0
		}
		command = command[n:]
	}
	return 0
}

// redirected returns a frame of a lookup's result that leads to own: of a field
// that is there twice, and of a message, the last counts or is merged.
func redirected(command []byte, own string) []byte {
	inner := protowire.AppendTag(nil, brokerServiceURL, protowire.BytesType)
	inner = protowire.AppendString(inner, "pulsar://"+own)
	command = protowire.AppendTag(command[:len(command):len(command)], baseLookupResult, protowire.BytesType)
	command = protowire.AppendBytes(command, inner)
	frame := make([]byte, 8, 8+len(command))
	binary.BigEndian.PutUint32(frame, uint32(4+len(command)))   //nolint:gosec // of a frame that was read
	binary.BigEndian.PutUint32(frame[4:], uint32(len(command))) //nolint:gosec // of a frame that was read
	return append(frame, command...)
}
