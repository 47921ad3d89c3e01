// SPDX-License-Identifier: Apache-2.0

package outq

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/pluginapi"
)

func (q *Queue) begunBytes() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.begun
}

// What is written in part no peer can read: it is sent elsewhere, whole.
func TestPartlyWrittenIsNotSent(t *testing.T) {
	near, _ := connected(t, "tcp")
	q := New(near, Limits{})
	r := newReceipts()
	big := &core.Message{Name: "orders", Payload: make([]byte, 16<<20)}
	for i := range 3 {
		if !q.Push(big, "orders", nil, r.ticket(i)) {
			t.Fatal("no room")
		}
	}
	zmqtest.Until(t, "a part is written", func() bool { return q.begunBytes() > 0 })
	left := q.Abort(errors.New("the cable is cut"))
	for i := range 3 {
		if len(left) != 3 || left[i].Ticket().I != i || left[i].Size() < len(big.Payload) {
			t.Fatalf("unsent %v, want all three whole", left)
		}
	}
	if len(r.got) != 0 {
		t.Errorf("receipts %v", r.got)
	}
	if q.Push(text("late"), "orders", nil, r.ticket(9)) || q.Room() {
		t.Error("an ended queue takes messages")
	}
	if again := q.Abort(nil); again != nil {
		t.Errorf("a second Abort returns %d messages", len(again))
	}
}

// TestFates writes random messages to a peer that reads some of them and hears
// the end at a random time: what it can read is what the receipts say, to the
// byte.
func TestFates(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		network := rapid.SampledFrom([]string{"tcp", "unix"}).Draw(rt, "network")
		near, far := connected(t, network)
		defer near.Close()
		defer far.Close()
		q := New(near, Limits{Messages: rapid.IntRange(1, 64).Draw(rt, "messages"), Bytes: 32 << 20})
		r := newReceipts()
		read := rapid.IntRange(0, 9<<20).Draw(rt, "read")
		got := make(chan []byte, 1)
		go func() {
			head := make([]byte, read)
			n, _ := io.ReadFull(far, head)
			got <- head[:n]
		}()
		var all [][]byte
		for i := range rapid.IntRange(1, 60).Draw(rt, "n") {
			size := rapid.SampledFrom([]int{0, 10, 300, 9000, copyMost + 1, 900_000}).Draw(rt, "size")
			m := &core.Message{Name: "jobs", Payload: bytes.Repeat([]byte{byte(i + 1)}, size)}
			if q.Push(m, "jobs", nil, r.ticket(i)) {
				all = append(all, appendMessage(nil, m, "jobs", nil, true))
			} else {
				all = append(all, nil)
				r.done(i, pluginapi.Refused(nil))
			}
		}
		if rapid.Bool().Draw(rt, "wait") {
			zmqtest.Until(t, "something is written", func() bool {
				n, _ := q.Depth()
				return q.begunBytes() > 0 || n == 0 || r.count(pluginapi.ReceiptConfirmed) > 0
			})
		}
		left := q.Abort(nil)
		near.Close()
		seen := <-got
		rest, _ := io.ReadAll(far)
		seen = append(seen, rest...)
		var want []byte
		unsent, partly := 0, []byte(nil) // the first that is handed back may have left in part
		for i, encoded := range all {
			switch xs := r.got[i]; {
			case len(xs) > 1:
				rt.Fatalf("message %d has %d receipts", i, len(xs))
			case len(xs) == 0:
				if u := left[unsent]; u.Ticket().I != i || !bytes.Equal(append(u.head, u.payload...), encoded) {
					rt.Fatalf("message %d is not what was handed back in its place", i)
				}
				if unsent++; unsent == 1 {
					partly = encoded
				}
			case xs[0].Status == pluginapi.ReceiptConfirmed:
				if unsent > 0 {
					rt.Fatalf("message %d is confirmed behind one that is not", i)
				}
				want = append(want, encoded...)
			case xs[0].Status == pluginapi.ReceiptUnknown:
				rt.Fatalf("message %d is unknown", i)
			}
		}
		if unsent != len(left) {
			rt.Fatalf("%d handed back, %d without a receipt", len(left), unsent)
		}
		if part := len(seen) - len(want); !bytes.HasPrefix(seen, want) || !bytes.HasPrefix(partly, seen[len(want):]) || part > 0 && part == len(partly) {
			rt.Fatalf("the peer has %d bytes; %d are confirmed, and the next one has %d", len(seen), len(want), len(partly))
		}
	})
}

func TestWriteFails(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			near, far := connected(t, network)
			q := New(near, Limits{Messages: 1 << 20})
			if tcp, ok := far.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			far.Close()
			r := newReceipts()
			n := 0
			zmqtest.Until(t, "the write fails", func() bool {
				if q.Push(text("x"), "jobs", nil, r.ticket(n)) {
					n++
				}
				return q.Err() != nil
			})
			if _, err := near.Read(make([]byte, 1)); err == nil {
				t.Error("who reads the connection sees no end")
			}
			q.Finish(t.Context()) // returns at once
			left := q.Abort(errors.New("other"))
			if c := r.count(pluginapi.ReceiptConfirmed); len(left)+c != n || len(left) == 0 {
				t.Errorf("%d confirmed and %d unsent of %d", c, len(left), n)
			}
			if q.Err().Error() == "other" {
				t.Error("the cause of the failed write is lost")
			}
		})
	}
}

func TestFinishIsBounded(t *testing.T) {
	near, _ := connected(t, "tcp")
	q := New(near, Limits{})
	r := newReceipts()
	q.Push(&core.Message{Payload: make([]byte, 16<<20)}, "", nil, r.ticket(0))
	q.Push(text("behind"), "jobs", nil, r.ticket(1))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	q.Finish(ctx)
	left := q.Abort(nil)
	if d := time.Since(start); d > limit/2 {
		t.Errorf("a peer that does not read holds Finish for %v", d)
	}
	if len(left) != 2 || len(r.got) != 0 {
		t.Errorf("%d unsent, receipts %v", len(left), r.got)
	}
}

func TestFinishWaitsForThePeersEnd(t *testing.T) {
	near, far := connected(t, "tcp")
	q := New(near, Limits{})
	r := newReceipts()
	q.Push(text("last"), "jobs", nil, r.ticket(0))
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		q.Finish(t.Context())
	}()
	if b, err := io.ReadAll(far); err != nil || !bytes.HasSuffix(b, []byte("last")) {
		t.Fatalf("the peer reads %q, %v", b, err)
	}
	select {
	case <-finished:
		t.Error("Finish returns while the peer is there")
	default:
	}
	far.Close()
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the peer's end: %v", err)
	}
	q.Abort(io.EOF)
	<-finished
}

func TestBoundMessagesStay(t *testing.T) {
	near, _ := connected(t, "tcp")
	q := New(near, Limits{})
	r := newReceipts()
	q.Push(&core.Message{Payload: make([]byte, 16<<20)}, "", nil, r.ticket(0))
	bound := r.ticket(1)
	bound.Bound = true
	q.Push(text("x"), "jobs", nil, bound)
	zmqtest.Until(t, "a part is written", func() bool { return q.begunBytes() > 0 })
	if left := q.Abort(nil); len(left) != 1 || left[0].Ticket().I != 0 {
		t.Errorf("handed back %v, want the one that is not bound", left)
	}
	if x := r.got[1]; len(x) != 1 || x[0].Status != pluginapi.ReceiptRefused || !strings.Contains(x[0].Fault.Message, "not sent") {
		t.Errorf("receipt %v, want refused", x)
	}
}
