// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// sending has peers send until stop.
func sending(peers ...*peer) (stop func()) {
	end := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				for _, p := range peers {
					_, _ = p.nc.Write(frame(wire.TypePong, nil))
				}
			case <-end:
				return
			}
		}
	})
	return func() { close(end); all.Wait() }
}

// A broker that takes little at a time keeps its connection, though it answers nothing
// and one write takes longer than the limit of silence; so does one that takes nothing for
// a while and sends. One that does neither loses it.
func TestSlowBroker(t *testing.T) {
	t.Parallel()
	const silence = 4 * time.Second
	begin := func(t *testing.T) (*Conn, *peer, *peer) {
		t.Helper()
		srv := serve(t)
		s := subjectOf(t, Config{Address: srv.address()}, func(c *Client) { c.times.ping, c.times.silence = 50*time.Millisecond, silence })
		c, link, p := brokerOf(t, srv, s)
		c.Producer(producer{newHeard()})
		_ = p.nc.(*net.TCPConn).SetReadBuffer(64 << 10)
		_ = p.nc.SetDeadline(time.Time{})
		_ = link.nc.SetDeadline(time.Time{})
		for range 16 { // more than the buffers of a connection hold
			c.Send(func(dst []byte) []byte { return append(dst, make([]byte, 1<<20)...) })
		}
		return c, link, p
	}
	t.Run("takes little", func(t *testing.T) {
		t.Parallel()
		c, link, p := begin(t)
		stop := sending(link)
		defer stop()
		little := make([]byte, 4<<10) // so that a write of 256 KiB takes longer than silence
		for until := time.Now().Add(2 * silence); time.Now().Before(until); time.Sleep(80 * time.Millisecond) {
			if _, err := p.nc.Read(little); err != nil {
				t.Fatalf("the connection has ended: %v", c.Err())
			}
		}
		if err := c.Err(); err != nil {
			t.Error(err)
		}
	})
	t.Run("takes nothing and sends", func(t *testing.T) {
		t.Parallel()
		c, link, p := begin(t)
		stop := sending(link, p)
		defer stop()
		select {
		case <-c.Done():
			t.Error(c.Err())
		case <-time.After(2 * silence):
		}
	})
	t.Run("does neither", func(t *testing.T) {
		t.Parallel()
		c, link, _ := begin(t)
		stop := sending(link)
		defer stop()
		within(t, "the end", c.Done())
		if err, ok := errors.AsType[*LostError](c.Err()); !ok || !errors.Is(err.Reason, errStuck) {
			t.Errorf("it has ended with %v; want %v", c.Err(), errStuck)
		}
	})
}
