// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/interop/libzmq"
	"github.com/longshore-go/longshore/plugins/zmq/settings"
)

// steadily sends a message again and again until it is told to stop, and returns
// how many it has sent.
func steadily(push *libzmq.Socket, every time.Duration) (stop func() int) {
	quit, done := make(chan struct{}), make(chan int)
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for n := 0; ; n++ {
			push.Send("jobs", "", fmt.Sprintf("steady%04d", n))
			select {
			case <-quit:
				done <- n + 1
				return
			case <-tick.C:
			}
		}
	}()
	return func() int {
		close(quit)
		return <-done
	}
}

// steady checks that all messages of steadily have run.
func steady(t *testing.T, runs *tally, n int) {
	t.Helper()
	for i := range n {
		key := fmt.Sprintf("steady%04d", i)
		eventually(t, key+" has run", func() bool { return runs.runs(key) == 1 })
	}
}

// Z-07: 2000 strangers that speak HTTP. A publisher loses nothing meanwhile, no
// connection is left, and the log has at most a line a second.
func TestZ07Rubbish(t *testing.T) {
	t.Parallel()
	const strangers = 2000
	s := newService(t)
	in := s.zmq("in", bound(settings.PatternQueue, anyPort))
	runs := s.notes(in.Subscription("jobs"), acks)
	s.serve()
	stop := steadily(libzmq.Start(t).Open("PUSH", libzmq.Options{Connect: []string{s.at(in)}}), time.Second)
	eventually(t, "the publisher is there", func() bool { n, _ := runs.total(); return n > 0 })
	before, began := openFiles(t, s.pid("in")), time.Now()
	for range strangers {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.at(in), "tcp://"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\n\r\n") // may be closed already
		_ = c.Close()
	}
	eventually(t, "their connections are closed", func() bool { return openFiles(t, s.pid("in")) <= before+5 })
	first, _ := runs.total()
	eventually(t, "the publisher goes on", func() bool { n, _ := runs.total(); return n > first })
	steady(t, runs, stop())
	lines := s.log.having("WARN", "no peer came of it")
	took := time.Since(began)
	if n := len(lines); n == 0 || n > 2+int(took/time.Second) {
		t.Errorf("%d lines in %v", n, took)
	}
	s.stops()
}

// greeting is what a peer of a socket type says first, and its READY (RFC 23).
func greeting(kind string) []byte {
	b := make([]byte, 64)
	b[0], b[9], b[10] = 0xff, 0x7f, 3
	copy(b[12:], "NULL")
	ready := "\x05READY" + "\x0bSocket-Type" + string(binary.BigEndian.AppendUint32(nil, uint32(len(kind)))) + kind
	return append(b, append([]byte{4, byte(len(ready))}, ready...)...)
}

// Z-08: a frame of an absurd length, and one over the limit, end that connection
// alone, with a warning that names the peer and the limit. Nothing is taken for
// it, and another publisher loses nothing.
func TestZ08Oversized(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		size  uint64
		limit int64
	}{
		"2^63-1": {math.MaxInt64, 0}, "8 GiB": {8 << 30, 0}, "3 MiB": {3 << 20, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			set := bound(settings.PatternQueue, anyPort)
			set.MaxMessage = tt.limit
			in := s.zmq("in", set)
			runs := s.notes(in.Subscription("jobs"), acks)
			s.serve()
			stop := steadily(libzmq.Start(t).Open("PUSH", libzmq.Options{Connect: []string{s.at(in)}}), 10*time.Millisecond)
			eventually(t, "the publisher is there", func() bool { n, _ := runs.total(); return n > 0 })
			pid, resident0 := s.pid("in"), resident(t, s.pid("in"))
			c, err := net.Dial("tcp", strings.TrimPrefix(s.at(in), "tcp://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(patience))
			_, err = c.Write(append(greeting("PUSH"), binary.BigEndian.AppendUint64([]byte{2}, tt.size)...))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("the connection is not closed: %v", err)
			}
			peer := c.LocalAddr().String()
			limit := fmt.Sprint(tt.limit)
			if tt.limit == 0 {
				limit = fmt.Sprint(64 << 20)
			}
			eventually(t, "it is told", func() bool { return len(s.log.having("WARN", peer)) > 0 })
			if text := s.log.having("WARN", peer)[0].text("reason"); !strings.Contains(text, limit) {
				t.Errorf("%q does not name the limit %s", text, limit)
			}
			if tt.limit > 0 { // a little more than the limit
				push := libzmq.Start(t).Open("PUSH", libzmq.Options{Connect: []string{s.at(in)}})
				push.Send("jobs", "", strings.Repeat("x", int(tt.limit)+1))
				push.Send("jobs", "", "behind it")
				eventually(t, "the one behind it has run", func() bool { return runs.runs("behind it") == 1 })
				if dec := s.log.of("L-DEC", "jobs"); len(dec) != 1 || !strings.Contains(fmt.Sprint(dec), limit) {
					t.Errorf("lines of L-DEC: %v", dec)
				}
			}
			steady(t, runs, stop())
			if grown := resident(t, pid) - resident0; grown > 32<<10 || !alive(pid) || s.pid("in") != pid {
				t.Errorf("the plugin has %d KiB more", grown)
			}
			s.stops()
		})
	}
}
