// SPDX-License-Identifier: Apache-2.0

package outq

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/pluginapi"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// limit is how long a test waits for what must happen.
const limit = zmqtest.Patience

// connected returns the two ends of a connection of the network.
func connected(tb testing.TB, network string) (near, far net.Conn) {
	tb.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = tb.TempDir() + "/s"
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	near, err = net.Dial(network, l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	far, err = l.Accept()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// receipts collects what became of messages.
type receipts struct {
	mu    sync.Mutex
	got   map[int][]pluginapi.Receipt
	fresh chan struct{}
}

func newReceipts() *receipts {
	return &receipts{got: make(map[int][]pluginapi.Receipt), fresh: make(chan struct{}, 1)}
}

func (r *receipts) done(i int, x pluginapi.Receipt) {
	r.mu.Lock()
	r.got[i] = append(r.got[i], x)
	r.mu.Unlock()
	select {
	case r.fresh <- struct{}{}:
	default:
	}
}

func (r *receipts) ticket(i int) Ticket { return Ticket{Done: r.done, I: i} }

func (r *receipts) count(s pluginapi.ReceiptStatus) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, xs := range r.got {
		for _, x := range xs {
			if x.Status == s {
				n++
			}
		}
	}
	return n
}

// await waits for n receipts.
func (r *receipts) await(tb testing.TB, n int) {
	tb.Helper()
	t := time.NewTimer(limit)
	defer t.Stop()
	for {
		r.mu.Lock()
		have := 0
		for _, xs := range r.got {
			have += len(xs)
		}
		r.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-r.fresh:
		case <-t.C:
			tb.Fatalf("%d receipts, want %d", have, n)
		}
	}
}

func text(s string) *core.Message {
	return &core.Message{Name: "jobs", Payload: []byte(s)}
}

// finished is a context that ends once all of a queue is written: the far end of
// a test's connection does not end by itself.
func finished(tb testing.TB, q *Queue) context.Context {
	ctx, cancel := context.WithCancel(tb.Context())
	go func() {
		defer cancel()
		<-q.done
	}()
	return ctx
}
