// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
	"golang.org/x/sys/unix"

	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// buffered is a connection that is read in large pieces, for the library.
type buffered struct {
	net.Conn
	r *bufio.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.r.Read(p) }

// socketPair is two ends of a Unix connection of the kernel.
func socketPair(b *testing.B) (ours, peer net.Conn) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		b.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "")
		if ends[i], err = net.FileConn(file); err != nil {
			b.Fatal(err)
		}
		_ = file.Close()
		b.Cleanup(func() { _ = ends[i].Close() })
	}
	return ends[0], ends[1]
}

// flood does the handshake of a peer and writes batches until it cannot.
func flood(peer net.Conn, one []byte) {
	c, err := open(peer, zmtp.Options{Type: zmq4.Push})
	if err != nil {
		return
	}
	batch := []byte(strings.Repeat(string(one), max(1, 256<<10/len(one))))
	for {
		if _, err := c.NetConn().Write(batch); err != nil {
			return
		}
	}
}

// BenchmarkReader is messages read from a peer that writes as fast as it can:
// by this package, and by the library's Conn as it is and over a buffer.
func BenchmarkReader(b *testing.B) {
	for _, size := range []int{64, 512, 16 << 10} {
		one := frames("orders", "", strings.Repeat("p", size))
		b.Run(fmt.Sprintf("%dB/own", size), func(b *testing.B) {
			ours, peer := socketPair(b)
			go flood(peer, one)
			c, err := open(ours, zmtp.Options{Type: zmq4.Pull})
			if err != nil {
				b.Fatal(err)
			}
			var f zmtp.Frames
			var loan zmtp.Loan
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				ok, err := c.Reader().Next(&f)
				for !ok && err == nil {
					c.Reader().Lend(&loan)
					loan.Release()
					if err = c.Reader().Fill(); err == nil {
						ok, err = c.Reader().Next(&f)
					}
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			_ = ours.Close()
		})
		for name, wrap := range map[string]func(net.Conn) net.Conn{
			"library":          func(c net.Conn) net.Conn { return c },
			"library-buffered": func(c net.Conn) net.Conn { return buffered{c, bufio.NewReaderSize(c, 64<<10)} },
		} {
			b.Run(fmt.Sprintf("%dB/%s", size, name), func(b *testing.B) {
				ours, peer := socketPair(b)
				go flood(peer, one)
				c, err := zmq4.Open(wrap(ours), null.Security(), zmq4.Pull, nil, false, nil)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.RecvMsg(); err != nil {
						b.Fatal(err)
					}
				}
				_ = ours.Close()
			})
		}
	}
}
