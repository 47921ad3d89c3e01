// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/plugins/internal/poison"
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

// Lengths beyond the limit end the connection before memory is taken for them.
func TestReaderAbsurdLengths(t *testing.T) {
	for name, tt := range map[string]struct {
		head  string
		limit int64
	}{
		"2^63-1":                  {"\x02\x7f\xff\xff\xff\xff\xff\xff\xff", 64 * mib},
		"2^64-1":                  {"\x02\xff\xff\xff\xff\xff\xff\xff\xff", 64 * mib},
		"8 GiB":                   {"\x02\x00\x00\x00\x02\x00\x00\x00\x00", 64 * mib},
		"3 MiB with 1 MiB":        {"\x02\x00\x00\x00\x00\x00\x30\x00\x00", mib},
		"1 MiB and a byte":        {"\x02\x00\x00\x00\x00\x00\x10\x00\x01", mib},
		"1 MiB behind a byte":     {"\x01\x01x\x02\x00\x00\x00\x00\x00\x10\x00\x00", mib},
		"2^63-1 behind the first": {"\x01\x01x\x03\x7f\xff\xff\xff\xff\xff\xff\xff", 64 * mib},
		"2^63-1, no limit":        {"\x01\x01x\x03\x7f\xff\xff\xff\xff\xff\xff\xff", 1<<63 - 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := zmtp.NewReader(strings.NewReader(tt.head), tt.limit)
			var f zmtp.Frames
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := next(r, &f)
			runtime.ReadMemStats(&after)
			var fault *zmtp.ProtocolError
			if !errors.As(err, &fault) || fault.Limit == 0 {
				t.Fatalf("error %v", err)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 64<<10 {
				t.Errorf("%d bytes were taken", got)
			}
			if _, again := r.Next(&f); again == nil || again.Error() != err.Error() {
				t.Errorf("asked again: %v", again)
			}
		})
	}
}

// A message within the limit that was announced and has not arrived costs no
// more than a few times what has.
func TestReaderGrowsByArrival(t *testing.T) {
	const size = 64 * mib
	head := zmtp.AppendHead(nil, size, false)
	for _, arrived := range []int{0, 1 << 10, 300 << 10, 4 * mib} {
		r := zmtp.NewReader(io.MultiReader(bytes.NewReader(head), bytes.NewReader(make([]byte, arrived))), size)
		var f zmtp.Frames
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := next(r, &f)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
		// Every step is kept by the statistics, hence a sum of steps.
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(6*arrived+700<<10); got > most {
			t.Errorf("%d bytes were taken for %d that have arrived", got, arrived)
		}
	}
}

// What comes bit by bit behind a large frame of the same message does not move that
// frame each time.
func TestReaderMovesLittle(t *testing.T) {
	const size = 4 * mib
	begin := frames(strings.Repeat("f", size), "")
	in := begin[:len(begin)-2]
	for range 500 {
		in = append(zmtp.AppendPing(in, 0, nil), 1, 1, 'm') // a command, and a frame
	}
	r := zmtp.NewReader(io.MultiReader(bytes.NewReader(in), bytes.NewReader([]byte{0, 0})), 2*size)
	var f zmtp.Frames
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for f.Count == 0 {
		if err := next(r, &f); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if f.Count != 502 || f.Bytes != size+500 {
		t.Errorf("%d frames of %d bytes", f.Count, f.Bytes)
	}
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(6*size); got > most {
		t.Errorf("%d bytes were taken for %d that have arrived", got, len(in))
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

// Memory that was lent is not written until it is given back, and is poisoned
// then in builds that poison; memory handed out lasts until Spent.
func TestReaderLends(t *testing.T) {
	ours, peer := pair(t)
	r := zmtp.NewReader(ours, mib)
	var f zmtp.Frames
	type lent struct {
		loan zmtp.Loan
		body []byte
		want string
	}
	var all []*lent
	for i := range 2000 {
		l := &lent{want: strings.Repeat(fmt.Sprint(i%10), 1+i*7%900)}
		if _, err := peer.Write(frames(l.want)); err != nil {
			t.Fatal(err)
		}
		if err := next(r, &f); err != nil {
			t.Fatal(err)
		}
		l.body = f.List[0]
		if i%5 == 0 {
			r.Spent()
			if poison.On && l.body[0] != poison.Byte {
				t.Fatal("spent memory is not poisoned")
			}
			continue
		}
		r.Lend(&l.loan)
		all = append(all, l)
		if i%3 > 0 && len(all) > 20 {
			first := all[0]
			all = all[1:]
			if string(first.body) != first.want {
				t.Fatalf("%q has become %q", first.want, first.body)
			}
			if first.loan.Size() != len(first.body)+zmtp.HeadSize(len(first.body)) {
				t.Fatalf("%d bytes lent for %d", first.loan.Size(), len(first.body))
			}
			first.loan.Release()
			first.loan.Release() // there is nothing to give back any more
			if poison.On && first.body[0] != poison.Byte {
				t.Fatal("memory given back is not poisoned")
			}
		}
	}
	r.Close()
	for _, l := range all {
		if string(l.body) != l.want {
			t.Fatalf("%q has become %q", l.want, l.body)
		}
		l.loan.Release()
	}
}

// A reader that waits holds no memory; one that waits for the rest of a message
// holds that.
func TestReaderIdleHoldsNothing(t *testing.T) {
	ours, peer := pair(t)
	r := zmtp.NewReader(ours, mib)
	held := func() bool { return zmtp.Holds(r) }
	var f zmtp.Frames
	for i := range 3 {
		if _, err := peer.Write(frames("a")); err != nil {
			t.Fatal(err)
		}
		if err := next(r, &f); err != nil {
			t.Fatal(err)
		}
		r.Spent()
		_ = ours.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		wait := r.Wait
		if i == 1 {
			wait = r.Fill
		}
		if err := wait(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("error %v", err)
		}
		if held() {
			t.Error("memory is held")
		}
		_ = ours.SetReadDeadline(time.Time{})
	}
	if _, err := peer.Write(frames("abc")[:3]); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Wait(), r.Fill()); err != nil {
		t.Fatal(err)
	}
	_ = ours.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if err := r.Wait(); !errors.Is(err, os.ErrDeadlineExceeded) || !held() || r.Buffered() != 3 {
		t.Errorf("error %v, %d bytes", err, r.Buffered())
	}
	_ = ours.SetReadDeadline(time.Time{})
	if _, err := peer.Write([]byte("bc")); err != nil {
		t.Fatal(err)
	}
	if err := next(r, &f); err != nil || string(f.List[0]) != "abc" {
		t.Errorf("%q, %v", f.List, err)
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

// Reading, lending and giving back takes no memory once there is some.
func TestReaderAllocations(t *testing.T) {
	if poison.On {
		t.Skip("the race detector makes pools forget at random")
	}
	for name, size := range map[string]int{"64 B": 64, "512 B": 512, "16 KiB": 16 << 10, "200 KiB": 200 << 10} {
		t.Run(name, func(t *testing.T) {
			one := frames("orders", "", strings.Repeat("p", size))
			batch := bytes.Repeat(one, max(1, 64<<10/size))
			ours, peer := pair(t)
			r := zmtp.NewReader(ours, mib)
			var f zmtp.Frames
			var loan zmtp.Loan
			errs := make(chan error)
			begin := make(chan struct{})
			go func() {
				for range begin {
					_, err := peer.Write(batch)
					errs <- err
				}
			}()
			defer close(begin)
			got := testing.AllocsPerRun(200, func() {
				begin <- struct{}{}
				for left := len(batch); left > 0; left -= len(one) {
					if err := next(r, &f); err != nil {
						t.Fatal(err)
					}
				}
				if err := <-errs; err != nil {
					t.Fatal(err)
				}
				r.Lend(&loan)
				loan.Release()
			})
			if got >= 1 {
				t.Errorf("%v allocations for a batch", got)
			}
		})
	}
}
