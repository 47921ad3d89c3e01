// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"sync"
	"syscall"

	mqtt "github.com/longshore-go/longshore/plugins/mqtt/settings"
)

// ready is what a worker prints once it gets jobs.
const ready = "ready"

// crew keeps a process for each worker, as a service manager does: one that is
// killed is started again.
type crew struct {
	url    mqtt.URL
	ctx    context.Context // ends when they are to stop
	cancel context.CancelFunc
	all    sync.WaitGroup
	failed chan error // the first that could not be started again
}

func newCrew(ctx context.Context, url mqtt.URL) *crew {
	c := &crew{url: url, failed: make(chan error, 1)}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// stop tells all workers to stop, and waits for them.
func (c *crew) stop() {
	c.cancel()
	c.all.Wait()
}

// hire starts a worker. It returns once it gets jobs.
func (c *crew) hire(name string) error {
	w, err := c.start(name)
	if err != nil {
		return err
	}
	c.all.Go(func() {
		for {
			err := w.Wait()
			if c.ctx.Err() != nil {
				return
			}
			log.Printf("%s has ended: %v", name, err)
			if w, err = c.start(name); err != nil {
				select {
				case c.failed <- err:
				default: // another one was first
				}
				return
			}
		}
	})
	return nil
}

// start starts a process for a worker. It returns once it gets jobs.
func (c *crew) start(name string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := exec.CommandContext(c.ctx, self, string(c.url), name)
	w.Cancel = func() error { return w.Process.Signal(syscall.SIGTERM) }
	w.Stderr = os.Stderr
	out, err := w.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.Start(); err != nil {
		return nil, fmt.Errorf("start the worker %s: %w", name, err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != ready+"\n" {
		return nil, fmt.Errorf("the worker %s does not get ready: %w", name, errors.Join(err, w.Wait()))
	}
	return w, nil
}
