// SPDX-License-Identifier: Apache-2.0

package client

import (
	"net"
	"testing"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// echoing answers each PINGREQ with a PINGRESP, as fast as it can, or only reads.
func echoing(b *testing.B, answers bool) (net.Conn, func()) {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		buf := make([]byte, 256<<10)
		for {
			n, err := nc.Read(buf)
			if err != nil {
				return
			}
			if answers {
				nc.Write(buf[:n])
			}
		}
	}()
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	return nc, func() { nc.Close(); ln.Close(); <-done }
}

// BenchmarkWrite is what a packet of 512 bytes costs its publisher, and the link, when
// packets come one by one as fast as they are taken.
func BenchmarkWrite(b *testing.B) {
	nc, end := echoing(b, false)
	defer end()
	l := newLink(1, nc, false, Limits{}, defaultTimes())
	l.running.Go(l.writing)
	l.uncork()
	room := make(chan struct{}, 1)
	l.OnWritten(func() {
		select {
		case room <- struct{}{}:
		default:
		}
	})
	body := make([]byte, 512)
	b.ReportAllocs()
	b.SetBytes(512)
	for b.Loop() {
		l.Write(func(dst []byte) []byte { return append(dst, body...) })
		for l.Waiting() > 1<<20 {
			<-room
		}
	}
	l.lose(ErrLost)
	l.settle()
}

// BenchmarkRoundTrip is one packet there and one back, with nothing else going on:
// "raw" writes and reads a plain connection.
func BenchmarkRoundTrip(b *testing.B) {
	b.Run("raw", func(b *testing.B) {
		nc, end := echoing(b, true)
		defer end()
		buf := make([]byte, 64)
		for b.Loop() {
			nc.Write(buf[:4])
			nc.Read(buf)
		}
	})
	b.Run("link", func(b *testing.B) {
		nc, end := echoing(b, true)
		defer end()
		l := newLink(1, nc, false, Limits{}, defaultTimes())
		l.running.Go(l.writing)
		h := &bouncing{back: make(chan struct{}, 1)}
		l.running.Go(func() { l.reading(packet.NewReader(nc, 0), h) })
		l.uncork()
		b.ReportAllocs()
		for b.Loop() {
			l.Write(func(dst []byte) []byte { return packet.AppendAck(dst, packet.TypePuback, 1, 0) })
			<-h.back
		}
		l.lose(ErrLost)
		l.settle()
	})
}

// bouncing tells of each packet.
type bouncing struct {
	recorder
	back chan struct{}
}

func (h *bouncing) Packet(*Link, *packet.Packet) { h.back <- struct{}{} }
