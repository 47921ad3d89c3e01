// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"net"
	"net/url"
	"sync"

	"github.com/eclipse/paho.golang/autopaho"
)

// buffered reads ahead, and writes what is written under its lock at once: paho
// reads a packet in several pieces, and writes it so under a lock where the
// connection has one.
type buffered struct {
	net.Conn
	in *bufio.Reader

	mu  sync.Mutex
	out []byte
}

// dialBuffered connects as autopaho does.
func dialBuffered(ctx context.Context, _ autopaho.ClientConfig, u *url.URL) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return nil, err
	}
	return &buffered{Conn: conn, in: bufio.NewReaderSize(conn, readSize)}, nil
}

// Read reads what was read ahead, or more.
func (b *buffered) Read(p []byte) (int, error) { return b.in.Read(p) }

// Lock begins a packet.
func (b *buffered) Lock() { b.mu.Lock() }

// Write takes a piece of a packet.
func (b *buffered) Write(p []byte) (int, error) {
	b.out = append(b.out, p...)
	return len(p), nil
}

// Unlock writes the packet. An error is found by the next read.
func (b *buffered) Unlock() {
	_, _ = b.Conn.Write(b.out)
	b.out = b.out[:0]
	b.mu.Unlock()
}
