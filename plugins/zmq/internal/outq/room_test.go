// SPDX-License-Identifier: Apache-2.0

package outq

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/interop/zmqtest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
)

func TestRoom(t *testing.T) {
	near, far := connected(t, "tcp")
	q := New(near, Limits{Messages: 2, Bytes: 1 << 30})
	room := make(chan struct{}, 10)
	q.OnRoom(func() { room <- struct{}{} })
	r := newReceipts()
	big := &core.Message{Payload: make([]byte, 8<<20)}
	for i, want := range []bool{true, true, false} {
		if got := q.Push(big, "", nil, r.ticket(i)); got != want {
			t.Fatalf("message %d taken: %v", i, got)
		}
	}
	if q.Room() || len(room) > 0 {
		t.Fatal("a full queue has room")
	}
	go io.Copy(io.Discard, far)
	<-room
	if !q.Room() {
		t.Error("no room after OnRoom")
	}
	r.await(t, 2)
	if n, b := q.Depth(); n != 0 || b != 0 {
		t.Errorf("depth %d, %d bytes", n, b)
	}
	if len(room) > 0 {
		t.Error("OnRoom is called though nobody was refused")
	}
	q.Abort(nil)
}

func TestBytesBound(t *testing.T) {
	near, _ := connected(t, "tcp")
	q := New(near, Limits{Bytes: 1 << 20})
	large := &core.Message{Payload: make([]byte, 32<<20)}
	r := newReceipts()
	if !q.Push(large, "", nil, r.ticket(0)) {
		t.Error("a lone message over the bound is not taken")
	}
	if q.Push(text("x"), "", nil, r.ticket(1)) {
		t.Error("a second one is")
	}
	q.Abort(nil)
}

func TestControlGoesBetweenMessages(t *testing.T) {
	near, far := connected(t, "tcp")
	q := New(near, Limits{})
	first, second := &core.Message{Payload: make([]byte, 16<<20)}, &core.Message{Payload: make([]byte, 300_000)}
	r := newReceipts()
	q.Push(first, "", nil, r.ticket(0))
	zmqtest.Until(t, "a part is written", func() bool { return q.begunBytes() > 0 })
	q.Push(second, "", nil, r.ticket(1))
	command := []byte("\x04\x05\x04PONG")
	if !q.Control(command) {
		t.Fatal("no room for a command")
	}
	go q.Finish(t.Context())
	got, err := io.ReadAll(far)
	if err != nil {
		t.Fatal(err)
	}
	want := appendMessage(nil, first, "", nil, true)
	want = append(want, command...)
	want = appendMessage(want, second, "", nil, true)
	if !bytes.Equal(got, want) {
		t.Error("the command is not between the messages")
	}
	q.Abort(nil)
}

func TestControlIsBounded(t *testing.T) {
	near, _ := connected(t, "tcp")
	q := New(near, Limits{})
	q.Push(&core.Message{Payload: make([]byte, 16<<20)}, "", nil, Ticket{})
	command := make([]byte, 30)
	n := 0
	for q.Control(command) {
		if n++; n > 1<<20 {
			t.Fatal("commands are taken without end")
		}
	}
	if n < maxControl/len(command) {
		t.Errorf("%d commands, then no more", n)
	}
	q.Abort(nil)
	if !q.Control(command) {
		t.Error("an ended queue asks for the peer to be closed")
	}
}

func TestSharedMemory(t *testing.T) {
	memory := &Memory{}
	var all []*Queue
	var ends []net.Conn
	for range 3 {
		near, far := connected(t, "unix")
		all, ends = append(all, New(near, Limits{Memory: memory})), append(ends, far)
	}
	m := &core.Message{Name: "events", Payload: bytes.Repeat([]byte("x"), 1<<20)}
	size := message.Size(m, "events")
	s := memory.Share(size, func(dst []byte) []byte { return message.Append(dst, m, "events") })
	r := newReceipts()
	for i, q := range all {
		if !q.PushShared(s, r.ticket(i)) || !q.PushShared(s, Ticket{}) {
			t.Fatal("no room")
		}
	}
	s.Release()
	for i := range 2 {
		go io.Copy(io.Discard, ends[i])
		all[i].Finish(finished(t, all[i]))
		all[i].Abort(nil)
		if n := all[i].Lost(); n != 0 {
			t.Errorf("queue %d has lost %d", i, n)
		}
	}
	if n := s.refs.Load(); n != 2 {
		t.Errorf("%d references, want those of the third queue", n)
	}
	zmqtest.Until(t, "a part is written", func() bool { return all[2].begunBytes() > 0 })
	if left := all[2].Abort(nil); len(left) != 0 {
		t.Errorf("%d shared messages handed back", len(left))
	}
	if n := all[2].Lost(); n != 2 {
		t.Errorf("%d lost, want 2", n)
	}
	if n := s.refs.Load(); n != 0 {
		t.Errorf("%d references are left", n)
	}
	if c := r.count(pluginapi.ReceiptConfirmed); c != 2 || len(r.got) != 2 {
		t.Errorf("%d of %d confirmed, want 2", c, len(r.got))
	}
}

func TestIdleQueueKeepsNothing(t *testing.T) {
	near, far := connected(t, "tcp")
	go io.Copy(io.Discard, far)
	q := New(near, Limits{Messages: 5000})
	r := newReceipts()
	n := 0
	for range 5000 {
		if q.Push(text("some payload"), "jobs", nil, r.ticket(n)) {
			n++
		}
	}
	r.await(t, n)
	zmqtest.Until(t, "the writer rests", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.idle
	})
	q.mu.Lock()
	if q.filling != nil || len(q.waiting.slots) > ringLeast || cap(q.answers) > keptAnswers {
		t.Errorf("kept: chunk %v, %d slots, %d answers", q.filling != nil, len(q.waiting.slots), cap(q.answers))
	}
	q.mu.Unlock()
	q.Abort(nil)
}

// TestWithoutSystemCalls writes to a connection that is none of the system's.
func TestWithoutSystemCalls(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	q := New(near, Limits{})
	r := newReceipts()
	large := &core.Message{Payload: make([]byte, 100_000)}
	want := appendMessage(appendMessage(nil, text("a"), "jobs", nil, true), large, "jobs", nil, true)
	q.Push(text("a"), "jobs", nil, r.ticket(0))
	q.Push(large, "jobs", nil, r.ticket(1))
	got := make([]byte, len(want))
	if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("other bytes came, %v", err)
	}
	r.await(t, 2)
	q.Push(text("unread"), "jobs", nil, r.ticket(2))
	if left := q.Abort(nil); len(left) != 1 {
		t.Errorf("%d unsent", len(left))
	}
}
