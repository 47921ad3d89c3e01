// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi/plugintest"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// askers are DEALERs, one for each responder's socket, that ask and want no
// reply.
type askers struct {
	mu   sync.Mutex
	by   map[string]*asker
	done sync.WaitGroup
}

// asker is a connection; gone is closed when it has ended.
type asker struct {
	nc   net.Conn
	gone chan struct{}
}

// ask sends messages to the responder that listens in a case's folder, when there
// is one.
func (a *askers) ask(ctx context.Context, at plugintest.Place, messages []core.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var raw []byte
	for i := range messages {
		raw = message.Append(raw, &messages[i], at.Name)
	}
	path := filepath.Join(at.Dir, socketFile)
	for {
		c, err := a.at(ctx, path)
		if err != nil {
			return err
		}
		n, err := c.nc.Write(raw)
		if err == nil || n > 0 || ctx.Err() != nil {
			return err
		}
		<-c.gone // its end had come and was not seen yet
	}
}

// at returns the connection to a socket; a.mu is held.
func (a *askers) at(ctx context.Context, path string) (*asker, error) {
	if c := a.by[path]; c != nil {
		select {
		case <-c.gone:
		default:
			return c, nil
		}
	}
	nc, err := dialSocket(ctx, path)
	if err != nil {
		return nil, err
	}
	conn, err := zmtp.Open(ctx, nc, zmtp.Options{Type: zmq4.Dealer, MaxMessage: 1 << 20})
	if err != nil {
		return nil, err
	}
	c := &asker{nc: nc, gone: make(chan struct{})}
	a.by[path] = c
	a.done.Go(func() {
		defer close(c.gone)
		untilEnd(conn)
	})
	return c, nil
}

// untilEnd reads a connection to its end and closes it.
func untilEnd(c *zmtp.Conn) {
	defer func() { _ = c.NetConn().Close() }()
	r := c.Reader()
	defer r.Close()
	var f zmtp.Frames
	for r.Fill() == nil {
		for ok := true; ok; {
			ok, _ = r.Next(&f)
		}
		r.Spent()
	}
}

// dialSocket waits until somebody listens.
func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		nc, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if err == nil {
			return nc, nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// close ends all connections.
func (a *askers) close() {
	a.mu.Lock()
	for _, c := range a.by {
		_ = c.nc.Close()
	}
	a.mu.Unlock()
	a.done.Wait()
}

const socketFile = "s.sock"

// A responder is asked by DEALERs.
func TestConformanceResponder(t *testing.T) {
	a := &askers{by: make(map[string]*asker)}
	t.Cleanup(a.close)
	plugintest.Run(t, plugintest.Subject{
		Path:         pluginPath(t),
		Settings:     binds(settings.PatternRPC, "ipc://"+filepath.Join(plugintest.DirWord, socketFile)),
		Subscription: "sum",
		Inject: func(ctx context.Context, at plugintest.Place, messages []core.Message) error {
			ctx, cancel := context.WithTimeout(ctx, servicetest.Limit)
			defer cancel()
			return a.ask(ctx, at, messages)
		},
	})
}
