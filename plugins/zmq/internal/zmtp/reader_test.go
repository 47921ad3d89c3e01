// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// told is what a reader hands out, as text: messages with their frames,
// commands with their bodies, and the error in the end.
func told(r *zmtp.Reader) []string {
	var (
		all []string
		f   zmtp.Frames
	)
	for {
		if err := next(r, &f); err != nil {
			return append(all, err.Error())
		}
		all = append(all, text(&f))
		r.Spent()
	}
}

func text(f *zmtp.Frames) string {
	if f.Command != "" {
		return fmt.Sprintf("%s %q", f.Command, f.Body)
	}
	return fmt.Sprintf("%d frames of %d: %q", f.Count, f.Bytes, f.List)
}

// frames is a message of these frames.
func frames(bodies ...string) []byte {
	var b []byte
	for i, body := range bodies {
		b = zmtp.AppendFrame(b, []byte(body), i < len(bodies)-1)
	}
	return b
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func TestReader(t *testing.T) {
	many := strings.Split(strings.Repeat("f,", zmtp.MaxFrames), ",")[:zmtp.MaxFrames]
	long := strings.Repeat("p", 300)
	for name, tt := range map[string]struct {
		in   []byte
		want []string
	}{
		"nothing":              {nil, []string{"EOF"}},
		"one, two and four":    {join(frames("a"), frames("a", "b"), frames("a", "b", "c", "d")), []string{`1 frames of 1: ["a"]`, `2 frames of 2: ["a" "b"]`, `4 frames of 4: ["a" "b" "c" "d"]`, "EOF"}},
		"empty frames":         {frames("", "", ""), []string{`3 frames of 0: ["" "" ""]`, "EOF"}},
		"long frame":           {frames("a", long), []string{fmt.Sprintf(`2 frames of 301: ["a" %q]`, long), "EOF"}},
		"short in a long form": {[]byte("\x02\x00\x00\x00\x00\x00\x00\x00\x01x"), []string{`1 frames of 1: ["x"]`, "EOF"}},
		"ten frames":           {frames("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"), []string{`10 frames of 10: ["0" "1" "2" "3" "4" "5" "6" "7"]`, "EOF"}},
		"most frames":          {frames(many...), []string{`1024 frames of 1024: ["f" "f" "f" "f" "f" "f" "f" "f"]`, "EOF"}},
		"too many frames":      {frames(append(many, "f")...), []string{"ZMTP: a message of too many frames: the limit is 1024"}},
		"cut in a head":        {frames("a", "b")[:4], []string{"unexpected EOF"}},
		"cut in a body":        {frames("abc")[:4], []string{"unexpected EOF"}},
		"cut between frames":   {frames("a", "b")[:3], []string{"unexpected EOF"}},
		"reserved flags":       {join(frames("a"), []byte{8, 0}), []string{`1 frames of 1: ["a"]`, "ZMTP: a frame with reserved flags (0x08)"}},
		"HTTP":                 {[]byte("GET / HTTP/1.1\r\n"), []string{"ZMTP: a frame with reserved flags (0x47)"}},
		"command with more":    {[]byte("\x05\x05\x04PING"), []string{"ZMTP: a command that more frames are to follow"}},
		"command of 1 MiB":     {[]byte{6, 0, 0, 0, 0, 0, 0x10, 0, 0}, []string{"ZMTP: a command of 1048576 bytes: the limit is 65536"}},
		"empty command":        {[]byte{4, 0}, []string{"ZMTP: a command without a name"}},
		"command's empty name": {[]byte{4, 1, 0}, []string{"ZMTP: a command without a name"}},
		"command's name cut":   {[]byte("\x04\x03\x04PI"), []string{"ZMTP: a command without a name"}},
		"unknown command":      {[]byte("\x04\x08\x05HELLOxy"), []string{`HELLO "xy"`, "EOF"}},
		"PING among messages":  {join(frames("a"), zmtp.AppendPing(nil, time.Second, []byte("c")), frames("b")), []string{`1 frames of 1: ["a"]`, `PING "\x00\nc"`, `1 frames of 1: ["b"]`, "EOF"}},
		"PING within one": {join(frames("a", "")[:3], zmtp.AppendPing(nil, 0, nil), []byte("\x01\x01b"), zmtp.AppendPong(nil, []byte("c")), []byte("\x00\x01c"), frames("d")),
			[]string{`PING "\x00\x00"`, `PONG "c"`, `3 frames of 3: ["a" "b" "c"]`, `1 frames of 1: ["d"]`, "EOF"}},
	} {
		t.Run(name, func(t *testing.T) {
			for way, source := range map[string]io.Reader{
				"at once": bytes.NewReader(tt.in), "by bytes": iotest.OneByteReader(bytes.NewReader(tt.in)), "with its end": iotest.DataErrReader(bytes.NewReader(tt.in)),
			} {
				if diff := cmp.Diff(tt.want, told(zmtp.NewReader(source, mib))); diff != "" {
					t.Errorf("%s: %s", way, diff)
				}
			}
		})
	}
}

// Where there is an error there is no message, also where the one before is
// still in what Next was given.
func TestReaderErrorIsNoMessage(t *testing.T) {
	for name, end := range map[string]string{"empty command": "\x04\x00", "flags": "\x08\x00", "command's name cut": "\x04\x01\xff"} {
		r := zmtp.NewReader(bytes.NewReader(join(frames("a"), []byte(end))), mib)
		var f zmtp.Frames
		if err := next(r, &f); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if ok, err := r.Next(&f); ok || err == nil {
				t.Errorf("%s: Next returns %v, %v", name, ok, err)
			}
		}
	}
}

// Commands between the frames of a message cost what they take themselves,
// however large the frames before them are: none of those is copied for them.
// Nor do they fill memory.
func TestReaderCommandsWithinAMessage(t *testing.T) {
	const size = 60 << 10
	ping := zmtp.AppendPing(nil, time.Second, []byte("0123456789abcdef"))
	begin := frames(strings.Repeat("f", size), "")
	begin = begin[:len(begin)-2] // and the last frame is still to come
	most := 64 << 10 / len(ping)
	in := join(begin, bytes.Repeat(ping, most), frames("end"), begin, bytes.Repeat(ping, most+1), frames("end"))
	r := zmtp.NewReader(bytes.NewReader(in), mib)
	var f zmtp.Frames
	for range most {
		if err := next(r, &f); err != nil || f.Command != zmtp.CommandPing || len(f.Body) != 18 {
			t.Fatalf("%q %q, %v", f.Command, f.Body, err)
		}
	}
	if err := next(r, &f); err != nil || f.Count != 2 || f.Bytes != size+3 || len(f.List[0]) != size || string(f.List[1]) != "end" {
		t.Fatalf("%d frames of %d bytes, %v", f.Count, f.Bytes, err)
	}
	for range most {
		if err := next(r, &f); err != nil {
			t.Fatal(err)
		}
	}
	var p *zmtp.ProtocolError
	if err := next(r, &f); !errors.As(err, &p) || p.Limit != 64<<10 {
		t.Errorf("one command too many: %v", err)
	}
}

// Messages of every size arrive whole, whatever was lent in between.
func TestReaderSizes(t *testing.T) {
	for _, size := range []int{0, 255, 256, 4 << 10, 64<<10 - 3, 64 << 10, 256<<10 - 9, 256 << 10, 700 << 10, 3 * mib} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			ours, peer := pair(t)
			payload := bytes.Repeat([]byte("0123456789abcde"), size/15+1)[:size]
			const count = 9
			go func() {
				for range count {
					_, _ = peer.Write(frames("name", "", string(payload)))
				}
				_ = peer.(*net.TCPConn).CloseWrite()
			}()
			r := zmtp.NewReader(ours, 4*mib)
			var loans [count]zmtp.Loan
			var kept [count][]byte
			var f zmtp.Frames
			for i := range count {
				if err := next(r, &f); err != nil {
					t.Fatal(err)
				}
				if f.Count != 3 || string(f.List[0]) != "name" || !bytes.Equal(f.List[2], payload) {
					t.Fatalf("message %d is another", i)
				}
				kept[i] = f.List[2]
				if i%3 > 0 {
					r.Lend(&loans[i])
				}
				if i >= 4 {
					if !bytes.Equal(kept[i-3], payload) {
						t.Fatalf("lent message %d has changed", i-3)
					}
					loans[i-3].Release()
				}
			}
			if err := next(r, &f); !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		})
	}
}

// Closing the connection, and the peer's end, end a wait.
func TestReaderWaitEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(ours, peer net.Conn)
		want error
	}{
		"closed here":     {func(ours, _ net.Conn) { _ = ours.Close() }, net.ErrClosed},
		"closed there":    {func(_, peer net.Conn) { _ = peer.Close() }, io.EOF},
		"within a frame":  {func(_, peer net.Conn) { _, _ = peer.Write([]byte{0, 9, 'x'}); _ = peer.Close() }, io.ErrUnexpectedEOF},
		"behind a frame":  {func(_, peer net.Conn) { _, _ = peer.Write(frames("x")); _ = peer.Close() }, io.EOF},
		"connection lost": {func(_, peer net.Conn) { _ = peer.(*net.TCPConn).SetLinger(0); _ = peer.Close() }, syscall.ECONNRESET},
	} {
		t.Run(name, func(t *testing.T) {
			ours, peer := pair(t)
			r := zmtp.NewReader(ours, mib)
			done := make(chan error, 1)
			go func() {
				var f zmtp.Frames
				for {
					if err := r.Wait(); err != nil {
						done <- err
						return
					}
					if err := r.Fill(); err != nil {
						done <- err
						return
					}
					for {
						if ok, err := r.Next(&f); !ok || err != nil {
							break
						}
					}
				}
			}()
			tt.end(ours, peer)
			if err := <-done; !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
}
