// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// ErrClosed is why a link has ended that Close has ended.
var ErrClosed = errors.New("the client is closed")

// Link is one connection, from its CONNACK to its end. Its methods may be called
// from any goroutine, but where they say otherwise.
type Link struct {
	number  uint64
	present bool
	limits  Limits
	nc      net.Conn
	raw     syscall.RawConn // nil = writes cannot be tried without waiting: TLS, or no connection of the system
	socket  syscall.RawConn // what lies below, also of TLS; nil = no connection of the system
	times   times
	began   time.Time

	out       outgoing
	onWritten func()
	lastWrite atomic.Int64 // since began, in nanoseconds
	lastRead  atomic.Int64

	ended   sync.Once
	done    chan struct{} // closed when the connection is
	deaf    atomic.Bool   // nothing that comes is passed on any more
	failed  atomic.Pointer[error]
	linger  *time.Timer    // under out.mu; nil = the link does not end by ours
	running sync.WaitGroup // who writes, and who keeps it alive
}

func newLink(number uint64, nc net.Conn, present bool, limits Limits, t times) *Link {
	l := &Link{number: number, present: present, limits: limits, nc: nc, times: t, began: time.Now(), done: make(chan struct{})}
	l.out.corked = true
	l.out.wake = make(chan struct{}, 1)
	l.out.attempt = l.attempt
	l.raw = rawOf(nc)
	l.socket = l.raw
	if below, ok := nc.(interface{ NetConn() net.Conn }); ok {
		l.socket = rawOf(below.NetConn())
	}
	return l
}

// rawOf returns the system's view of a connection, nil = it has none.
func rawOf(nc net.Conn) syscall.RawConn {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// Number counts the links of a client, from 1.
func (l *Link) Number() uint64 { return l.number }

// Present reports whether the server has resumed the session (3.2.2.1.1).
func (l *Link) Present() bool { return l.present }

// Server is what the server allows.
func (l *Link) Server() Limits { return l.limits }

// Done is closed when the link has ended, at the latest when Down is called.
func (l *Link) Done() <-chan struct{} { return l.done }

// End ends the link because of what the server has done: a DISCONNECT with the
// code leaves behind what is to be written, and nothing that comes is passed on any
// more. Only this link ends, Down is told err. It does not wait, and does nothing where
// the link has ended.
func (l *Link) End(err error, code byte) {
	l.deaf.Store(true)
	l.finish(err, code, l.times.linger)
}

// finish ends the link by a DISCONNECT, and by force after limit, or where limit is
// 0 some time after the DISCONNECT was written.
func (l *Link) finish(err error, code byte, limit time.Duration) {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	if l.out.closing {
		return
	}
	l.fail(err)
	l.out.append(func(dst []byte) []byte { return packet.AppendDisconnect(dst, code) })
	l.out.closing, l.out.corked = true, false
	if limit > 0 {
		l.linger = time.AfterFunc(limit, l.cut)
	}
	if !l.out.busy {
		l.out.busy = true
		l.out.wakeWriter()
	}
}

// lose ends the link at once: the connection is of no use any more.
func (l *Link) lose(err error) {
	l.out.mu.Lock()
	l.out.closing = true
	l.out.mu.Unlock()
	l.fail(err)
	l.cut()
}

// fail notes why the link ends, if nothing is noted yet.
func (l *Link) fail(err error) { l.failed.CompareAndSwap(nil, &err) }

// reason is why the link has ended.
func (l *Link) reason() error {
	if err := l.failed.Load(); err != nil {
		return *err
	}
	return ErrLost
}

// cut closes the connection.
func (l *Link) cut() {
	l.ended.Do(func() {
		_ = l.nc.Close()
		close(l.done)
	})
}

func (l *Link) since() int64 { return int64(time.Since(l.began)) }

// settle waits until nobody writes any more. It is called when the link has been
// cut, and what Written says is final then.
func (l *Link) settle() {
	l.running.Wait()
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	if l.linger != nil {
		l.linger.Stop()
	}
}
