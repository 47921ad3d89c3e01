// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// piped is a client in a bubble of time of its own, with the server's ends of its
// connections.
func piped(t *testing.T, params packet.ConnectParams, tune ...func(*Client)) (*subject, <-chan *peer) {
	peers := make(chan *peer, 100)
	s := subjectOf(t, Config{Connect: params, Dial: func(context.Context) (net.Conn, error) {
		a, b := net.Pipe()
		peers <- peerOf(t, b)
		return a, nil
	}}, append([]func(*Client){func(c *Client) { c.times = defaultTimes() }}, tune...)...)
	return s, peers
}

// answers reads what the client sends, and answers pings where it is to. What it
// has read comes out of the channel with the time.
func (p *peer) answers(pings bool) <-chan string {
	out := make(chan string, 1000)
	began := time.Now()
	go func() {
		defer close(out)
		for {
			var q packet.Packet
			there, err := p.r.Next(&q)
			if err != nil {
				return
			}
			if !there {
				if p.r.Fill() != nil {
					return
				}
				continue
			}
			out <- fmt.Sprintf("%v %s", time.Since(began), packet.Name(q.Type))
			if q.Type == packet.TypePingreq && pings {
				p.nc.Write([]byte(pingresp))
			}
		}
	}()
	return out
}

func (p *peer) admit(answer string) {
	p.t.Helper()
	p.expect(packet.TypeConnect)
	_ = p.nc.SetReadDeadline(time.Time{})
	p.raw(answer)
}

func TestKeepAlive(t *testing.T) {
	for name, c := range map[string]struct {
		ours   uint16
		answer string
		want   string // within five minutes
	}{
		"ours":           {60, connack, "45s 1m30s 2m15s 3m0s 3m45s 4m30s"},
		"the server's":   {60, "\x20\x06\x00\x00\x03\x13\x00\x78", "1m30s 3m0s 4m30s"},
		"none":           {0, connack, ""},
		"none, it says":  {60, "\x20\x06\x00\x00\x03\x13\x00\x00", ""},
		"only it has it": {0, "\x20\x06\x00\x00\x03\x13\x00\xf0", "3m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, peers := piped(t, packet.ConnectParams{KeepAlive: c.ours})
				started := s.start(t)
				p := <-peers
				p.admit(c.answer)
				got := p.answers(true)
				<-started
				time.Sleep(5*time.Minute - time.Second)
				var pings []string
				for len(got) > 0 {
					pings = append(pings, strings.TrimSuffix(<-got, " PINGREQ"))
				}
				if g := strings.Join(pings, " "); g != c.want {
					t.Errorf("pings at %s, want %s", g, c.want)
				}
				if len(s.downs) > 0 {
					t.Errorf("the link has ended: %v", <-s.downs)
				}
				s.mustClose(t)
				for range got {
				}
			})
		})
	}
}

// Pings leave for the server's sake although it sends all the time, and for
// ours although we do.
func TestKeepAliveOfBusyLinks(t *testing.T) {
	for name, c := range map[string]struct{ reads, writes, pings bool }{
		"it sends":  {true, false, true},
		"we send":   {false, true, true},
		"both send": {true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, peers := piped(t, packet.ConnectParams{KeepAlive: 60})
				s.start(t)
				p := <-peers
				p.admit(connack)
				got := p.answers(true)
				l := <-s.ups
				for range 300 {
					time.Sleep(time.Second)
					if c.reads {
						p.raw(publish)
					}
					if c.writes {
						l.Write(func(b []byte) []byte { return append(b, publish...) })
					}
				}
				s.mustClose(t)
				pings := 0
				for line := range got {
					if strings.HasSuffix(line, "PINGREQ") {
						pings++
					}
				}
				if want := 6; c.pings && pings != want || !c.pings && pings != 0 {
					t.Errorf("%d pings", pings)
				}
				if c := len(s.downs); c != 1 {
					t.Errorf("%d links have ended", c)
				}
			})
		})
	}
}

// A server that is gone without a word is found out, whether it reads what is
// sent or not. What it sends in place of an answer counts as one.
func TestStalledServer(t *testing.T) {
	for name, c := range map[string]struct {
		keepAlive uint16
		reads     bool
		sends     string
		after     time.Duration // 0 = never
	}{
		"reads and says nothing":       {60, true, "", 75 * time.Second},
		"does not even read":           {60, false, "", 75 * time.Second},
		"a short time":                 {4, true, "", 8 * time.Second},
		"something comes all the time": {60, true, publish, 0},
		"half a packet, for ever":      {60, true, "\x30\xff\xff\x3f\x00\x01t\x00", 75 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, peers := piped(t, packet.ConnectParams{KeepAlive: c.keepAlive})
				s.start(t)
				p := <-peers
				p.admit(connack)
				<-s.ups
				began := time.Now()
				if c.reads {
					p.answers(false)
				}
				if c.sends != "" && c.after != 0 {
					p.raw(c.sends)
				}
				if c.after == 0 {
					for range 600 {
						time.Sleep(time.Second)
						p.raw(c.sends)
					}
					if len(s.downs) > 0 {
						t.Errorf("the link has ended: %v", <-s.downs)
					}
					s.mustClose(t)
					return // what it has sent is read by answers
				}
				err := <-s.downs
				if d := time.Since(began); d != c.after {
					t.Errorf("ended after %v, want %v: %v", d, c.after, err)
				}
				if !strings.Contains(err.Error(), "no answer to a ping") && (c.reads || !strings.Contains(err.Error(), "has read nothing")) {
					t.Errorf("because: %v", err)
				}
				p = <-peers
				p.admit(connack)
				p.answers(true)
				<-s.ups
				s.mustClose(t)
			})
		})
	}
}

// The pauses between attempts double up to 5 s, and begin again behind a link that
// lived for 10 s.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, peers := piped(t, packet.ConnectParams{})
		go s.Start(t.Context())
		last := time.Now()
		pause := func() time.Duration {
			p := <-peers
			d := time.Since(last)
			p.nc.Close()
			last = time.Now()
			return d
		}
		pause()
		steps := []time.Duration{100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000}
		for i, step := range steps {
			if d, step := pause(), step*time.Millisecond; d < step/2 || d > step {
				t.Errorf("pause %d is %v, want half of %v to %v", i, d, step, step)
			}
		}
		p := <-peers
		for _, c := range []struct{ lived, least, most time.Duration }{
			{9 * time.Second, 2500 * time.Millisecond, 5 * time.Second},
			{10 * time.Second, 50 * time.Millisecond, 100 * time.Millisecond},
			{time.Second, 100 * time.Millisecond, 200 * time.Millisecond},
		} {
			p.admit(connack)
			<-s.ups
			time.Sleep(c.lived)
			p.nc.Close()
			<-s.downs
			last = time.Now()
			p = <-peers
			if d := time.Since(last); d < c.least || d > c.most {
				t.Errorf("behind a link of %v a pause of %v, want %v to %v", c.lived, d, c.least, c.most)
			}
		}
		p.nc.Close()
		s.mustClose(t)
	})
}
