// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/mosquitto/proxy"
)

// Packets of a client "c" that keeps no session, of MQTT 5.0.
var (
	connect = []byte{0x10, 14, 0, 4, 'M', 'Q', 'T', 'T', 5, 2, 0, 60, 0, 0, 1, 'c'}
	ping    = []byte{0xc0, 0}
	publish = []byte{0x32, 9, 0, 1, 't', 0, 1, 0, 'x', 'y', 'z'}
)

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

// dial connects through the proxy.
func dial(t *testing.T, p *proxy.Proxy) net.Conn {
	t.Helper()
	nc, err := new(net.Dialer).DialContext(t.Context(), "tcp4", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return nc
}

// says writes a packet and reads the first byte of the answer.
func says(t *testing.T, nc net.Conn, packet []byte, want byte) {
	t.Helper()
	if _, err := nc.Write(packet); err != nil {
		t.Fatal(err)
	}
	if got := answer(t, nc); got != want {
		t.Fatalf("the answer is of %#x, want %#x", got, want)
	}
}

func answer(t *testing.T, nc net.Conn) byte {
	t.Helper()
	head := make([]byte, 2)
	if _, err := io.ReadFull(nc, head); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, nc, int64(head[1])); err != nil {
		t.Fatal(err)
	}
	return head[0]
}

// over checks that the connection is closed by the other end.
func over(t *testing.T, nc net.Conn) {
	t.Helper()
	if n, err := nc.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %d, %v", n, err)
	}
}

func start(t *testing.T) (*mosquitto.Broker, *proxy.Proxy) {
	t.Helper()
	b := mosquitto.Start(t, mosquitto.Config{})
	return b, proxy.Start(t, b.Address())
}

func TestCounts(t *testing.T) {
	_, p := start(t)
	nc := dial(t, p)
	says(t, nc, connect, 0x20)
	says(t, nc, ping, 0xd0)
	says(t, nc, ping, 0xd0)
	p.Await(proxy.ToClient, proxy.Pingresp, 2)
	if c, pings := p.Count(proxy.ToServer, proxy.Connect), p.Count(proxy.ToServer, proxy.Pingreq); c != 1 || pings != 2 {
		t.Errorf("%d CONNECT, %d PINGREQ", c, pings)
	}
	p.Cut()
	over(t, nc)
	says(t, dial(t, p), connect, 0x20)
	if p.Accepted() != 2 {
		t.Errorf("%d connections", p.Accepted())
	}
	p.AwaitThat("one is left", func() bool { return p.Open() == 1 })
}

func TestCutAt(t *testing.T) {
	for name, tt := range map[string]struct {
		at      proxy.Place
		arrives int
	}{"behind": {proxy.Behind, 1}, "before": {proxy.Before, 0}, "inside": {proxy.Inside, 0}} {
		t.Run(name, func(t *testing.T) {
			b, p := start(t)
			nc := dial(t, p)
			says(t, nc, connect, 0x20)
			p.CutAt(proxy.ToServer, proxy.Publish, 2, tt.at)
			says(t, nc, publish, 0x40)
			if _, err := nc.Write(publish); err != nil {
				t.Fatal(err)
			}
			b.Await(1, "Client c ", "connect") // "closed its connection" or "disconnected"
			if got := len(b.Lines("Received PUBLISH from c")); got != 1+tt.arrives {
				t.Errorf("%d messages have arrived", got)
			}
			if got := p.Count(proxy.ToServer, proxy.Publish); got != 1+tt.arrives {
				t.Errorf("%d messages have passed", got)
			}
		})
	}
}

func TestStall(t *testing.T) {
	_, p := start(t)
	nc := dial(t, p)
	says(t, nc, connect, 0x20)
	p.Stall()
	if _, err := nc.Write(ping); err != nil {
		t.Fatal(err)
	}
	_ = nc.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := nc.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d, %v", n, err)
	}
	_ = nc.SetReadDeadline(time.Now().Add(patience))
	p.Resume()
	if got := answer(t, nc); got != 0xd0 {
		t.Errorf("the answer is of %#x", got)
	}
}

func TestHalfOpen(t *testing.T) {
	b, p := start(t)
	nc := dial(t, p)
	says(t, nc, connect, 0x20)
	p.HalfOpen()
	b.Await(1, "Client c ", "closed its connection")
	for range 3 { // goes nowhere, without an error
		if _, err := nc.Write(ping); err != nil {
			t.Fatal(err)
		}
	}
	_ = nc.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := nc.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d, %v", n, err)
	}
	says(t, dial(t, p), connect, 0x20)
}

func TestRefuse(t *testing.T) {
	_, p := start(t)
	p.Refuse()
	over(t, dial(t, p))
	p.Resume()
	says(t, dial(t, p), connect, 0x20)
}
