// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/wire"
	"github.com/longshore-go/longshore/pluginapi"
)

// The pauses between tries to dial again.
const (
	redialFirst = 5 * time.Millisecond
	redialMost  = 250 * time.Millisecond
)

// errDown says that there is no connection.
var errDown = errors.New("no connection to the memory broker")

// link is the connection to the broker, over disconnects once it is attached.
type link struct {
	transport *Transport
	address   string
	log       *slog.Logger

	life   context.Context //nolint:containedctx // ends the link's goroutines
	cancel context.CancelFunc
	wg     sync.WaitGroup

	writing sync.Mutex // over one frame

	mu        sync.Mutex
	conn      net.Conn      // nil while there is none
	down      chan struct{} // closed when conn has ended
	hello     wire.Frame
	attached  bool
	stopped   bool
	requests  uint64
	waiting   map[uint64]func(*wire.Frame) // nil frame: the connection ended
	subs      map[uint32]*subscription
	numbers   uint32
	publishes map[uint64]*outgoing
	flushed   chan struct{} // closed when publishes is empty; nil when nobody waits
	ids       uint64
	linked    func(pluginapi.LinkState)
	resumed   func([]byte)
	commands  commands
}

func newLink(t *Transport, address string, log *slog.Logger) *link {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	l := &link{
		transport: t, address: address, log: log,
		waiting: map[uint64]func(*wire.Frame){}, subs: map[uint32]*subscription{},
		publishes: map[uint64]*outgoing{},
	}
	l.life, l.cancel = context.WithCancel(context.Background())
	return l
}

// open dials for the first time.
func (l *link) open(ctx context.Context, endpoint string, generation uint64) error {
	conn, err := l.transport.dial(ctx, l.address)
	if err != nil {
		return err
	}
	l.hello = wire.Frame{Kind: wire.Hello, Text: endpoint, Num: int64(os.Getpid()), Num2: int64(generation)}
	l.mu.Lock()
	l.conn, l.down = conn, make(chan struct{})
	l.mu.Unlock()
	l.wg.Go(l.run)
	return l.rename(ctx, endpoint, generation)
}

// rename tells the broker whose link this is.
func (l *link) rename(ctx context.Context, endpoint string, generation uint64) error {
	l.hello.Text, l.hello.Num2 = endpoint, int64(generation)
	f := l.hello
	_, err := l.call(ctx, &f)
	return err
}

// attach opens the session. From then on the link dials again by itself.
func (l *link) attach(ctx context.Context, session string) error {
	f := l.hello
	f.Flag, f.Data = true, []byte(session)
	welcome, err := l.call(ctx, &f)
	if err != nil {
		return asFault(err)
	}
	l.mu.Lock()
	l.hello.Flag, l.hello.Data = true, welcome.Data
	l.attached = true
	l.mu.Unlock()
	return nil
}

// session returns the session's name.
func (l *link) session() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hello.Data
}

// at tells the broker that a point is reached and waits as long as it wants.
// Without a connection nothing waits.
func (l *link) at(ctx context.Context, p memory.Point, name string) error {
	if l == nil {
		return nil
	}
	_, err := l.call(ctx, &wire.Frame{Kind: wire.At, Text: string(p), Name: name})
	if errors.Is(err, errDown) {
		return nil
	}
	return err
}

// call asks and waits for the answer. A fault in it comes back as the error.
func (l *link) call(ctx context.Context, f *wire.Frame) (*wire.Frame, error) {
	answer := make(chan *wire.Frame, 1)
	if err := l.ask(f, func(r *wire.Frame) { answer <- r }); err != nil {
		return nil, err
	}
	select {
	case r := <-answer:
		if r == nil {
			return nil, errDown
		}
		if r.Fault != nil {
			return r, r.Fault
		}
		return r, nil
	case <-ctx.Done():
		l.forget(f.Req)
		return nil, context.Cause(ctx)
	}
}

// ask sends a question; then is called once, with nil when the connection ends.
func (l *link) ask(f *wire.Frame, then func(*wire.Frame)) error {
	l.mu.Lock()
	if l.conn == nil {
		l.mu.Unlock()
		return errDown
	}
	l.requests++
	f.Req = l.requests
	l.waiting[f.Req] = then
	conn := l.conn
	l.mu.Unlock()
	if err := l.write(conn, f); err != nil {
		l.forget(f.Req)
		return fmt.Errorf("%w: %w", errDown, err)
	}
	return nil
}

func (l *link) forget(req uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, req)
}

// tell sends a frame that has no answer.
func (l *link) tell(f *wire.Frame) error {
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	if conn == nil {
		return errDown
	}
	return l.write(conn, f)
}

func (l *link) write(conn net.Conn, f *wire.Frame) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	err := f.Write(conn)
	if err != nil {
		_ = conn.Close() // half a frame may be out; the reader notices
	}
	return err
}

// run reads, and dials again, until the link is stopped.
func (l *link) run() {
	for {
		l.mu.Lock()
		conn := l.conn
		l.mu.Unlock()
		err := l.read(conn)
		if !l.lost(err) {
			return
		}
		if !l.redial() {
			return
		}
	}
}

func (l *link) read(conn net.Conn) error {
	for {
		f, err := wire.Read(conn)
		if err != nil {
			return err
		}
		l.handle(f)
	}
}

// lost takes note of the end of a connection. It reports whether to dial again.
func (l *link) lost(cause error) bool {
	l.mu.Lock()
	_ = l.conn.Close()
	l.conn = nil
	close(l.down)
	waiting, publishes := l.waiting, l.publishes
	l.waiting, l.publishes = map[uint64]func(*wire.Frame){}, map[uint64]*outgoing{}
	subs := l.opened()
	again := l.attached && !l.stopped
	linked := l.linked
	l.mu.Unlock()

	for _, s := range subs {
		s.reset()
	}
	for _, then := range waiting {
		then(nil)
	}
	for _, o := range publishes {
		o.finish(pluginapi.Unknown(unavailable("publish", errDown)))
	}
	if again && linked != nil {
		linked(pluginapi.LinkState{Reason: "memory broker: " + cause.Error()})
	}
	return again
}

// opened returns the open subscriptions; l.mu is held.
func (l *link) opened() []*subscription {
	subs := make([]*subscription, 0, len(l.subs))
	for _, s := range l.subs {
		subs = append(subs, s)
	}
	return subs
}

// redial dials until it has a connection with all subscriptions on it. It
// reports false when the link was stopped.
func (l *link) redial() bool {
	for pause := redialFirst; ; pause = min(2*pause, redialMost) {
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-l.life.Done():
			t.Stop()
			return false
		}
		if conn, err := l.transport.dial(l.life, l.address); err == nil {
			if l.again(conn) {
				return true
			}
			_ = conn.Close()
		}
	}
}

// again opens the session and its subscriptions on a new connection.
func (l *link) again(conn net.Conn) bool {
	l.mu.Lock()
	hello := l.hello
	l.mu.Unlock()
	stop := context.AfterFunc(l.life, func() { _ = conn.Close() })
	defer stop()
	if err := l.write(conn, &hello); err != nil {
		return false
	}
	if f, err := wire.Read(conn); err != nil || f.Kind != wire.Welcome {
		return false
	}
	l.mu.Lock()
	if l.stopped {
		l.mu.Unlock()
		return false
	}
	l.conn, l.down = conn, make(chan struct{})
	subs, linked := l.opened(), l.linked
	l.mu.Unlock()
	for _, s := range subs {
		s.reopen()
	}
	if linked != nil {
		linked(pluginapi.LinkState{Up: true})
	}
	return true
}

// stop ends the link and waits for its goroutine.
func (l *link) stop() {
	l.mu.Lock()
	l.stopped = true
	if l.conn != nil {
		_ = l.conn.Close()
	}
	l.mu.Unlock()
	l.cancel()
	l.wg.Wait()
}

// handle takes a frame from the broker.
func (l *link) handle(f *wire.Frame) {
	switch f.Kind {
	case wire.Reply, wire.Welcome, wire.Results:
		l.mu.Lock()
		then := l.waiting[f.Req]
		delete(l.waiting, f.Req)
		l.mu.Unlock()
		if then != nil {
			then(f)
		}
	case wire.Receipts:
		for i := range f.Items {
			l.mu.Lock()
			o := l.publishes[f.Items[i].ID]
			delete(l.publishes, f.Items[i].ID)
			l.mu.Unlock()
			if o != nil {
				o.finish(receipt(&f.Items[i]))
			}
		}
		l.settleFlush()
	case wire.Do:
		l.command(f)
	default:
		l.mu.Lock()
		s := l.subs[f.Sub]
		l.mu.Unlock()
		if s != nil {
			s.handle(f)
		}
	}
}

// receipt reads a receipt.
func receipt(it *wire.Item) pluginapi.Receipt {
	r := pluginapi.Receipt{Status: pluginapi.ReceiptConfirmed, Unrouted: it.Flag, Fault: it.Fault}
	switch it.Kind {
	case wire.StatusRefused:
		r.Status = pluginapi.ReceiptRefused
	case wire.StatusUnknown:
		r.Status = pluginapi.ReceiptUnknown
	}
	return r
}

// asFault returns err as a fault.
func asFault(err error) *core.Fault {
	var f *core.Fault
	if errors.As(err, &f) {
		return f
	}
	return unavailable("memory broker", err)
}
