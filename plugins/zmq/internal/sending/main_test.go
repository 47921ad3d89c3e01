// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// at is an address as a Config has it.
func at(address string) func() string { return func() string { return address } }

// limit is how long a test waits for what must happen.
const limit = zmqtest.Patience

// receipts collects what became of messages.
type receipts struct {
	mu  sync.Mutex
	got map[int][]pluginapi.Receipt
	n   int
}

func newReceipts() *receipts { return &receipts{got: make(map[int][]pluginapi.Receipt)} }

func (r *receipts) done(i int, x pluginapi.Receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got[i] = append(r.got[i], x)
	r.n++
}

func (r *receipts) ticket(i int) outq.Ticket { return outq.Ticket{Done: r.done, I: i} }

func (r *receipts) count(s pluginapi.ReceiptStatus) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, xs := range r.got {
		for _, x := range xs {
			if x.Status == s {
				n++
			}
		}
	}
	return n
}

// await waits for n receipts.
func (r *receipts) await(tb testing.TB, n int) {
	tb.Helper()
	zmqtest.Until(tb, "the receipts", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.n >= n
	})
}

// of returns the receipts of message i.
func (r *receipts) of(i int) []pluginapi.Receipt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got[i]
}

// one returns the only receipt of message i.
func (r *receipts) one(tb testing.TB, i int) pluginapi.Receipt {
	tb.Helper()
	zmqtest.Until(tb, "the receipt", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.got[i]) > 0
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.got[i]) > 1 {
		tb.Fatalf("message %d has %d receipts", i, len(r.got[i]))
	}
	return r.got[i][0]
}

func text(name, payload string) *core.Message {
	return &core.Message{Name: name, Payload: []byte(payload)}
}

// bound is a listening endpoint whose peers are given to serve.
type bound struct {
	peering *peering.Peering
	address string
}

func listen(tb testing.TB, kind zmq4.SocketType, limits outq.Limits, serve func(*peering.Peer) error) *bound {
	tb.Helper()
	return listenFor(tb, 100*time.Millisecond, kind, limits, serve)
}

// listenFor is listen with an end that waits for so long for peers to read.
func listenFor(tb testing.TB, linger time.Duration, kind zmq4.SocketType, limits outq.Limits, serve func(*peering.Peer) error) *bound {
	tb.Helper()
	a, err := peering.ParseAddress("tcp://127.0.0.1:0", true)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := peering.Start(tb.Context(), peering.Config{
		Bind: &a, Handshake: zmtp.Options{Type: kind, MaxMessage: 64 << 20},
		Limits: limits, Linger: linger, Serve: serve,
	})
	if err != nil {
		tb.Fatal(err)
	}
	b := &bound{peering: p, address: p.Addresses()[0]}
	tb.Cleanup(func() { b.close(tb) })
	return b
}

func (b *bound) close(tb testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := b.peering.Close(ctx); err != nil {
		tb.Error(err)
	}
}

// remote is the far end of a connection, which reads when it is told to.
type remote struct {
	conn   *zmtp.Conn
	f      zmtp.Frames
	frames []string // of the last message
}

// join dials an endpoint as a peer of some kind.
func join(tb testing.TB, address string, kind zmq4.SocketType, identity string) *remote {
	tb.Helper()
	nc, err := net.Dial("tcp", strings.TrimPrefix(address, "tcp://"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { nc.Close() })
	conn, err := zmtp.Open(tb.Context(), nc, zmtp.Options{Type: kind, Identity: []byte(identity), MaxMessage: 64 << 20})
	if err != nil {
		tb.Fatal(err)
	}
	return &remote{conn: conn}
}

func (r *remote) close() { r.conn.NetConn().Close() }

// next returns the next message, or why there is none.
func (r *remote) next() (core.Message, error) {
	rd := r.conn.Reader()
	for {
		ok, err := rd.Next(&r.f)
		switch {
		case err != nil:
			return core.Message{}, err
		case ok && r.f.Command == "":
			var d message.Decoder
			var m core.Message
			list := r.f.List
			r.frames = nil
			for _, f := range list {
				r.frames = append(r.frames, string(f))
			}
			if len(list[0]) == 0 && len(list) > 3 {
				list = list[1:] // the delimiter of REQ
			}
			d.Decode(list, &m)
			m = m.Clone()
			rd.Spent()
			return m, nil
		case !ok:
			if err := rd.Fill(); err != nil {
				return core.Message{}, err
			}
		}
	}
}

// expect reads one message and compares its payload.
func (r *remote) expect(tb testing.TB, payload string) {
	tb.Helper()
	_ = r.conn.NetConn().SetReadDeadline(time.Now().Add(limit))
	m, err := r.next()
	if err != nil || string(m.Payload) != payload {
		tb.Fatalf("%q came, %v, want %q", m.Payload, err, payload)
	}
}

// drain reads until the end and sends each payload to the channel, which it
// closes.
func (r *remote) drain() <-chan string {
	out := make(chan string, 1<<16)
	go func() {
		defer close(out)
		for {
			m, err := r.next()
			if err != nil {
				r.conn.Reader().Close()
				return
			}
			out <- string(m.Payload)
		}
	}()
	return out
}

// logged collects log lines.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(b))
	return len(b), nil
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "")
}

// hostWindow is what a host has without a receipt at a time: 1024 messages, 8 MiB.
type hostWindow struct {
	mu        sync.Mutex
	freed     sync.Cond
	messages  int
	bytes     int64
	confirmed int
	unrouted  int
}

func newWindow() *hostWindow {
	w := &hostWindow{}
	w.freed.L = &w.mu
	return w
}

// publish waits for room and publishes a message.
func (w *hostWindow) publish(p *Pub, m *core.Message) {
	size := int64(m.Size())
	w.mu.Lock()
	for w.messages > 0 && (w.messages >= window || w.bytes+size > 8<<20) {
		w.freed.Wait()
	}
	w.messages++
	w.bytes += size
	w.mu.Unlock()
	p.Publish(m, outq.Ticket{Done: func(_ int, r pluginapi.Receipt) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.messages--
		w.bytes -= size
		if r.Status == pluginapi.ReceiptConfirmed {
			w.confirmed++
		}
		if r.Unrouted {
			w.unrouted++
		}
		w.freed.Broadcast()
	}})
}

// wait waits until nothing is without a receipt.
func (w *hostWindow) wait() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.messages > 0 {
		w.freed.Wait()
	}
}
