// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// chunks hands out its bytes in pieces of the given sizes, again and again.
type chunks struct {
	rest  []byte
	sizes []byte
	at    int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := len(p)
	if len(c.sizes) > 0 {
		n = min(n, 1+int(c.sizes[c.at%len(c.sizes)]))
		c.at++
	}
	n = copy(p[:n], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Whatever a peer sends is read the same way however it comes in pieces,
// without a panic, and without memory beyond what has arrived.
func FuzzReader(f *testing.F) {
	f.Add(join(frames("a", "b", "c"), zmtp.AppendPing(nil, time.Second, []byte("c")), frames("", "d")), []byte{0, 3})
	f.Add(join(frames("a", "")[:3], zmtp.AppendPong(nil, nil), frames("b")), []byte{1})
	f.Add(zmtp.AppendHead(frames(strings.Repeat("a", 300)), 1<<40, false), []byte{200})
	f.Add([]byte("\x02\x7f\xff\xff\xff\xff\xff\xff\xff"), []byte{})
	f.Add([]byte("GET / HTTP/1.1\r\n"), []byte{0})
	f.Fuzz(func(t *testing.T, data, sizes []byte) {
		const most = 1 << 16
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		want := told(zmtp.NewReader(bytes.NewReader(data), most))
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 2*mib+uint64(50*len(data)) {
			t.Errorf("%d bytes were taken for %d", got, len(data))
		}
		got := toldByLoans(t, zmtp.NewReader(&chunks{rest: data, sizes: sizes}, most))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if end := want[len(want)-1]; end != "EOF" && end != "unexpected EOF" && !strings.HasPrefix(end, "ZMTP: ") {
			t.Errorf("ends with %q", end)
		}
	})
}

// toldByLoans is as told, with memory that is lent and given back later.
func toldByLoans(t *testing.T, r *zmtp.Reader) []string {
	type lent struct {
		loan zmtp.Loan
		f    zmtp.Frames
		text string
	}
	var (
		all  []string
		open []*lent
	)
	giveBack := func() {
		if now := text(&open[0].f); now != open[0].text {
			t.Errorf("%s has become %s", open[0].text, now)
		}
		open[0].loan.Release()
		open = open[1:]
	}
	for {
		l := &lent{}
		if err := next(r, &l.f); err != nil {
			for len(open) > 0 {
				giveBack()
			}
			return append(all, err.Error())
		}
		l.text = text(&l.f)
		all = append(all, l.text)
		r.Lend(&l.loan)
		if open = append(open, l); len(open) > 3 {
			giveBack()
		}
	}
}

// Whatever a peer sends in its handshake, the library does not panic and an
// error is a HandshakeError; what is behind the handshake is still there.
func FuzzHandshake(f *testing.F) {
	f.Add(hello("Socket-Type", "PUSH"))
	f.Add(append(hello("socket-type", "PUSH", "Identity", "me", "X-A", "b"), frames("behind")...))
	f.Add(hello("Socket-Type", "TELEX"))
	f.Add(append(greeting(3, 1, "NULL"), command("READY\x0bSocket-Type\xff\xff\xff\xffPUSH")...))
	f.Add(append(greeting(3, 1, "NULL"), command("ERROR\x04nope")...))
	f.Add(greeting(3, 0, "CURVE"))
	f.Add(greeting(1, 0, "")[:12])
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, peer := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			go func() { _, _ = io.Copy(io.Discard, peer) }()
			_, _ = peer.Write(data)
			_ = peer.Close()
		}()
		c, err := open(ours, zmtp.Options{Type: zmq4.Pull})
		if err != nil {
			var fault *zmtp.HandshakeError
			if !errors.As(err, &fault) || fault.Err == nil {
				t.Errorf("error %v", err)
			}
			<-done
			return
		}
		if c.PeerType() != zmq4.Push || len(c.PeerIdentity()) > zmtp.MaxIdentity {
			t.Errorf("a %s called %q", c.PeerType(), c.PeerIdentity())
		}
		size := 64 + readyLen(data[64:])
		want := told(zmtp.NewReader(bytes.NewReader(data[size:]), mib))
		if got := told(c.Reader()); !slices.Equal(got, want) {
			t.Errorf("behind the handshake: %q, want %q", got, want)
		}
		_ = ours.Close()
		<-done
	})
}

// readyLen is how long the frame at the beginning of b is.
func readyLen(b []byte) int {
	if b[0]&2 == 0 {
		return 2 + int(b[1])
	}
	return 9 + int(b[7])<<8 + int(b[8])
}
