// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// heard is what a handler was told, in order.
type heard struct {
	mu  sync.Mutex
	all []string
	new chan struct{}
}

func newHeard() *heard { return &heard{new: make(chan struct{}, 10000)} }

func (h *heard) add(format string, args ...any) {
	h.mu.Lock()
	h.all = append(h.all, fmt.Sprintf(format, args...))
	h.mu.Unlock()
	h.new <- struct{}{}
}

// now is what it was told so far.
func (h *heard) now() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all)
}

// await waits until it was told n times, and returns all that it was told.
func (h *heard) await(t *testing.T, n int) []string {
	t.Helper()
	for len(h.now()) < n {
		within(t, fmt.Sprintf("call %d of %q", n, h.now()), h.new)
	}
	return h.now()
}

// consumer and producer are handlers that note what they are told.
type consumer struct {
	*heard
	entries chan wire.Message // as they come, nil = entries are noted as they are
}

func (c consumer) Entry(m *wire.Delivery) {
	if c.entries != nil {
		all, err := m.Messages(nil)
		if err != nil || len(all) != 1 {
			c.add("entry %d:%d of %d messages, %v", m.Ledger, m.Entry, len(all), err)
			return
		}
		c.entries <- all[0]
		return
	}
	c.add("entry %d:%d %q", m.Ledger, m.Entry, m.Payload)
}
func (c consumer) Pause()          { c.add("pause") }
func (c consumer) Active(now bool) { c.add("active %t", now) }
func (c consumer) Closed()         { c.add("closed") }
func (c consumer) Lost(err error)  { c.add("lost: %v", err) }

type producer struct{ *heard }

func (p producer) Receipt(r wire.SendReceipt) { p.add("receipt %d", r.Sequence) }
func (p producer) Failed(sequence uint64, code wire.ServerError, message string) {
	p.add("failed %d %v %s", sequence, code, message)
}
func (p producer) Pause()         { p.add("pause") }
func (p producer) Room()          { p.add("room") }
func (p producer) Closed()        { p.add("closed") }
func (p producer) Lost(err error) { p.add("lost: %v", err) }

// same compares what was told.
func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q; want %q", what, got, want)
	}
}

// The commands of a broker, by hand [PulsarApi.proto].

func message(consumer, ledger, entry int64, payload string) []byte {
	body := varints(consumer)
	body = protowire.AppendBytes(protowire.AppendTag(body, 2, protowire.BytesType), varints(ledger, entry))
	return withPayload(frame(wire.TypeMessage, body), payload)
}

// withPayload is a frame with a payload behind its command.
func withPayload(f []byte, payload string) []byte {
	binary.BigEndian.PutUint32(f, binary.BigEndian.Uint32(f)+uint32(len(payload)))
	return append(f, payload...)
}

func receipt(producer, sequence int64) []byte {
	body := varints(producer, sequence)
	body = protowire.AppendBytes(protowire.AppendTag(body, 3, protowire.BytesType), varints(1, 2))
	return frame(wire.TypeSendReceipt, body)
}

func sendError(producer, sequence int64, code wire.ServerError, why string) []byte {
	return frame(wire.TypeSendError, text(varints(producer, sequence, int64(code)), 4, why))
}

// located answers a lookup: 0 = ask there, 1 = it is there.
func located(request, response int64, url string, authoritative, proxy bool) []byte {
	body := text(varints(-1, -1, response, request), 1, url)
	body = protowire.AppendVarint(protowire.AppendTag(body, 5, protowire.VarintType), protowire.EncodeBool(authoritative))
	return frame(wire.TypeLookupResponse, protowire.AppendVarint(protowire.AppendTag(body, 8, protowire.VarintType), protowire.EncodeBool(proxy)))
}

// number is the value of a varint field of a command that has come, -1 = it is not there.
func number(command []byte, field protowire.Number) int64 {
	n := int64(-1)
	each(body(command), func(at protowire.Number, v []byte) {
		if at == field {
			u, _ := protowire.ConsumeVarint(v)
			n = int64(u)
		}
	})
	return n
}

// words is the value of a text field of a command that has come.
func words(command []byte, field protowire.Number) (s string) {
	each(body(command), func(at protowire.Number, v []byte) {
		if at == field {
			s, _ = protowire.ConsumeString(v)
		}
	})
	return s
}

// body is the command within a BaseCommand.
func body(command []byte) (b []byte) {
	each(command, func(at protowire.Number, v []byte) {
		if at > 1 {
			b, _ = protowire.ConsumeBytes(v)
		}
	})
	return b
}

func each(b []byte, f func(at protowire.Number, v []byte)) {
	for len(b) > 0 {
		at, kind, n := protowire.ConsumeTag(b)
		b = b[n:]
		f(at, b)
		b = b[protowire.ConsumeFieldValue(at, kind, b):]
	}
}

// brokerOf has a subject connect to a server and look up a topic that this server
// serves. It returns the connection for it, and the two connections as the server has
// them.
func brokerOf(t *testing.T, srv *server, s *subject) (c *Conn, link, p *peer) {
	t.Helper()
	linked, served := make(chan *peer, 1), make(chan *peer, 1)
	go func() {
		l := srv.admit()
		linked <- l
		served <- srv.locate(l)
	}()
	s.connected(t)
	c, err := s.Broker(t.Context(), "persistent://a/b/c")
	if err != nil {
		t.Fatalf("no broker: %v\n%s", err, s.log)
	}
	return c, within(t, "the link", linked), within(t, "the broker's connection", served)
}

// locate answers a lookup with the server itself, which then admits a connection.
func (s *server) locate(link *peer) *peer {
	s.t.Helper()
	link.send(located(number(link.expect(wire.TypeLookup), 2), 1, "pulsar://"+s.host(), true, false))
	return s.admit()
}

// What a broker sends is passed to whom it is for, in order, with a pause behind what has
// come together; what is for nobody is dropped.
func TestConnPassesOn(t *testing.T) {
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address()})
	c, _, p := brokerOf(t, srv, s)
	one, two, out := consumer{heard: newHeard()}, consumer{heard: newHeard()}, producer{newHeard()}
	first, second, id := int64(c.Consumer(one)), int64(c.Consumer(two)), int64(c.Producer(out))
	p.send(slices.Concat(
		message(first, 1, 1, "a"), message(second, 1, 2, "b"), message(first, 1, 3, "c"), message(99, 1, 4, "nobody"),
		receipt(id, 7), sendError(id, 8, wire.TopicTerminatedError, "end"), receipt(99, 9),
		frame(27, varints(first)), frame(99, nil), // the end of the topic, and what nobody knows
		frame(wire.TypeActiveConsumer, varints(second, 1)),
	))
	same(t, "the first", one.await(t, 3), `entry 1:1 "a"`, `entry 1:3 "c"`, "pause")
	same(t, "the second", two.await(t, 3), `entry 1:2 "b"`, "active true", "pause")
	same(t, "the producer", out.await(t, 3), "receipt 7", "failed 8 TopicTerminatedError end", "pause")

	p.send(frame(wire.TypeCloseConsumer, varints(first, 1)))
	p.send(frame(wire.TypeCloseProducer, varints(id, 1)))
	one.await(t, 4)
	out.await(t, 4)
	c.ForgetConsumer(uint64(second))
	p.send(slices.Concat(message(first, 2, 1, "x"), message(second, 2, 1, "x"), receipt(id, 10), frame(wire.TypePing, nil)))
	p.expect(wire.TypePong)
	p.nc.Close()
	within(t, "the end", c.Done())
	s.mustClose(t)()
	same(t, "the first, closed", one.now()[3:], "closed")
	same(t, "the second, forgotten", two.now()[3:])
	same(t, "the producer, closed", out.now()[3:], "closed")
}

// silence has a client find out soon that nothing comes, in a test that shows this.
func silence(soon bool) func(*Client) {
	return func(c *Client) {
		if soon {
			c.times.ping, c.times.silence = time.Second, 3*time.Second
		}
	}
}

// Who is registered is told of the end, whatever it was, behind all that came before;
// requests are answered with it, and the topic's broker is connected to again.
func TestConnEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  func(p *peer)
		want string
	}{
		"hangs up":      {func(p *peer) { p.nc.Close() }, "closed the connection"},
		"garbage":       {func(p *peer) { p.send([]byte("garbage garbage garbage")) }, "over the limit"},
		"bad message":   {func(p *peer) { p.send(frame(wire.TypeMessage, []byte{0xff})) }, "bad frame"},
		"bad receipt":   {func(p *peer) { p.send(frame(wire.TypeSendReceipt, []byte{0xff})) }, "bad frame"},
		"silence":       {func(p *peer) { p.expect(wire.TypePing); p.gone() }, "does not answer for 3s"},
		"token ended":   {func(p *peer) { p.send(refusal(-1, wire.AuthenticationError, "ended")) }, "AuthenticationError: ended"},
		"wrong answer":  {func(p *peer) { p.send(frame(wire.TypeTopicsResponse, varints(1))) }, "GET_TOPICS_OF_NAMESPACE_RESPONSE came in place of SUCCESS"},
		"half a header": {func(p *peer) { p.send([]byte{0, 0, 0}); p.nc.Close() }, "closed the connection"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t)
			s := subjectOf(t, Config{Address: srv.address()}, silence(name == "silence"))
			c, link, p := brokerOf(t, srv, s)
			done := make(chan struct{})
			go func() { // the link stays
				defer close(done)
				for {
					f, err := link.r.Next()
					if err != nil {
						return
					}
					if f.Type == wire.TypePing {
						link.send(frame(wire.TypePong, nil))
					}
					if f.Type == wire.TypeLookup {
						link.send(located(number(f.Command, 2), 1, "pulsar://"+srv.host(), true, false))
					}
				}
			}()
			in, out := consumer{heard: newHeard()}, producer{newHeard()}
			id := c.Consumer(in)
			c.Producer(out)
			asked := make(chan error, 1)
			go func() {
				_, err := c.Ask(t.Context(), wire.TypeSuccess, func(dst []byte, n uint64) []byte { return wire.AppendCloseConsumer(dst, n, 77) })
				asked <- err
			}()
			p.expect(wire.TypeCloseConsumer)
			p.send(message(int64(id), 1, 1, "a"))
			in.await(t, 2)
			tt.end(p)
			err := within(t, "the answer", asked)
			if _, ok := errors.AsType[*LostError](err); name != "wrong answer" && !ok || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("asked: %v; want it lost: %s", err, tt.want)
			}
			if f := Explain("x", err); !f.Transient {
				t.Errorf("it is not transient: %v", f)
			}
			for _, got := range [][]string{in.await(t, 3)[2:], out.await(t, 1)} {
				if len(got) != 1 || !strings.HasPrefix(got[0], "lost: connection to "+srv.host()+" lost: ") || !strings.Contains(got[0], tt.want) {
					t.Errorf("told %q; want the end: %s", got, tt.want)
				}
			}
			if c.Err() == nil || c.Consumer(in) != 0 || c.Producer(out) != 0 || !c.Room() {
				t.Errorf("a connection that has ended, %v, registers somebody", c.Err())
			}
			c.Send(wire.AppendPing)
			if _, err := c.Ask(t.Context(), wire.TypeSuccess, func(dst []byte, _ uint64) []byte { return wire.AppendPing(dst) }); err == nil {
				t.Error("a connection that has ended answers")
			}
			again := make(chan error, 1)
			go func() {
				c, err := s.Broker(t.Context(), "persistent://a/b/c")
				if err == nil {
					err = c.Err()
				}
				again <- err
			}()
			srv.admit()
			if err := within(t, "another connection", again); err != nil {
				t.Errorf("another connection: %v", err)
			}
			if now, _ := s.Up(); !now {
				t.Error("the client is down")
			}
			s.mustClose(t)()
			<-done
		})
	}
}

// Answers to what nobody waits for any more do no harm, an error among them.
func TestAnswersTooLate(t *testing.T) {
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address()})
	c, _, p := brokerOf(t, srv, s)
	ctx, cancel := context.WithCancelCause(t.Context())
	result := make(chan error, 1)
	ask := func(ctx context.Context) {
		_, err := c.Ask(ctx, wire.TypeSuccess, func(dst []byte, n uint64) []byte { return wire.AppendCloseConsumer(dst, n, 1) })
		result <- err
	}
	go ask(ctx)
	given := number(p.expect(wire.TypeCloseConsumer), 2)
	why := errors.New("no patience")
	cancel(why)
	if err := within(t, "the end", result); !errors.Is(err, why) {
		t.Errorf("got %v; want %v", err, why)
	}
	go ask(t.Context())
	next := number(p.expect(wire.TypeCloseConsumer), 2)
	p.send(refusal(given, wire.PersistenceError, "late"))
	p.send(frame(wire.TypeSuccess, varints(next)))
	if err := within(t, "the answer", result); err != nil {
		t.Errorf("got %v", err)
	}
}

// What waits to be written is bounded: a producer is told to wait, and when there is room
// again. Frames arrive whole, in order, and none is lost.
func TestConnRoom(t *testing.T) {
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address()})
	c, _, p := brokerOf(t, srv, s)
	out, gone := producer{newHeard()}, producer{newHeard()}
	c.Producer(out)
	c.ForgetProducer(c.Producer(gone))
	// What the system itself takes must leave more than half of the bound waiting.
	const small = 32 << 10
	if err := errors.Join(c.socket.Conn.(*net.TCPConn).SetWriteBuffer(small), p.nc.(*net.TCPConn).SetReadBuffer(small)); err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 100_000)
	sent := 0
	for c.Room() {
		c.Send(func(dst []byte) []byte {
			return append(dst, withPayload(frame(wire.TypeSend, varints(1, int64(sent))), large)...)
		})
		if sent++; sent > 1000 {
			t.Fatal("there is room for ever")
		}
	}
	for range 100 { // more is taken, but nobody is told of room meanwhile
		c.Send(wire.AppendPing)
	}
	if got := out.now(); len(got) > 0 || c.Room() {
		t.Errorf("told %q before anything was read", got)
	}
	for i := range sent {
		f, err := p.r.Next()
		if err != nil || f.Type != wire.TypeSend || number(f.Command, 2) != int64(i) || string(f.Payload) != large {
			t.Fatalf("frame %d is %s of %d bytes, %v", i, f.Type, len(f.Payload), err)
		}
	}
	same(t, "the producer", out.await(t, 1), "room")
	for range 100 {
		p.expect(wire.TypePing)
	}
	if !c.Room() || len(gone.now()) > 0 {
		t.Errorf("there is no room, or %q is told to who has left", gone.now())
	}
}

// A broker that takes nothing, though it sends, ends the connection.
func TestConnStuck(t *testing.T) {
	t.Parallel()
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address()}, func(c *Client) { c.times.ping, c.times.silence = 20*time.Millisecond, 3*time.Second })
	c, link, p := brokerOf(t, srv, s)
	c.Producer(producer{newHeard()})
	stop := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_, _ = p.nc.Write(frame(wire.TypePong, nil))
				_, _ = link.nc.Write(frame(wire.TypePong, nil))
			case <-stop:
				return
			}
		}
	})
	for range 32 { // more than the buffers of a connection hold
		c.Send(func(dst []byte) []byte { return append(dst, make([]byte, 1<<20)...) })
	}
	within(t, "the end", c.Done())
	close(stop)
	sending.Wait()
	if err, ok := errors.AsType[*LostError](c.Err()); !ok || !errors.Is(err.Reason, errStuck) {
		t.Errorf("it has ended with %v; want %v", c.Err(), errStuck)
	}
}

// A connection that nobody uses is closed; one with a consumer stays.
func TestConnIdle(t *testing.T) {
	t.Parallel()
	const idle = 2 * time.Second // longer than it takes to register
	srv := serve(t)
	s := subjectOf(t, Config{Address: srv.address()}, func(c *Client) { c.times.ping, c.times.idle = 100*time.Millisecond, idle })
	c, link, p := brokerOf(t, srv, s)
	var serving sync.WaitGroup
	for _, p := range []*peer{link, p} {
		serving.Go(func() {
			for {
				if f, err := p.r.Next(); err != nil {
					return
				} else if f.Type == wire.TypePing {
					p.send(frame(wire.TypePong, nil))
				}
			}
		})
	}
	id := c.Consumer(consumer{heard: newHeard()})
	select {
	case <-c.Done():
		t.Fatalf("a connection that is used was closed: %v", c.Err())
	case <-time.After(idle + idle/4):
	}
	c.ForgetConsumer(id)
	within(t, "the end", c.Done())
	if err, ok := errors.AsType[*LostError](c.Err()); !ok || !errors.Is(err.Reason, errIdle) {
		t.Errorf("it has ended with %v; want %v", c.Err(), errIdle)
	}
	if c.want() {
		t.Error("it is given to who wants it all the same")
	}
	if now, _ := s.Up(); !now {
		t.Error("the link was closed with it")
	}
	s.mustClose(t)()
	serving.Wait()
}
