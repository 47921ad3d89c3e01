// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/programtest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/pluginapi/plugintest"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// pluginPath builds the plugin.
func pluginPath(t *testing.T) string {
	t.Helper()
	return programtest.Path(t, "github.com/longshore-go/longshore/plugins/zmq/longshore-transport-zmq")
}

// What binds a queue or a fan-out publishes to itself.
func TestConformance(t *testing.T) {
	for _, pattern := range []string{settings.PatternQueue, settings.PatternFanOut} {
		t.Run(pattern, func(t *testing.T) {
			plugintest.Run(t, plugintest.Subject{
				Path:     pluginPath(t),
				Settings: binds(pattern, "ipc://"+filepath.Join(plugintest.DirWord, "s.sock")),
			})
		})
	}
}

// A queue that dials reads what a sender pushes. All cases share that sender, so
// they run one after the other. What it writes to a plugin that has just ended is
// refused at once by a local socket, and lost by TCP.
func TestConformanceDialing(t *testing.T) {
	sender := connect(t, binds(settings.PatternQueue, "ipc://"+filepath.Join(t.TempDir(), "s.sock")), pluginapi.Usage{})
	var turn sync.Mutex // a connection's messages are published by one goroutine at a time
	plugintest.Run(t, plugintest.Subject{
		Path:         pluginPath(t),
		Settings:     dials(settings.PatternQueue, sender.address()),
		Subscription: "jobs",
		Inject: func(ctx context.Context, at plugintest.Place, messages []core.Message) error {
			turn.Lock()
			defer turn.Unlock()
			var out []pluginapi.Outgoing
			for _, m := range messages {
				m.Name = at.Name
				out = append(out, pluginapi.Outgoing{Message: m, Purpose: pluginapi.PurposeApplication})
			}
			return publishAll(ctx, sender.conn, out)
		},
	})
}

// publishAll publishes and waits for receipts, for a while: where the reader has
// stopped meanwhile, the sender keeps what is left until there is one again.
func publishAll(ctx context.Context, c pluginapi.Conn, out []pluginapi.Outgoing) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	receipts := make(chan pluginapi.Receipt, len(out))
	c.Publish(ctx, out, func(_ int, r pluginapi.Receipt) { receipts <- r })
	for range out {
		select {
		case r := <-receipts:
			if r.Status != pluginapi.ReceiptConfirmed {
				return fmt.Errorf("receipt %d: %w", r.Status, r.Fault)
			}
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// collectors hand what one reader gets to those that collect it by name.
type collectors struct {
	mu sync.Mutex
	by map[string]func(core.Message)
}

func (c *collectors) set(name string, got func(core.Message)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if got == nil {
		delete(c.by, name)
		return
	}
	c.by[name] = got
}

func (c *collectors) take(m core.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := c.by[m.Name]; got != nil {
		got(m)
	}
}

// A queue and a fan-out that dial to send are read by one reader, each case by
// names of its own.
func TestConformanceSending(t *testing.T) {
	for pattern, all := range map[string]string{settings.PatternQueue: "all", settings.PatternFanOut: "conform-"} {
		t.Run(pattern, func(t *testing.T) {
			reader := connect(t, binds(pattern, anyPort), reading(all))
			c := &collectors{by: make(map[string]func(core.Message))}
			reader.responder(all, func(m core.Message) []pluginapi.Outgoing { c.take(m); return nil })
			set := dials(pattern, reader.address())
			set.SendQueueBytes = 256 << 20 // a fan-out drops what has no room, and the largest message takes all there is by default
			plugintest.Run(t, plugintest.Subject{
				Path: pluginPath(t), Settings: set, SendOnly: true,
				Collect: func(ctx context.Context, at plugintest.Place, ready func(), got func(core.Message)) error {
					c.set(at.Name, got)
					defer c.set(at.Name, nil)
					ready()
					<-ctx.Done()
					return nil
				},
			})
		})
	}
}

// An endpoint that asks gets the replies of a responder that echoes.
func TestConformanceRequests(t *testing.T) {
	responder := connect(t, binds(settings.PatternRPC, anyPort), reading("echo"))
	responder.responder("echo", func(m core.Message) []pluginapi.Outgoing {
		if m.Name != "echo" {
			return nil
		}
		return []pluginapi.Outgoing{replyTo(m, string(m.Payload))}
	})
	plugintest.Run(t, plugintest.Subject{
		Path:     pluginPath(t),
		Settings: dials(settings.PatternRPC, responder.address()),
		SendOnly: true,
		Echo:     "echo",
		Collect: func(ctx context.Context, _ plugintest.Place, ready func(), _ func(core.Message)) error {
			ready()
			<-ctx.Done() // nothing but requests is sent
			return nil
		},
	}, plugintest.Only(regexp.MustCompile(`^(describe|settings|inspect|request|process/link)`)))
}
