// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory/wire"
)

// The commands that a broker gives a plugin.
const (
	CommandHangReceive = "hang-receive" // Num 1 on, 0 off
	CommandHangSettle  = "hang-settle"  // Num 1 on, 0 off
	CommandPanic       = "panic"        // Name where
	CommandExit        = "exit"         // Num status
	CommandExitAfter   = "exit-after"   // Num acks, Num2 1 = before the last is carried out
	CommandNoise       = "noise"        // Name stream, Num lines, Data the line
	CommandResume      = "resume"       // Data new resume bytes
)

// The places where a plugin panics.
const (
	PanicGoroutine = "goroutine" // of the transport's own: ends the process
	PanicReceive   = "receive"   // in the next Receive
	PanicSettle    = "settle"    // in the next Settle
	PanicPublish   = "publish"   // in the next Publish
)

// Client is a connected plugin: one connection of one life of its process.
type Client struct {
	p          *peer
	pid        int
	generation uint64
	session    string
}

// Client waits until a plugin of that endpoint is connected and returns the
// newest. After a kill wait for Gone first, or the dead one may be returned.
func (b *Broker) Client(ctx context.Context, endpoint string) (*Client, error) {
	var c *Client
	err := b.Wait(ctx, "a plugin of endpoint "+endpoint, func(View) bool {
		for _, p := range b.peers {
			if p.attached && p.endpoint == endpoint {
				c = &Client{p: p, pid: p.pid, generation: p.generation, session: p.session}
			}
		}
		return c != nil
	})
	return c, err
}

// PID returns the plugin's process id; in-process it is the test's own.
func (c *Client) PID() int { return c.pid }

// Generation returns the number of the plugin's life.
func (c *Client) Generation() uint64 { return c.generation }

// Session returns the name of its session.
func (c *Client) Session() string { return c.session }

// Gone is closed when the connection has ended.
func (c *Client) Gone() <-chan struct{} { return c.p.gone }

// WaitGone waits for the end of the connection.
func (c *Client) WaitGone(ctx context.Context) error {
	select {
	case <-c.p.gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for plugin %d to go: %w", c.pid, context.Cause(ctx))
	}
}

// Signal sends the process a signal.
func (c *Client) Signal(s syscall.Signal) error {
	if c.pid <= 1 || c.pid == os.Getpid() {
		return errors.New("signal plugin: it runs in this process")
	}
	return syscall.Kill(c.pid, s)
}

// Kill ends the process as kill -9 does and waits until its connection is
// gone.
func (c *Client) Kill() error {
	if err := c.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-c.p.gone
	return nil
}

// Disconnect ends the connection; the plugin dials again.
func (c *Client) Disconnect() {
	c.p.b.mu.Lock()
	defer c.p.b.mu.Unlock()
	c.p.b.leave(c.p)
}

// Slow waits before each frame that the broker sends; 0 ends that.
func (c *Client) Slow(pause time.Duration) {
	c.p.b.mu.Lock()
	defer c.p.b.mu.Unlock()
	c.p.pause = pause
}

// Exit ends the process with a status and waits until it is gone.
func (c *Client) Exit(ctx context.Context, status int) error {
	return c.fatal(ctx, &wire.Frame{Text: CommandExit, Num: int64(status)})
}

// ExitAfterAcks ends the process at its n-th ack from now on: after the broker
// has it and before the host hears of it, or, with before, without sending it.
func (c *Client) ExitAfterAcks(ctx context.Context, n int, before bool) error {
	f := &wire.Frame{Text: CommandExitAfter, Num: int64(n)}
	if before {
		f.Num2 = 1
	}
	return c.do(ctx, f)
}

// Panic makes the plugin panic in one of the places above.
func (c *Client) Panic(ctx context.Context, where string) error {
	f := &wire.Frame{Text: CommandPanic, Name: where}
	if where == PanicGoroutine {
		return c.fatal(ctx, f)
	}
	return c.do(ctx, f)
}

// HangReceive makes Receive hang, whatever happens to its context, or go on.
func (c *Client) HangReceive(ctx context.Context, on bool) error {
	return c.do(ctx, onOff(CommandHangReceive, on))
}

// HangSettle makes Settle hang, whatever happens to its context, or go on.
func (c *Client) HangSettle(ctx context.Context, on bool) error {
	return c.do(ctx, onOff(CommandHangSettle, on))
}

// Noise makes the plugin write lines to its "stdout" or "stderr", or to its
// "log" as warnings. A line is not ended by itself.
func (c *Client) Noise(ctx context.Context, stream, line string, times int) error {
	return c.do(ctx, &wire.Frame{Text: CommandNoise, Name: stream, Num: int64(times), Data: []byte(line)})
}

// SetResume changes the plugin's resume bytes, which it reports at once. They
// name the session that the next life takes over.
func (c *Client) SetResume(ctx context.Context, resume string) error {
	return c.do(ctx, &wire.Frame{Text: CommandResume, Data: []byte(resume)})
}

func onOff(command string, on bool) *wire.Frame {
	f := &wire.Frame{Text: command}
	if on {
		f.Num = 1
	}
	return f
}

// do sends a command and waits until it is in force.
func (c *Client) do(ctx context.Context, f *wire.Frame) error {
	done, err := c.start(f)
	if err != nil {
		return err
	}
	select {
	case flt := <-done:
		if flt != nil {
			return flt
		}
		return nil
	case <-c.p.gone:
		return fmt.Errorf("command plugin to %s: it is gone", f.Text)
	case <-ctx.Done():
		return fmt.Errorf("command plugin to %s: %w", f.Text, context.Cause(ctx))
	}
}

// fatal sends a command that ends the plugin.
func (c *Client) fatal(ctx context.Context, f *wire.Frame) error {
	if _, err := c.start(f); err != nil {
		return err
	}
	return c.WaitGone(ctx)
}

func (c *Client) start(f *wire.Frame) (chan *core.Fault, error) {
	b := c.p.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.p.left {
		return nil, fmt.Errorf("command plugin to %s: it is gone", f.Text)
	}
	f.Kind, f.Req = wire.Do, b.request()
	done := make(chan *core.Fault, 1)
	c.p.asked[f.Req] = done
	c.p.send(f)
	return done, nil
}
