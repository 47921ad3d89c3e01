// SPDX-License-Identifier: Apache-2.0

package zmtp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/plugins/internal/poison"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

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
