// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

// The reasons of a connection's end.
var (
	errLost   = errors.New("the broker closed the connection")
	errSilent = errors.New("the broker does not answer")
	errClosed = errors.New("the client is closed")
)

// lost makes an end of file one in words.
func lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errLost
	}
	return err
}

// maxAsked is how many requests wait for an answer on a connection; others wait
// for their turn.
const maxAsked = 16

// link is one connection of our own, from its CONNECTED to its end. The goroutine that
// runs it reads; another writes, and keeps alive.
type link struct {
	client *Client
	host   string
	nc     net.Conn
	reader *bufio.Reader
	hello  wire.Command // the CONNECTED
	began  time.Time

	out      chan []byte   // to be written
	turns    chan struct{} // one for each request
	lastRead atomic.Int64  // since began, in nanoseconds
	done     chan struct{} // closed when the link has ended
	ended    sync.Once

	mu     sync.Mutex
	err    error // why it has ended
	number uint64
	asked  map[uint64]chan wire.Command
}

func newLink(c *Client, host string, nc net.Conn, r *bufio.Reader, hello wire.Command) *link {
	return &link{
		client: c, host: host, nc: nc, reader: r, hello: hello, began: time.Now(),
		out: make(chan []byte, maxAsked), turns: make(chan struct{}, maxAsked), done: make(chan struct{}),
		asked: make(map[uint64]chan wire.Command),
	}
}

// run serves the link until its end and says why it ended.
func (l *link) run() error {
	stop := context.AfterFunc(l.client.life, func() { l.end(errClosed) })
	defer stop()
	var writing sync.WaitGroup
	writing.Go(l.write)
	l.end(l.read())
	writing.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// end ends the link, because of err where nothing else has ended it yet.
func (l *link) end(err error) {
	l.ended.Do(func() {
		l.mu.Lock()
		l.err = err
		l.mu.Unlock()
		close(l.done)
		_ = l.nc.Close()
	})
}

// read takes what the broker sends until the connection ends.
func (l *link) read() error {
	var buf []byte
	for {
		b, err := wire.ReadFrame(l.reader, buf)
		if err != nil {
			return lost(err)
		}
		l.lastRead.Store(int64(time.Since(l.began)))
		c, err := wire.ParseCommand(b)
		if err != nil {
			return err
		}
		if err := l.handle(&c); err != nil {
			return err
		}
		if buf = b; cap(buf) > keptBuffer {
			buf = nil
		}
	}
}

// keptBuffer is the most memory that is kept from one command to the next, in bytes:
// only lists of topics need more.
const keptBuffer = 64 << 10

// handle acts on a command. What is of no concern here is passed over.
func (l *link) handle(c *wire.Command) error {
	switch c.Type {
	case wire.TypePing:
		l.send(wire.AppendPong(nil))
	case wire.TypeAuthChallenge:
		l.client.config.Log.Debug("Pulsar broker asks for credentials again", "host", l.host)
		auth, err := l.client.config.auth()
		if err != nil {
			return err
		}
		l.send(wire.AppendAuthResponse(nil, software, auth))
	case wire.TypeError, wire.TypePartitionsResponse, wire.TypeTopicsResponse:
		if l.answer(c) {
			return nil
		}
		if c.Type == wire.TypeError { // of the connection itself: credentials that are not valid any more
			return &ServerError{c.Code, c.Message}
		}
	}
	return nil
}

// answer passes an answer to who waits for it.
func (l *link) answer(c *wire.Command) bool {
	l.mu.Lock()
	waiting, ok := l.asked[c.Request]
	delete(l.asked, c.Request)
	l.mu.Unlock()
	if ok {
		waiting <- *c
	}
	return ok
}

// send has a frame written, or drops it where the link has ended.
func (l *link) send(b []byte) {
	select {
	case l.out <- b:
	case <-l.done:
	}
}

// write writes what is to be written, and a PING where nothing has come for a while.
// A broker that answers nothing ends the link, and so does one that takes nothing.
func (l *link) write() {
	tick := time.NewTicker(l.client.times.ping)
	defer tick.Stop()
	for {
		var b []byte
		select {
		case b = <-l.out:
		case <-l.done:
			return
		case <-tick.C:
			quiet := time.Since(l.began) - time.Duration(l.lastRead.Load())
			if quiet > l.client.times.silence {
				l.end(fmt.Errorf("%w for %v", errSilent, l.client.times.silence))
				return
			}
			if quiet < l.client.times.ping {
				continue
			}
			b = wire.AppendPing(nil)
		}
		_ = l.nc.SetWriteDeadline(time.Now().Add(l.client.times.silence))
		if _, err := l.nc.Write(b); err != nil {
			l.end(err)
			return
		}
	}
}

// ask sends a request and waits for its answer, which is of a type. A refusal is a
// *ServerError.
func (l *link) ask(ctx context.Context, want wire.Type, request func(dst []byte, number uint64) []byte) (wire.Command, error) {
	select {
	case l.turns <- struct{}{}:
		defer func() { <-l.turns }()
	case <-l.done:
		return wire.Command{}, errDown
	case <-ctx.Done():
		return wire.Command{}, context.Cause(ctx)
	}
	answer := make(chan wire.Command, 1)
	l.mu.Lock()
	l.number++
	number := l.number
	l.asked[number] = answer
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.asked, number)
		l.mu.Unlock()
	}()
	l.send(request(nil, number))
	select {
	case c := <-answer:
		switch {
		case c.Failed:
			return wire.Command{}, &ServerError{c.Code, c.Message}
		case c.Type != want:
			err := fmt.Errorf("%s came in place of %s", c.Type, want)
			l.end(err)
			return wire.Command{}, err
		}
		return c, nil
	case <-l.done:
		return wire.Command{}, errDown
	case <-ctx.Done():
		return wire.Command{}, context.Cause(ctx)
	}
}
