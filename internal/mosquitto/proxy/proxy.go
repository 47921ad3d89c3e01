// SPDX-License-Identifier: Apache-2.0

// Package proxy stands between an MQTT client and its broker in tests: see
// tcpproxy.
package proxy

import (
	"bufio"
	"errors"
	"io"
	"testing"

	"github.com/longshore-go/longshore/internal/tcpproxy"
)

// The types of packets [MQTT 5.0, 2.1.2].
const (
	Connect    = 1
	Connack    = 2
	Publish    = 3
	Puback     = 4
	Pubrec     = 5
	Pubrel     = 6
	Pubcomp    = 7
	Subscribe  = 8
	Suback     = 9
	Pingreq    = 12
	Pingresp   = 13
	Disconnect = 14
)

// Direction is where a packet goes.
type Direction = tcpproxy.Direction

// Place says where in the packet that a cut waits for the connection is cut.
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

// Start starts a proxy for a broker at a host and port.
func Start(tb testing.TB, target string) *Proxy {
	tb.Helper()
	return &Proxy{tcpproxy.Start(tb, target, read)}
}

// URL returns its address as a URL, without a user.
func (p *Proxy) URL() string { return "mqtt://" + p.Address() }

// read reads one packet, whose fixed header is a byte and a length of up to four
// bytes of seven bits each, the lowest first [MQTT 5.0, 2.1].
func read(from *bufio.Reader, _ string) (packet []byte, kind int, err error) {
	first, err := from.ReadByte()
	if err != nil {
		return nil, 0, err
	}
	packet = []byte{first}
	length := 0
	for shift := 0; ; shift += 7 {
		b, err := from.ReadByte()
		if err != nil {
			return nil, 0, err
		}
		packet = append(packet, b)
		length |= int(b&0x7f) << shift
		if b&0x80 == 0 {
			break
		}
		if shift == 21 {
			return nil, 0, errors.New("a length of more than four bytes")
		}
	}
	head := len(packet)
	packet = append(packet, make([]byte, length)...)
	_, err = io.ReadFull(from, packet[head:])
	return packet, int(first >> 4), err
}
