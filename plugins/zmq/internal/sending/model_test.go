// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"context"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

// pair is a peer of the Push and its far end, over a socket pair.
type pair struct {
	peer  *peering.Peer
	far   *remote
	reads bool     // from the start
	came  chan int // numbers read, closed at the end
	done  chan struct{}
}

func newPair(tb testing.TB, l net.Listener, limits outq.Limits) *pair {
	type opened struct {
		c   *zmtp.Conn
		err error
	}
	accepted := make(chan opened, 1)
	go func() {
		nc, err := l.Accept()
		if err != nil {
			accepted <- opened{err: err}
			return
		}
		c, err := zmtp.Open(context.Background(), nc, zmtp.Options{Type: zmq4.Pull, MaxMessage: 1 << 20})
		accepted <- opened{c, err}
	}()
	nc, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	near, err := zmtp.Open(tb.Context(), nc, zmtp.Options{Type: zmq4.Push, MaxMessage: 1 << 20})
	if err != nil {
		tb.Fatal(err)
	}
	far := <-accepted
	if far.err != nil {
		tb.Fatal(far.err)
	}
	return &pair{
		peer: peering.NewPeer(near, outq.New(nc, limits), "far", -1),
		far:  &remote{conn: far.c}, came: make(chan int, 1<<12), done: make(chan struct{}),
	}
}

// serve is what peering does with a peer.
func (x *pair) serve(push *Push) {
	defer close(x.done)
	x.peer.Close(push.Serve(x.peer))
	x.peer.Out.Abort(nil)
}

// read takes messages until the end.
func (x *pair) read() {
	defer close(x.came)
	defer x.far.conn.Reader().Close()
	for {
		m, err := x.far.next()
		if err != nil {
			return
		}
		x.came <- int(binary.BigEndian.Uint32(m.Payload))
	}
}

// TestPushModel lets peers come, stop reading and go at random while messages
// are published: each message has one receipt, each that is confirmed was written
// to one peer alone, none that is refused to any, and each peer has what it was
// written in order of publishing, but for what was handed back by a lost one.
func TestPushModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l, err := net.Listen("unix", t.TempDir()+"/s")
		if err != nil {
			rt.Fatal(err)
		}
		defer l.Close()
		limits := outq.Limits{Messages: rapid.IntRange(1, 8).Draw(rt, "queue")}
		push := NewPush(Config{Wait: time.Duration(rapid.IntRange(1, 5).Draw(rt, "wait")) * time.Millisecond, Linger: time.Millisecond})
		killed := rapid.Bool().Draw(rt, "stalls")
		if killed {
			push.stall.after = time.Millisecond
		}
		r := newReceipts()
		var all, live []*pair
		n := 0
		size := rapid.SampledFrom([]int{4, 3000, 40_000}).Draw(rt, "size")
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"attach", "publish", "publish", "publish", "detach"}).Draw(rt, "step") {
			case "attach":
				x := newPair(t, l, limits)
				go x.serve(push)
				if x.reads = rapid.IntRange(0, 3).Draw(rt, "reads") > 0; x.reads {
					go x.read()
				}
				all, live = append(all, x), append(live, x)
			case "publish":
				for range rapid.IntRange(1, 10).Draw(rt, "burst") {
					payload := make([]byte, size)
					binary.BigEndian.PutUint32(payload, uint32(n))
					push.Publish(&core.Message{Name: "jobs", Payload: payload}, r.ticket(n))
					n++
				}
			default:
				if len(live) > 0 {
					i := rapid.IntRange(0, len(live)-1).Draw(rt, "which")
					live[i].peer.Close(nil) // what was written stays readable at the far end
					live = append(live[:i], live[i+1:]...)
					killed = true
				}
			}
		}
		push.Close(t.Context())
		for _, x := range live {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			x.peer.Out.Finish(ctx)
			cancel()
			x.peer.Close(nil)
		}
		for _, x := range all {
			<-x.done
		}
		checkModel(rt, all, r, n, killed)
	})
}

func checkModel(rt *rapid.T, all []*pair, r *receipts, n int, killed bool) {
	times := make([]int, n)
	for _, x := range all {
		if !x.reads {
			go x.read() // what was written is there still
		}
		last := -1
		for i := range x.came {
			times[i]++
			if i < last && !killed {
				rt.Fatalf("message %d came behind %d", i, last)
			}
			last = i
		}
		x.far.close()
	}
	for i := range n {
		xs := r.of(i)
		if len(xs) != 1 {
			rt.Fatalf("message %d of %d has receipts %v", i, n, xs)
		}
		most, least := 1, 0
		switch xs[0].Status {
		case pluginapi.ReceiptConfirmed:
			least = 1
		case pluginapi.ReceiptRefused:
			most = 0
		}
		if times[i] < least || times[i] > most {
			rt.Fatalf("message %d came %d times, receipt %v", i, times[i], xs[0])
		}
	}
}
