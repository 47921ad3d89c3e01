// SPDX-License-Identifier: Apache-2.0

package zmq_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/interop/libzmq"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// party makes what a service talks to: sockets of libzmq, or endpoints of ours.
type party interface {
	// open opens the far end of a kind: PUSH, PULL, PUB, SUB, DEALER or ROUTER. It
	// listens at an address, or dials what it is given; SUB takes a prefix.
	open(t *testing.T, kind string, w where) end
}

// where says where a far end is.
type where struct {
	bind    string
	connect []string
	prefix  string
}

// end is a far end. Messages look as "name payload header=value ...".
type end interface {
	address() string
	// put sends a message; a DEALER's is a request, a ROUTER's a reply to the
	// request that it got last. A PUB's is sent once somebody wants it.
	put(name, payload string, headers ...string)
	try(name, payload string) // sends a message, whether or not somebody wants it
	got(n int) []string       // waits for n further messages
	rest() []string           // waits until nothing comes any more
	loses()                   // waits until one that dials has seen the end of its peer
	close()
}

// parties runs a test with each kind of far end, beside each other: they wait a lot.
func parties(t *testing.T, f func(t *testing.T, p party)) {
	for name, p := range map[string]party{"libzmq": foreign{}, "longshore": own{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, p)
		})
	}
}

// foreign opens sockets of libzmq, each in a process of its own.
type foreign struct{}

type foreignEnd struct {
	t    *testing.T
	kind string
	p    *libzmq.Peer
	s    *libzmq.Socket
	from string // the peer whose request came last
}

func (foreign) open(t *testing.T, kind string, w where) end {
	t.Helper()
	return openForeign(t, kind, w)
}

func openForeign(t *testing.T, kind string, w where) *foreignEnd {
	t.Helper()
	o := libzmq.Options{Connect: w.connect}
	if w.bind != "" {
		o.Bind = []string{strings.Replace(w.bind, ":0", ":*", 1)}
	}
	e := &foreignEnd{t: t, kind: kind, p: libzmq.Start(t)}
	switch kind {
	case "SUB":
		o.Subscribe = []string{w.prefix}
	case "PUB":
		kind = "XPUB" // which hears of subscriptions
	}
	e.s = e.p.Open(kind, o)
	return e
}

func (e *foreignEnd) address() string { return e.s.Address() }

func (e *foreignEnd) put(name, payload string, headers ...string) {
	e.t.Helper()
	var lines []string
	for i := 0; i < len(headers); i += 2 {
		lines = append(lines, headers[i]+": "+headers[i+1])
	}
	frames := []string{name, strings.Join(lines, "\n"), payload}
	switch {
	case e.kind == "PUB" && e.from == "":
		e.subscribed()
	case e.kind == "ROUTER":
		frames = append([]string{e.from}, frames...)
	}
	e.s.Send(frames...)
}

// subscribed waits for the first subscription.
func (e *foreignEnd) subscribed() {
	e.t.Helper()
	e.from = string(e.s.Receive(1)[0][0])
	if !strings.HasPrefix(e.from, "\x01") {
		e.t.Errorf("the first subscription is %q", e.from)
	}
}

func (e *foreignEnd) try(name, payload string) {
	e.t.Helper()
	e.s.Send(name, "", payload)
}

func (e *foreignEnd) got(n int) []string {
	e.t.Helper()
	return e.read(e.s.Receive(n))
}

func (e *foreignEnd) rest() []string {
	e.t.Helper()
	if e.kind == "PUB" {
		return nil // what comes are subscriptions
	}
	return e.read(e.s.Rest())
}

func (e *foreignEnd) loses() {
	e.t.Helper()
	e.s.Sees("DISCONNECTED")
}

func (e *foreignEnd) close() {
	e.t.Helper()
	e.p.Kill()
}

// read takes messages apart as reference 3.1 has them on the wire, by a reader of
// its own: three frames, headers as lines "name: value", an empty frame without
// any.
func (e *foreignEnd) read(msgs [][][]byte) []string {
	e.t.Helper()
	var texts []string
	for _, frames := range msgs {
		if e.kind == "ROUTER" {
			e.from, frames = string(frames[0]), frames[1:]
		}
		if len(frames) != 3 {
			e.t.Errorf("%q has not three frames", frames)
			continue
		}
		var hs core.Headers
		if len(frames[1]) > 0 {
			for line := range strings.SplitSeq(string(frames[1]), "\n") {
				name, value, ok := strings.Cut(line, ": ")
				if !ok || name != strings.TrimSpace(name) || value != strings.TrimSpace(value) {
					e.t.Errorf("the header line %q", line)
				}
				hs = append(hs, core.Header{Name: name, Value: []byte(value)})
			}
		}
		texts = append(texts, servicetest.Text(string(frames[0]), frames[2], hs))
	}
	return texts
}

// own opens endpoints of this transport, without a host.
type own struct{}

type ownEnd struct {
	*bench
	kind string
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	texts []string // what has come and was not taken yet
	link  pluginapi.LinkState
	from  core.Message
}

var patterns = map[string]string{
	"PUSH": settings.PatternQueue, "PULL": settings.PatternQueue, "PUB": settings.PatternFanOut, "SUB": settings.PatternFanOut,
	"DEALER": settings.PatternRPC, "ROUTER": settings.PatternRPC,
}

func (own) open(t *testing.T, kind string, w where) end {
	t.Helper()
	name := w.prefix
	if name == "" {
		name = "any"
	}
	set := settings.Settings{Pattern: patterns[kind], Bind: w.bind, Connect: w.connect, PeerWait: longestWait}
	reads := slices.Contains([]string{"PULL", "SUB", "ROUTER"}, kind)
	var u pluginapi.Usage
	if reads {
		u = reading(name)
	}
	e := &ownEnd{bench: connect(t, set, u), kind: kind}
	ctx, cancel := context.WithCancel(e.ctx)
	e.stop = sync.OnceFunc(func() {
		cancel()
		e.end()
		e.done.Wait()
	})
	t.Cleanup(e.stop)
	e.conn.(pluginapi.LinkReporter).ReportLink(func(s pluginapi.LinkState) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.link = s
	})
	if reads {
		s := e.subscribe(name)
		e.done.Go(func() { e.collect(ctx, s) })
	}
	return e
}

// collect receives until the end.
func (e *ownEnd) collect(ctx context.Context, s pluginapi.Subscription) {
	for {
		batch, err := s.Receive(ctx, servicetest.Plenty)
		for _, d := range batch.Deliveries {
			m := d.Message.Clone()
			if e.kind == "ROUTER" { // its own header, which the test does not know
				e.mu.Lock()
				e.from = m
				e.mu.Unlock()
				m.Headers = slices.DeleteFunc(slices.Clone(m.Headers), func(h core.Header) bool { return h.Name == "reply-to" })
			}
			e.came(servicetest.Text(m.Name, m.Payload, m.Headers))
		}
		if batch.Memory != nil {
			batch.Memory.Release()
		}
		if err != nil {
			if !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
				e.came(err.Error())
			}
			return
		}
	}
}

func (e *ownEnd) came(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.texts = append(e.texts, text)
}

// take takes at most n of what has come.
func (e *ownEnd) take(n int) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	n = min(n, len(e.texts))
	texts := e.texts[:n:n]
	e.texts = e.texts[n:]
	return texts
}

func (e *ownEnd) put(name, payload string, headers ...string) {
	e.t.Helper()
	m := servicetest.Message(name, payload, headers...)
	switch e.kind {
	case "DEALER":
		e.done.Go(func() {
			reply, err := e.conn.(pluginapi.Requester).Request(e.ctx, m)
			if err != nil {
				e.came("failed: " + err.Error())
				return
			}
			e.came(servicetest.Text(reply.Name, reply.Payload, reply.Headers))
		})
		return
	case "ROUTER":
		e.mu.Lock()
		to, _ := e.from.Headers.Get("reply-to")
		e.mu.Unlock()
		m.Message.Name = string(to)
	}
	eventually(e.t, "somebody wants "+name, func() bool {
		r := e.publish(m)[0]
		if r.Status != pluginapi.ReceiptConfirmed {
			e.t.Fatalf("published %s: %v", payload, r.Fault)
		}
		return !r.Unrouted
	})
}

func (e *ownEnd) try(name, payload string) {
	e.t.Helper()
	e.publish(servicetest.Message(name, payload))
}

func (e *ownEnd) got(n int) []string {
	e.t.Helper()
	var texts []string
	eventually(e.t, "messages have come", func() bool {
		texts = append(texts, e.take(n-len(texts))...)
		return len(texts) == n
	})
	return texts
}

// rest waits until nothing has come for as long as libzmq's sockets wait.
func (e *ownEnd) rest() []string {
	e.t.Helper()
	const quiet = 150 * time.Millisecond
	var texts []string
	last := time.Now()
	eventually(e.t, "nothing comes any more", func() bool {
		if more := e.take(1 << 30); len(more) > 0 {
			texts, last = append(texts, more...), time.Now()
		}
		return time.Since(last) >= quiet
	})
	return texts
}

func (e *ownEnd) loses() {
	e.t.Helper()
	eventually(e.t, "the peer is lost", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.link.Reason != ""
	})
}

func (e *ownEnd) close() { e.stop() }
