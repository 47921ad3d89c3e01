// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// wire is a PUSH peer whose every byte is known: what it has sent lies in its
// peer's process, or in its peer's operating system.
type wire struct {
	t       *testing.T
	conn    *net.TCPConn
	drained chan struct{}
}

// wirePeer makes one of a connection.
func wirePeer(t *testing.T, c net.Conn) *wire {
	t.Helper()
	w := &wire{t: t, drained: make(chan struct{})}
	w.conn, _ = c.(*net.TCPConn)
	go func() {
		defer close(w.drained)
		_, _ = io.Copy(io.Discard, c)
	}()
	t.Cleanup(func() {
		_ = c.Close()
		<-w.drained
	})
	if _, err := c.Write(greeting("PUSH")); err != nil {
		t.Fatal(err)
	}
	return w
}

// wireMessage is a message on the wire, and the sizes of its frames and of it.
func wireMessage(payload string) []byte {
	m := append([]byte{1, 4}, "jobs"...)
	m = append(m, 1, 0)
	return append(append(m, 0, byte(len(payload))), payload...)
}

// sends sends n messages of one size and waits until all of their bytes are at
// the peer's side.
func (w *wire) sends(n int) {
	w.t.Helper()
	var b bytes.Buffer
	for i := range n {
		b.Write(wireMessage(fmt.Sprintf("m%05d%0*d", i, floodPayload-6, 0)))
	}
	if _, err := w.conn.Write(b.Bytes()); err != nil {
		w.t.Fatal(err)
	}
	raw, err := w.conn.SyscallConn()
	if err != nil {
		w.t.Fatal(err)
	}
	eventually(w.t, "all bytes are at the other side", func() bool {
		left := -1
		_ = raw.Control(func(fd uintptr) { left, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
		return err == nil && left == 0
	})
}

// The sizes of a message in a flood: its payload, its frames, and its bytes.
const (
	floodPayload = 90
	floodFrames  = 4 + floodPayload
	floodBytes   = floodFrames + 6
)

// told is how many messages of a flood the plugin says were lost at the stop: of
// peers, and of its own queue.
func toldLost(t *testing.T, b *book) (peers, own int) {
	t.Helper()
	for _, l := range b.having("WARN", "messages are lost") {
		number := func(key string) int {
			n, err := strconv.Atoi(l.text(key))
			if err != nil {
				t.Errorf("%s: %v in %v", key, err, l)
			}
			return n
		}
		read := number("read")
		peers += read + (number("bytes")-read*floodFrames)/floodBytes
		own += number("own")
	}
	return peers, own
}

// A service is stopped while far more waits for it than it can handle: what has
// run and what is told as lost is what was sent, to the message.
func TestStopInAFlood(t *testing.T) { // alone, since it takes all there is of the machine
	const n = 900
	for _, side := range []string{"bound", "dialing"} {
		for _, limit := range []time.Duration{0, 3 * time.Second} { // handlers return, or do not
			for _, retries := range []bool{false, true} {
				if side == "dialing" && retries {
					continue
				}
				t.Run(fmt.Sprintf("%s, limit %v, retries %v", side, limit, retries), func(t *testing.T) {
					s := newService(t, host.WithDrainLimit(limit))
					var l net.Listener
					rules := []host.Rule{host.Workers(4)}
					var in *host.Endpoint
					if side == "bound" {
						in = s.zmq("in", bound(settings.PatternQueue, anyPort))
					} else {
						var err error
						if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
							t.Fatal(err)
						}
						defer l.Close()
						in = s.zmq("in", dialing(settings.PatternQueue, "tcp://"+l.Addr().String()))
						rules = append(rules, s.elsewhere())
					}
					release := make(chan struct{})
					if retries {
						rules = append(rules, host.MaxAttempts(2))
					}
					var ends atomic.Int64
					runs := s.notes(in.Subscription("jobs"), func(m *host.Message[[]byte]) error {
						if n := ends.Add(1); n > 300 {
							<-release
						}
						if retries && m.Attempt() == 1 {
							return host.Retry(nil)
						}
						return nil
					}, rules...)
					var w *wire
					if l == nil {
						s.serve()
						c, err := net.Dial("tcp", strings.TrimPrefix(s.at(in), "tcp://"))
						if err != nil {
							t.Fatal(err)
						}
						w = wirePeer(t, c)
					} else {
						s.serves()
						c, err := l.Accept()
						if err != nil {
							t.Fatal(err)
						}
						w = wirePeer(t, c)
					}
					w.sends(n)
					eventually(t, "the workers are busy", func() bool { return ends.Load() == 304 })
					s.stop()
					eventually(t, "it stops", func() bool { return len(s.log.having("INFO", "host stops")) > 0 })
					if limit == 0 {
						close(release)
					}
					err := s.ends()
					checkFlood(t, s, runs, n, err)
					if limit > 0 {
						close(release)
					}
				})
			}
		}
	}
}

// checkFlood adds up what became of n messages.
func checkFlood(t *testing.T, s *service, runs *tally, n int, err error) {
	t.Helper()
	var cut host.Abandoned
	if e, ok := errors.AsType[*host.AbandonedError](err); ok && len(e.Subscriptions) == 1 {
		cut = e.Subscriptions[0]
	} else if err != nil {
		t.Fatalf("the host ended with %v", err)
	}
	peers, own := toldLost(t, s.log)
	all, first := runs.total()
	c := s.counters("jobs")
	t.Logf("%d runs of %d messages; told: %d at the plugin, %d own; cut off %+v; counters %+v", all, first, peers, own, cut, c)
	// A message is done, or told to be lost by the plugin, or one of what was cut
	// off, or its copy is.
	done := int(c.Acked + c.Dropped)
	if sum := done + peers + own + cut.Unhandled + cut.Handlers + cut.Cancelled + cut.Lost + cut.Copies; sum != n {
		t.Errorf("%d are accounted for, of %d", sum, n)
	}
}

// The same where a second signal ends the service at once.
func TestStopInAFloodTwice(t *testing.T) { // alone, since it takes all there is of the machine
	const n = 800
	dir, _ := gates(t)
	address := freeAddress(t)
	p := startChild(t, childConfig{
		Endpoints:     []childEndpoint{{Name: "in", Plugin: "zmq", Path: zmqPlugin(t), Settings: bound(settings.PatternQueue, address)}},
		Subscriptions: []childSubscription{{From: "in", Name: "jobs", Waits: "never"}},
		Gates:         dir,
	}, inFolder(socketFolder(t)))
	p.next("ready")
	c, err := net.Dial("tcp", strings.TrimPrefix(address, "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	wirePeer(t, c).sends(n)
	p.next("run")
	p.signal(syscall.SIGTERM)
	p.says("msg", "stopping; the next signal ends at once")
	signalled := time.Now()
	until(signalled.Add(200 * time.Millisecond)) // another signal is a second one
	p.signal(syscall.SIGTERM)
	if status := p.status(); status != 1 && status != 128+int(syscall.SIGTERM) {
		t.Errorf("status %d", status)
	}
	said := p.next("end").Error
	peers, _ := toldLost(t, p.log)
	told := 0
	for _, m := range regexp.MustCompile(`(\d+) (handlers|deliveries) `).FindAllStringSubmatch(said, -1) {
		one, _ := strconv.Atoi(m[1])
		told += one
	}
	t.Logf("%s; at the plugin %d", said, peers)
	// The plugin is ended at once as well, and may not come to say what it has.
	if told == 0 || peers > 0 && told+peers != n {
		t.Errorf("%d and %d at the plugin are told, of %d", told, peers, n)
	}
}
