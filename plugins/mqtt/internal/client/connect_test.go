// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/freeport"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// read is a CONNECT as the library reads it.
func read(t *testing.T, p packet.Packet) *packets.Connect {
	t.Helper()
	c := &packets.Connect{Properties: &packets.Properties{}}
	if err := c.Unpack(bytes.NewBuffer(p.Body)); err != nil {
		t.Fatal(err)
	}
	return c
}

// Clean start counts for the first connection. Where the server keeps a session,
// later ones resume it; where it is to keep none, none is resumed.
func TestCleanStart(t *testing.T) {
	for _, c := range []struct {
		clean  bool
		expiry uint32
		want   []bool
	}{
		{true, 0, []bool{true, true, true}},
		{true, 60, []bool{true, false, false}},
		{false, 60, []bool{false, false, false}},
		{false, 0, []bool{false, false, false}},
	} {
		t.Run(fmt.Sprintf("clean %v, expiry %d", c.clean, c.expiry), func(t *testing.T) {
			srv := serve(t)
			s := subjectOf(t, Config{Address: srv.address(), Connect: packet.ConnectParams{CleanStart: c.clean, SessionExpiry: c.expiry, KeepAlive: 60}})
			started := s.start(t)
			for i, want := range c.want {
				p := srv.accept()
				got := read(t, p.expect(packet.TypeConnect))
				if got.CleanStart != want || got.ClientID != "subject" || got.KeepAlive != 60 {
					t.Errorf("CONNECT %d: clean start %v, want %v, of %q, keep alive %d", i, got.CleanStart, want, got.ClientID, got.KeepAlive)
				}
				if i == 0 {
					p.raw(refusal(packet.CodeBusy)) // not a first connection yet
					p = srv.accept()
					if got := read(t, p.expect(packet.TypeConnect)); got.CleanStart != want {
						t.Errorf("CONNECT behind a refusal: clean start %v", got.CleanStart)
					}
				}
				p.raw(connack)
				within(t, "the link", s.ups)
				p.nc.Close()
			}
			if err := within(t, "the start", started); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// passing are the codes behind which a CONNECT is tried again.
var passing = map[byte]bool{0x88: true, 0x89: true, 0x97: true, 0x9F: true}

// M-05: a refusal that will not change ends the start with its reason in
// words, and there are no further attempts. The others are tried again.
func TestM05Refusals(t *testing.T) {
	for code := 0x80; code <= 0xA2; code++ {
		if strings.HasPrefix(packet.Word(packet.TypeConnack, byte(code)), "unknown") {
			continue
		}
		t.Run(packet.Word(packet.TypeConnack, byte(code)), func(t *testing.T) {
			srv := serve(t)
			s := subjectOf(t, Config{Address: srv.address()})
			started := s.start(t)
			p := srv.accept()
			p.expect(packet.TypeConnect)
			p.raw(refusal(byte(code)))
			if passing[byte(code)] {
				srv.welcome()
				if err := within(t, "the start", started); err != nil {
					t.Error(err)
				}
				return
			}
			err := within(t, "the start", started)
			f, ok := errors.AsType[*core.Fault](err)
			if !ok || f.Transient || f.Code == core.FaultInternal || f.Code == core.FaultUnspecified {
				t.Fatalf("the start says %v", err)
			}
			for _, want := range []string{packet.Word(packet.TypeConnack, byte(code)), "subject", srv.address().String()} {
				if !strings.Contains(f.Message, want) {
					t.Errorf("%q is missing in %s", want, f.Message)
				}
			}
			if len(f.Diagnostics) == 0 || f.Diagnostics[0].Fix == "" {
				t.Errorf("it says not what to do: %v", f)
			}
			if _, ok := p.next(); ok {
				t.Error("something comes behind the refusal")
			}
			within(t, "its end", s.done)
			srv.nobody()
			if len(s.fatals) != 0 {
				t.Error("Fatal is called for what Start returns")
			}
		})
	}
}

// ended are the codes of a DISCONNECT behind which there is no further
// connection.
var ended = map[byte]core.FaultCode{
	0x87: core.FaultDenied, 0x8A: core.FaultDenied, 0x8C: core.FaultDenied, 0x8E: core.FaultConflict,
	0x9A: core.FaultUnsupported, 0x9B: core.FaultUnsupported, 0x9C: core.FaultUnavailable, 0x9D: core.FaultUnavailable,
	0x9E: core.FaultUnsupported, 0xA1: core.FaultUnsupported, 0xA2: core.FaultUnsupported,
}

// A session that another client has taken over is left to it, as are the
// other ends that a next connection would meet as well.
func TestServersDisconnect(t *testing.T) {
	for code := range 0xA3 {
		if strings.HasPrefix(packet.Word(packet.TypeDisconnect, byte(code)), "unknown") || code > 0 && code < 0x80 {
			continue
		}
		t.Run(packet.Word(packet.TypeDisconnect, byte(code)), func(t *testing.T) {
			srv := serve(t)
			s := subjectOf(t, Config{Address: srv.address()})
			started := s.start(t)
			p := srv.welcome()
			if err := within(t, "the start", started); err != nil {
				t.Fatal(err)
			}
			within(t, "the link", s.ups)
			p.raw(publish + farewell(byte(code)))
			if err := within(t, "its end", s.downs); !strings.Contains(err.Error(), packet.Word(packet.TypeDisconnect, byte(code))) {
				t.Errorf("the link ends by: %v", err)
			}
			if q := within(t, "the packet before it", s.packets); q.typ != packet.TypePublish {
				t.Errorf("%v", q)
			}
			if want, fatal := ended[byte(code)]; fatal {
				faultWith(t, within(t, "the fault", s.fatals), want, packet.Word(packet.TypeDisconnect, byte(code)), "subject", srv.address().String())
				within(t, "its end", s.done)
				srv.nobody()
				return
			}
			srv.welcome()
			if l := within(t, "the next link", s.ups); l.Number() != 2 {
				t.Errorf("it is number %d", l.Number())
			}
		})
	}
}

func TestTakenOverSaysWhatToDo(t *testing.T) {
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address(), Connect: packet.ConnectParams{ClientID: "press-4"}})
	started := s.start(t)
	p := srv.welcome()
	within(t, "the start", started)
	p.raw("\xe0\x0e\x8e\x0c\x1f\x00\x09elsewhere")
	faultWith(t, within(t, "the fault", s.fatals), core.FaultConflict, "press-4", "session taken over (0x8E)", "elsewhere", "client_id", "identifier of its own")
}

// What answers a CONNECT in another way is no MQTT 5 server, and will not be one
// at the next attempt.
func TestForeignServers(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		words  []string
	}{
		"HTTP":                             {"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", []string{"PUBACK", "flags", "MQTT 5", "mqtts://"}},
		"SSH":                              {"SSH-2.0-OpenSSH_9.6\r\n", []string{"MQTT 5"}},
		"a TLS alert":                      {"\x15\x03\x03\x00\x02\x02\x50", []string{"mqtts://"}},
		"zeros":                            {strings.Repeat("\x00", 64), []string{"type 0"}},
		"ones":                             {strings.Repeat("\xff", 64), []string{"flags"}},
		"3.1.1, refused":                   {"\x20\x02\x00\x01", []string{"unsupported protocol version", "name a server that speaks MQTT 5"}},
		"3.1.1, accepted":                  {"\x20\x02\x00\x00", []string{"unsupported protocol version"}},
		"PUBLISH first":                    {publish, []string{"PUBLISH"}},
		"AUTH":                             {"\xf0\x00", []string{"AUTH"}},
		"CONNECT":                          {"\x10\x10\x00\x04MQTT\x05\x00\x00\x00\x00\x00\x03abc", []string{"CONNECT"}},
		"an empty CONNACK":                 {"\x20\x00", []string{"CONNACK"}},
		"a CONNACK with flags":             {"\x2f\x03\x00\x00\x00", []string{"CONNACK"}},
		"properties beyond the end":        {"\x20\x03\x00\x00\x7f", []string{"CONNACK"}},
		"a session where a new one begins": {resumed, []string{"session"}},
		"a packet beyond the limit":        {"\x20\xff\xff\xff\x7f", []string{"limit is 1048576"}},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t)
			s := subjectOf(t, Config{Address: srv.address(), Connect: packet.ConnectParams{CleanStart: true, MaxPacket: 1 << 20}})
			started := s.start(t)
			p := srv.accept()
			p.expect(packet.TypeConnect)
			p.raw(c.answer)
			faultWith(t, within(t, "the start", started), core.FaultUnsupported, append(c.words, "subject", srv.address().String())...)
			within(t, "its end", s.done)
			srv.nobody()
		})
	}
}

// Behind the first connection something else may answer for a while.
func TestForeignServerLater(t *testing.T) {
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address()})
	started := s.start(t)
	p := srv.welcome()
	if err := within(t, "the start", started); err != nil {
		t.Fatal(err)
	}
	for _, answer := range []string{"HTTP/1.1 503 Service Unavailable\r\n\r\n", "\x20\x02\x00\x00"} {
		p.nc.Close()
		p = srv.accept()
		p.expect(packet.TypeConnect)
		p.raw(answer)
	}
	p.nc.Close()
	srv.welcome()
	within(t, "the first connection", s.ups)
	within(t, "the next connection", s.ups)
	if len(s.fatals) > 0 {
		t.Errorf("the end: %v", <-s.fatals)
	}
}

// What may be another at the next attempt is tried again.
func TestAttemptsThatPass(t *testing.T) {
	for name, meet := range map[string]func(p *peer){
		"hangs up at once":           func(p *peer) {},
		"hangs up behind CONNECT":    func(p *peer) { p.expect(packet.TypeConnect) },
		"hangs up within CONNACK":    func(p *peer) { p.expect(packet.TypeConnect); p.raw(connack[:3]) },
		"resets":                     func(p *peer) { p.nc.(*net.TCPConn).SetLinger(0) },
		"shuts down instead":         func(p *peer) { p.expect(packet.TypeConnect); p.raw(farewell(packet.CodeShuttingDown)) },
		"a word of its own: too bad": func(p *peer) { p.expect(packet.TypeConnect); p.raw("\x20\x08\x00\x89\x05\x1f\x00\x02no") },
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t)
			s := subjectOf(t, Config{Address: srv.address()})
			started := s.start(t)
			for range 3 {
				p := srv.accept()
				meet(p)
				p.nc.Close()
			}
			srv.welcome()
			if err := within(t, "the start", started); err != nil {
				t.Error(err)
			}
			if n := strings.Count(s.log.String(), "connection not made"); n != 1 {
				t.Errorf("%d lines about three attempts, want one:\n%s", n, s.log)
			}
		})
	}
}

// The start's time is over: it says why nothing came of it, and nothing is left.
func TestStartGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		meet  func(p *peer)
		words []string
	}{
		"refused for now":   {func(p *peer) { p.expect(packet.TypeConnect); p.raw(refusal(packet.CodeUnavailable)) }, []string{"server unavailable (0x88)"}},
		"silent, and again": {func(p *peer) { p.silent() }, []string{"not connected within 20ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t)
			s := subjectOf(t, Config{Address: srv.address(), ConnectTimeout: 20 * time.Millisecond})
			ctx, cancel := context.WithCancel(t.Context())
			result := make(chan error, 1)
			go func() { result <- s.Start(ctx) }()
			for range 3 {
				p := srv.accept()
				c.meet(p)
				p.nc.Close()
			}
			cancel()
			faultWith(t, within(t, "the start", result), core.FaultUnavailable, append(c.words, "subject", srv.address().String())...)
			within(t, "its end", s.done)
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		s := subjectOf(t, Config{Address: Address{Host: "127.0.0.1", Port: uint16(freeport.Hold(t))}})
		faultWith(t, s.fails(t), core.FaultUnavailable, "connection refused")
	})
	address := Address{Host: "broker", Port: 1883}
	t.Run("says why in time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := subjectOf(t, Config{Address: address, Dial: func(context.Context) (net.Conn, error) { return nil, syscall.ECONNREFUSED }})
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			faultWith(t, s.Start(ctx), core.FaultUnavailable, "connection refused")
			if ctx.Err() != nil {
				t.Error("its caller has gone by then")
			}
		})
	})
	t.Run("silent at first", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := subjectOf(t, Config{Address: address, Dial: func(context.Context) (net.Conn, error) {
				a, b := net.Pipe()
				peerOf(t, b)
				return a, nil
			}})
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			faultWith(t, s.Start(ctx), core.FaultTimeout, "no answer yet", address.String())
		})
	})
}

// fails starts it until it has told of an attempt that failed, and returns what the
// start says then.
func (s *subject) fails(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- s.Start(ctx) }()
	eventually(t, "an attempt has failed", func() bool { return strings.Contains(s.log.String(), "connection not made") })
	cancel()
	return within(t, "the start", result)
}

// silent reads what comes until the client ends the connection.
func (p *peer) silent() {
	p.t.Helper()
	for there := true; there; {
		_, there = p.next()
	}
}

// A CONNACK that comes byte by byte, with packets right behind it.
func TestSlowHandshake(t *testing.T) {
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address()})
	s.onUp = func(l *Link) { l.Write(packet.AppendPing) }
	started := s.start(t)
	p := srv.accept()
	p.expect(packet.TypeConnect)
	all := "\x20\x13\x00\x00\x10\x21\x00\x07\x24\x01\x25\x00\x27\x00\x00\x10\x00\x28\x00\x29\x00" + publish + publish
	for i := range len(all) {
		p.raw(all[i : i+1])
	}
	if err := within(t, "the start", started); err != nil {
		t.Fatal(err)
	}
	l := within(t, "the link", s.ups)
	want := Limits{ReceiveMaximum: 7, MaximumQoS: 1, MaxPacket: 4096, Shared: true}
	if got := l.Server(); got != want {
		t.Errorf("the limits are %+v, want %+v", got, want)
	}
	p.expect(packet.TypePingreq) // what Up has written
	for range 2 {
		if q := within(t, "a packet", s.packets); q.typ != packet.TypePublish || q.body != publish[2:] {
			t.Errorf("%+v", q)
		}
	}
}

// Packets that come in one piece with the CONNACK are not forgotten, nor waited for.
func TestPacketsBehindConnack(t *testing.T) {
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address()})
	s.start(t)
	p := srv.accept()
	p.expect(packet.TypeConnect)
	p.raw(connack + publish + publish[:3])
	if q := within(t, "the packet", s.packets); q.body != publish[2:] {
		t.Errorf("%+v", q)
	}
	p.raw(publish[3:])
	if q := within(t, "the packet in two pieces", s.packets); q.body != publish[2:] {
		t.Errorf("%+v", q)
	}
}

// Variables that name a proxy are not obeyed.
func TestNoProxy(t *testing.T) {
	trap := serve(t)
	for _, name := range []string{"all_proxy", "http_proxy", "https_proxy", "mqtt_proxy", "socks_proxy"} {
		t.Setenv(name, "socks5://"+trap.ln.Addr().String())
		t.Setenv(strings.ToUpper(name), "socks5://"+trap.ln.Addr().String())
	}
	t.Setenv("no_proxy", "")
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address()})
	started := s.start(t)
	srv.welcome()
	if err := within(t, "the start", started); err != nil {
		t.Fatal(err)
	}
	trap.nobody()
}
