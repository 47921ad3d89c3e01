// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/intake"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
	"github.com/longshore-go/longshore/plugins/zmq/internal/zmtp"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// testLimit bounds a test on a busy machine, with the race detector on.
const testLimit = 2 * time.Minute

const maxMessage = 1 << 20

// wide is room for anything.
var wide = pluginapi.Room{Messages: 1 << 16, Bytes: 1 << 40}

// bench is an intake with a listener that serves whoever connects.
type bench struct {
	t    testing.TB
	in   *intake.Intake
	ln   net.Listener
	ends chan error // of Serve
	all  sync.WaitGroup

	mu    sync.Mutex
	peers []*peering.Peer
}

// listen serves peers until the test ends. loop nil is the intake's.
func listen(t testing.TB, own zmq4.SocketType, o intake.Options, loop func(*peering.Peer, []byte) error) *bench {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, in: intake.New(o), ln: ln, ends: make(chan error, 4096)}
	if loop == nil {
		loop = b.in.Serve
	}
	b.all.Go(func() {
		for n := 0; ; n++ {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			b.all.Go(func() { b.serve(nc, own, n, loop) })
		}
	})
	t.Cleanup(b.close)
	return b
}

func (b *bench) serve(nc net.Conn, own zmq4.SocketType, n int, loop func(*peering.Peer, []byte) error) {
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	defer cancel()
	conn, err := zmtp.Open(ctx, nc, zmtp.Options{Type: own, MaxMessage: maxMessage})
	if err != nil {
		b.t.Errorf("handshake: %v", err)
		return
	}
	out := outq.New(nc, outq.Limits{})
	p := peering.NewPeer(conn, out, nc.RemoteAddr().String(), -1)
	b.mu.Lock()
	b.peers = append(b.peers, p)
	b.mu.Unlock()
	identity := conn.PeerIdentity()
	if len(identity) == 0 {
		identity = []byte(strconv.Itoa(n))
	}
	err = loop(p, identity)
	p.Close(err)
	out.Abort(err)
	b.ends <- err
}

// close ends everything; an intake first, since its Serve would wait.
func (b *bench) close() {
	_ = b.ln.Close()
	b.in.Stop()
	b.mu.Lock()
	for _, p := range b.peers {
		p.Close(net.ErrClosed)
	}
	b.mu.Unlock()
	b.all.Wait()
}

// ended returns how the next peer's loop has ended.
func (b *bench) ended() error {
	b.t.Helper()
	select {
	case err := <-b.ends:
		return err
	case <-time.After(testLimit):
		b.t.Fatal("no loop ends")
		return nil
	}
}

// served waits until n peers have had their handshake.
func (b *bench) served(n int) []*peering.Peer {
	b.t.Helper()
	var peers []*peering.Peer
	eventually(b.t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		peers = b.peers
		return len(peers) >= n
	})
	return peers
}

// receive returns one batch.
func (b *bench) receive(room pluginapi.Room) pluginapi.Batch {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	defer cancel()
	batch, err := b.in.Receive(ctx, room)
	if err != nil {
		b.t.Fatalf("receive: %v", err)
	}
	return batch
}

// nothing fails where there is something to receive.
func (b *bench) nothing(room pluginapi.Room) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	batch, err := b.in.Receive(ctx, room)
	if len(batch.Deliveries) > 0 || !errors.Is(err, context.DeadlineExceeded) {
		b.t.Fatalf("got %d deliveries and %v, want none and the end of the context", len(batch.Deliveries), err)
	}
}

// texts receives n messages and returns their payloads. Memory goes back.
func (b *bench) texts(n int, room pluginapi.Room) []string {
	b.t.Helper()
	var got []string
	for len(got) < n {
		batch := b.receive(room)
		for i := range batch.Deliveries {
			got = append(got, string(batch.Deliveries[i].Message.Payload))
		}
		release(batch)
	}
	return got
}

func release(b pluginapi.Batch) {
	if b.Memory != nil {
		b.Memory.Release()
	}
}

// remote is the other end of a connection.
type remote struct {
	t  testing.TB
	nc net.Conn
	c  *zmtp.Conn
}

// dial connects a peer of a type.
func (b *bench) dial(kind zmq4.SocketType, identity string) *remote {
	b.t.Helper()
	nc, err := net.Dial("tcp", b.ln.Addr().String())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { nc.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	defer cancel()
	c, err := zmtp.Open(ctx, nc, zmtp.Options{Type: kind, Identity: []byte(identity), MaxMessage: maxMessage})
	if err != nil {
		b.t.Fatal(err)
	}
	return &remote{t: b.t, nc: nc, c: c}
}

func (r *remote) write(raw []byte) {
	r.t.Helper()
	if _, err := r.nc.Write(raw); err != nil {
		r.t.Fatal(err)
	}
}

// send sends payloads under a name.
func (r *remote) send(name string, payloads ...string) {
	r.t.Helper()
	var raw []byte
	for _, p := range payloads {
		raw = message.Append(raw, &core.Message{Payload: []byte(p)}, name)
	}
	r.write(raw)
}

// next reads one message or command.
func (r *remote) next(f *zmtp.Frames) {
	r.t.Helper()
	_ = r.nc.SetReadDeadline(time.Now().Add(testLimit))
	for {
		ok, err := r.c.Reader().Next(f)
		if err == nil && !ok {
			err = r.c.Reader().Fill()
		}
		if err != nil {
			r.t.Fatalf("read: %v", err)
		}
		if ok {
			return
		}
	}
}

// frames encodes a message of any frames.
func frames(list ...string) []byte {
	var raw []byte
	for i, f := range list {
		raw = zmtp.AppendFrame(raw, []byte(f), i < len(list)-1)
	}
	return raw
}

// numbers are n payloads that tell who sent them and when.
func numbers(who string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s %d", who, i)
	}
	return list
}

// inOrder fails unless got has, for each sender, its numbers from 0 on.
func inOrder(t testing.TB, got []string) map[string]int {
	t.Helper()
	next := map[string]int{}
	for _, s := range got {
		who, number, _ := strings.Cut(s, " ")
		if want := strconv.Itoa(next[who]); number != want {
			t.Fatalf("%q is out of order: %s comes next", s, want)
		}
		next[who]++
	}
	return next
}

// eventually waits for a condition.
func eventually(t testing.TB, ok func() bool) {
	t.Helper()
	limit := time.NewTimer(testLimit)
	defer limit.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatal("it does not happen")
		}
	}
}
