// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/longshore-go/longshore/internal/conform/liar"
)

// flushTime is what a plugin may take for accepted publishes once its host is gone.
const flushTime = time.Second

// leash waits for the end of standard input, which is the end of the host.
func (p *plugin) leash() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	if p.conduct.Load().IgnoresLeash {
		time.Sleep(liar.LeashLie)
	}
	p.abandon(flushTime)
	if dir := os.Getenv("LONGSHORE_RUN_DIR"); dir != "" && !p.conduct.Load().KeepsRunDir {
		_ = os.RemoveAll(dir)
	}
	os.Exit(0)
}

// leaveChild starts a process that outlives this one. It ends by itself, so that
// tests leave nothing behind for long.
func leaveChild() {
	c := exec.Command("sleep", fmt.Sprint(liar.LeashLie.Seconds()))
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		logf(levelError, "start a child: %v", err)
		return
	}
	go func() { _ = c.Wait() }()
}

// abandon ends the endpoint of a host that is gone: nothing is received, no
// verdict is carried out, accepted publishes are stored within limit.
func (p *plugin) abandon(limit time.Duration) {
	p.store.frozen.Store(true)
	p.mu.Lock()
	pub := p.publishing
	subs := make([]*subscription, 0, len(p.subs))
	for _, s := range p.subs {
		subs = append(subs, s)
	}
	p.mu.Unlock()
	for _, s := range subs {
		s.stop()
	}
	if pub != nil {
		pub.still(time.Now().Add(limit))
		pub.flush()
	}
	p.store.close()
}
