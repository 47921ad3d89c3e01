// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// stranger is a peer whose bytes the test writes.
type stranger struct {
	t    *testing.T
	nc   net.Conn
	conn *zmtp.Conn // nil before the handshake
}

// reach opens a connection to an endpoint and says nothing.
func reach(t *testing.T, address string) *stranger {
	t.Helper()
	network, place, _ := strings.Cut(address, "://")
	if network == "ipc" {
		network = "unix"
	}
	nc, err := net.Dial(network, place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(servicetest.Limit))
	return &stranger{t: t, nc: nc}
}

// meet opens a connection to an endpoint and introduces itself.
func meet(t *testing.T, address string, kind zmq4.SocketType, identity string) *stranger {
	t.Helper()
	p := reach(t, address)
	ctx, cancel := context.WithTimeout(t.Context(), servicetest.Limit)
	defer cancel()
	var err error
	if p.conn, err = zmtp.Open(ctx, p.nc, zmtp.Options{Type: kind, Identity: []byte(identity), MaxMessage: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	_ = p.nc.SetDeadline(time.Now().Add(servicetest.Limit))
	return p
}

// say writes the frames of one message.
func (p *stranger) say(frames ...string) {
	p.t.Helper()
	var b []byte
	for i, f := range frames {
		b = zmtp.AppendFrame(b, []byte(f), i < len(frames)-1)
	}
	p.raw(string(b))
}

// raw writes bytes.
func (p *stranger) raw(b string) {
	p.t.Helper()
	if _, err := io.WriteString(p.nc, b); err != nil {
		p.t.Fatal(err)
	}
}

// hears returns the frames of the next message, or the name and the body of the
// next command; an error is the end of the connection.
func (p *stranger) hears() (command string, frames []string, err error) {
	r := p.conn.Reader()
	var f zmtp.Frames
	for {
		ok, err := r.Next(&f)
		if err != nil {
			return "", nil, err
		}
		if ok {
			break
		}
		if err := r.Fill(); err != nil {
			return "", nil, err
		}
	}
	defer r.Spent()
	if f.Command != "" {
		return f.Command, []string{string(f.Body)}, nil
	}
	for _, frame := range f.List {
		frames = append(frames, string(frame))
	}
	return "", frames, nil
}

// expect fails unless the next message has these frames.
func (p *stranger) expect(want ...string) {
	p.t.Helper()
	command, got, err := p.hears()
	if err != nil || command != "" {
		p.t.Fatalf("heard %q %q, %v; want %q", command, got, err, want)
	}
	servicetest.Expect(p.t, "frames", got, want...)
}

// dropped fails unless the endpoint ends the connection.
func (p *stranger) dropped(what string) {
	p.t.Helper()
	if _, err := io.Copy(io.Discard, p.nc); errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Errorf("%s: the connection is still open", what)
	}
}

// deliveries receives until the endpoint ends, as a host does, and returns what
// comes as text; an undecodable message ends with a question mark.
func (b *bench) deliveries(s pluginapi.Subscription) <-chan string {
	texts := make(chan string, 1024)
	ctx, cancel := context.WithCancel(b.ctx)
	var receiving sync.WaitGroup
	receiving.Go(func() {
		for {
			batch, err := s.Receive(ctx, servicetest.Plenty)
			for i, text := range servicetest.Texts(batch.Deliveries) {
				if batch.Deliveries[i].Undecodable != nil {
					text += "?"
				}
				texts <- text
			}
			if batch.Memory != nil {
				batch.Memory.Release()
			}
			if err != nil {
				return
			}
		}
	})
	b.t.Cleanup(func() { cancel(); receiving.Wait() })
	return texts
}

// next is the next text of a channel.
func next(t *testing.T, texts <-chan string) string {
	t.Helper()
	limit := time.NewTimer(servicetest.Limit / 3)
	defer limit.Stop()
	select {
	case text := <-texts:
		return text
	case <-limit.C:
		t.Fatal("nothing comes")
		return ""
	}
}

// bystander is a sender that goes on while something else happens to the reader.
type bystander struct {
	reader *bench
	got    <-chan string
	sender *bench
	n      int
}

func newBystander(t *testing.T, set settings.Settings) *bystander {
	t.Helper()
	reader := connect(t, set, reading("jobs"))
	b := &bystander{reader: reader, got: reader.deliveries(reader.subscribe("jobs"))}
	b.sender = connect(t, dials(set.Pattern, reader.address()), pluginapi.Usage{})
	b.goesOn(t)
	return b
}

// goesOn fails unless a message still comes through.
func (b *bystander) goesOn(t *testing.T) {
	t.Helper()
	b.n++
	text := fmt.Sprint(b.n)
	b.sender.put(servicetest.Message("jobs", text))
	if got := next(t, b.got); got != "jobs "+text {
		t.Errorf("received %q, want what another peer sends", got)
	}
}

// One connection that breaks the rules is closed and told of with its address,
// once; nothing that it announces is taken for true, and the others go on.
func TestRulesBroken(t *testing.T) {
	for name, c := range map[string]struct {
		handshake bool
		bytes     string
		want      string
	}{
		"another protocol":       {false, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"},
		"rubbish":                {false, strings.Repeat("\x00\xff\x13", 50), "no ZMTP"},
		"a length of 2^63-1":     {true, "\x02\x7f\xff\xff\xff\xff\xff\xff\xff", "9223372036854775807"},
		"a length of 2^64-1":     {true, "\x02\xff\xff\xff\xff\xff\xff\xff\xff", "18446744073709551615"},
		"a length over its part": {true, "\x01\x01a\x02\x00\x00\x00\x00\x80\x00\x00\x00", "2147483648"},
		"reserved flags":         {true, "\x80\x01a", "reserved"},
		"a command of 1 GiB":     {true, "\x06\x00\x00\x00\x00\x40\x00\x00\x00", "a command of 1073741824 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBystander(t, binds(settings.PatternQueue, anyPort))
			p := reach(t, b.reader.address())
			if c.handshake {
				p = meet(t, b.reader.address(), zmq4.Push, "")
			}
			p.raw(c.bytes)
			p.dropped(name)
			eventually(t, "it is told of", func() bool {
				return len(b.reader.log.Lines("WARN", "peer=tcp://"+p.nc.LocalAddr().String(), c.want)) == 1
			})
			b.goesOn(t)
			b.reader.end()
			if len(b.reader.log.Lines("INFO", "in all", map[bool]string{false: "no_peer=1", true: "peers=1"}[c.handshake])) != 1 {
				t.Errorf("it is not counted: %s", b.reader.log)
			}
		})
	}
}

// Connections that say nothing keep neither a sender nor a reader from its peers.
func TestSilence(t *testing.T) {
	accepted := func(t *testing.T, limit time.Duration) (silent []*stranger) {
		set := binds(settings.PatternQueue, anyPort)
		set.HandshakeTimeout = core.Duration(limit)
		reader := connect(t, set, reading("jobs"))
		s := reader.subscribe("jobs")
		for range 50 {
			silent = append(silent, reach(t, reader.address()))
		}
		sender := connect(t, dials(settings.PatternQueue, reader.address()), pluginapi.Usage{})
		sender.put(servicetest.Message("jobs", "1"))
		servicetest.Expect(t, "deliveries", servicetest.Texts(reader.take(s, 1)), "jobs 1")
		return silent
	}
	t.Run("accepted", func(t *testing.T) {
		for i, p := range accepted(t, servicetest.Limit) {
			_ = p.nc.SetDeadline(time.Now())
			if _, err := io.Copy(io.Discard, p.nc); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the message waited for the end of connection %d: %v", i, err)
			}
		}
	})
	t.Run("accepted, and dropped in time", func(t *testing.T) {
		for _, p := range accepted(t, 2*time.Second) {
			p.dropped("one that says nothing")
		}
	})
	t.Run("dialed", func(t *testing.T) {
		mute, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer mute.Close()
		reader := connect(t, binds(settings.PatternQueue, anyPort), reading("jobs"))
		s := reader.subscribe("jobs")
		set := dials(settings.PatternQueue, "tcp://"+mute.Addr().String(), reader.address())
		sender := connect(t, set, pluginapi.Usage{})
		sender.put(servicetest.Message("jobs", "1"), servicetest.Message("jobs", "2"))
		servicetest.Expect(t, "deliveries", servicetest.Texts(reader.take(s, 2)), "jobs 1", "jobs 2")
	})
}

// The end of one peer is not the end of the subscription.
func TestOnePeerEnds(t *testing.T) {
	for _, pattern := range []string{settings.PatternQueue, settings.PatternRPC} {
		t.Run(pattern, func(t *testing.T) {
			kind := zmq4.Push
			if pattern == settings.PatternRPC {
				kind = zmq4.Dealer
			}
			reader := connect(t, binds(pattern, anyPort), reading("jobs"))
			s := reader.subscribe("jobs")
			stays := meet(t, reader.address(), kind, "")
			for i := range 3 {
				leaves := meet(t, reader.address(), kind, "")
				leaves.say("jobs", "", fmt.Sprint("leaves ", i))
				if i == 1 {
					leaves.raw("\x01\x04jo") // within a frame
				}
				leaves.nc.Close()
				stays.say("jobs", "", fmt.Sprint("stays ", i))
				got := map[string]bool{}
				for _, d := range reader.take(s, 2) {
					got[string(d.Message.Payload)] = true
				}
				if !got[fmt.Sprint("leaves ", i)] || !got[fmt.Sprint("stays ", i)] {
					t.Errorf("received %v", got)
				}
			}
			reader.quiet(s)
		})
	}
}

// Commands of a peer are no messages; its PINGs are answered, whatever the socket.
func TestPingsAreAnswered(t *testing.T) {
	ping := string(zmtp.AppendPing(nil, 0, []byte("mark")))
	pongs := func(t *testing.T, p *stranger) {
		t.Helper()
		p.raw(ping)
		for {
			command, frames, err := p.hears()
			if err != nil {
				t.Fatal(err)
			}
			if command == zmtp.CommandPong {
				servicetest.Expect(t, "context", frames, "mark")
				return
			}
		}
	}
	for pattern, kinds := range map[string]struct{ toReader, toSender zmq4.SocketType }{
		settings.PatternQueue:  {zmq4.Push, zmq4.Pull},
		settings.PatternFanOut: {zmq4.Pub, zmq4.Sub},
		settings.PatternRPC:    {zmq4.Dealer, zmq4.Router},
	} {
		t.Run(pattern, func(t *testing.T) {
			reader := connect(t, binds(pattern, anyPort), reading("jobs"))
			got := reader.deliveries(reader.subscribe("jobs"))
			p := meet(t, reader.address(), kinds.toReader, "")
			pongs(t, p)
			p.say("jobs", "", "1")
			pongs(t, p)
			if text := next(t, got); !strings.HasPrefix(text, "jobs 1") || len(got) > 0 {
				t.Errorf("received %q and %d more", text, len(got))
			}
			sender := connect(t, binds(pattern, anyPort), pluginapi.Usage{})
			pongs(t, meet(t, sender.address(), kinds.toSender, ""))
		})
	}
}

// Messages without content are messages: nothing is looked for that is not there.
func TestOddMessages(t *testing.T) {
	for name, c := range map[string]struct {
		pattern string
		kind    zmq4.SocketType
		odd     [][]string
		want    []string // empty: not delivered
	}{
		"queue":   {settings.PatternQueue, zmq4.Push, [][]string{{""}, {"", ""}, {"", "", "", ""}}, []string{" ", " ", " "}},
		"fan-out": {settings.PatternFanOut, zmq4.Pub, [][]string{{""}, {"", ""}}, nil},
		"request": {settings.PatternRPC, zmq4.Dealer, [][]string{{""}, {"", ""}}, []string{" ", " "}},
		"REQ":     {settings.PatternRPC, zmq4.Req, [][]string{{""}, {"", ""}, {"", "", ""}}, []string{" ", " ", " "}},
	} {
		t.Run(name, func(t *testing.T) {
			reader := connect(t, binds(c.pattern, anyPort), reading("jobs"))
			s := reader.subscribe("jobs")
			p := meet(t, reader.address(), c.kind, "")
			for _, frames := range c.odd {
				p.say(frames...)
			}
			p.say("jobs", "", "fine")
			ds := reader.take(s, len(c.want)+1)
			for i := range ds {
				ds[i].Message.Headers = ds[i].Message.Headers.Without("reply-to")
			}
			servicetest.Expect(t, "deliveries", servicetest.Texts(ds), append(c.want, "jobs fine")...)
		})
	}
	for _, pattern := range []string{settings.PatternQueue, settings.PatternFanOut} {
		t.Run(pattern+", published", func(t *testing.T) {
			reader, sender := pair(t, pattern, "jobs", true, anyPort)
			s := reader.subscribe("jobs")
			if r := sender.publish(servicetest.Message("", ""))[0]; r.Status != pluginapi.ReceiptRefused {
				t.Errorf("without a name: %+v", r)
			}
			sender.put(servicetest.Message("jobs", ""))
			servicetest.Expect(t, "deliveries", servicetest.Texts(reader.take(s, 1)), "jobs ")
		})
	}
}

// A reply that cannot be read is told of, and the one behind it is given to who
// asked.
func TestUnreadableReply(t *testing.T) {
	asker := connect(t, binds(settings.PatternRPC, anyPort), pluginapi.Usage{})
	p := meet(t, asker.address(), zmq4.Router, "")
	answered := make(chan error, 1)
	go func() {
		_, err := asker.ask(asker.ctx, "calc", "1", "correlation-id", "mine")
		answered <- err
	}()
	p.expect("calc", "correlation-id: mine", "1")
	p.say("reply", "correlation-id: mine\nno header", "1")
	eventually(t, "it is told of", func() bool {
		return len(asker.log.Lines("WARN", "peer=tcp://"+p.nc.LocalAddr().String(), "no header")) == 1
	})
	p.say("reply", "correlation-id: mine", "1")
	if err := <-answered; err != nil {
		t.Error(err)
	}
}
