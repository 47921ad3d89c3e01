// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"os"
	"strings"
	"sync"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/wire"
)

// exitStatus is the status of a process that ends after an ack.
const exitStatus = 7

// commands are the faults in force.
type commands struct {
	receive, settle gate
	acks            int64 // left until the process ends, 0 = it does not
	before          bool
	panics          map[string]bool
}

// gate holds up whoever passes while it is shut.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // nil = open
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case shut && g.shut == nil:
		g.shut = make(chan struct{})
	case !shut && g.shut != nil:
		close(g.shut)
		g.shut = nil
	}
}

// pass waits while the gate is shut and the link is not given up.
func (g *gate) pass(l *link) {
	for {
		g.mu.Lock()
		shut := g.shut
		g.mu.Unlock()
		if shut == nil {
			return
		}
		select {
		case <-shut:
		case <-l.life.Done():
			return
		}
	}
}

func (l *link) hangReceive() { l.commands.receive.pass(l) }
func (l *link) hangSettle()  { l.commands.settle.pass(l) }

// panicAt panics when that was asked for.
func (l *link) panicAt(where string) {
	l.mu.Lock()
	now := l.commands.panics[where]
	delete(l.commands.panics, where)
	l.mu.Unlock()
	if now {
		panic("memory transport: panic on command in " + where)
	}
}

// countAck counts an ack. It reports whether the process ends with it, and
// whether before it is carried out.
func (l *link) countAck() (last, before bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.commands.acks == 0 {
		return false, false
	}
	l.commands.acks--
	return l.commands.acks == 0, l.commands.before
}

// exit ends the process. Where it has no way to, the link falls silent for good.
func (l *link) exit(status int) {
	if l.transport.exit != nil {
		l.transport.exit(status)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	if l.conn != nil {
		_ = l.conn.Close()
	}
}

// command carries out what a test asks for.
func (l *link) command(f *wire.Frame) {
	var fault *core.Fault
	switch f.Text {
	case memory.CommandHangReceive:
		l.commands.receive.set(f.Num == 1)
		l.recall()
	case memory.CommandHangSettle:
		l.commands.settle.set(f.Num == 1)
	case memory.CommandPanic:
		if f.Name == memory.PanicGoroutine {
			l.wg.Go(func() { panic("memory transport: panic on command in a goroutine") })
			return
		}
		l.mu.Lock()
		if l.commands.panics == nil {
			l.commands.panics = map[string]bool{}
		}
		l.commands.panics[f.Name] = true
		l.mu.Unlock()
		l.recall()
	case memory.CommandExit:
		l.exit(int(f.Num))
	case memory.CommandExitAfter:
		l.mu.Lock()
		l.commands.acks, l.commands.before = f.Num, f.Num2 == 1
		l.mu.Unlock()
	case memory.CommandNoise:
		l.noise(f)
	case memory.CommandResume:
		l.mu.Lock()
		keep := l.resumed
		l.mu.Unlock()
		if keep != nil {
			keep(f.Data)
		}
	default:
		fault = &core.Fault{Code: core.FaultUnsupported, Message: "unknown command " + f.Text}
	}
	// The broker that asked is the broker that reads; its end needs no answer.
	_ = l.tell(&wire.Frame{Kind: wire.Done, Req: f.Req, Fault: fault})
}

// recall makes every Receive under way look again.
func (l *link) recall() {
	l.mu.Lock()
	subs := l.opened()
	l.mu.Unlock()
	for _, s := range subs {
		s.signal()
	}
}

func (l *link) noise(f *wire.Frame) {
	for range f.Num {
		switch f.Name {
		case "stdout":
			_, _ = os.Stdout.Write(f.Data)
		case "stderr":
			_, _ = os.Stderr.Write(f.Data)
		default:
			l.log.Warn(strings.TrimSpace(string(f.Data)))
		}
	}
}
