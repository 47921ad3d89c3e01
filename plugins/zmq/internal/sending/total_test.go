// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
)

// TestZ06MemoryOfManyThatStop has twenty subscribers that stop reading at
// different times, so that no two share what waits for them, and one that reads.
func TestZ06MemoryOfManyThatStop(t *testing.T) {
	memory, lines := &outq.Memory{}, &logged{}
	pub := NewPub(Config{Memory: memory, Most: 64 << 20, Log: lines.logger()})
	b := listen(t, zmq4.Pub, outq.Limits{Memory: memory, Bytes: 16 << 20}, pub.Serve)
	const stops, each, size = 20, 40, 1 << 20
	var before, m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	reader := subscriberOf(t, pub, b.address, "")
	defer reader.conn.Reader().Close()
	body := make([]byte, size)
	var held int64
	var most uint64
	w := newWindow()
	for i := range stops * each {
		if i%each == 0 {
			subscriberOf(t, pub, b.address, "")
		}
		m := numbered("events", i, 4)
		m.Payload = append(m.Payload, body[4:]...)
		w.publish(pub, m)
		if m, err := reader.next(); err != nil || number(m.Payload) != i {
			t.Fatalf("the one that reads has %d, %v, want %d", number(m.Payload), err, i)
		}
		held = max(held, memory.Held())
	}
	w.wait()
	runtime.GC()
	if runtime.ReadMemStats(&m); m.HeapInuse > before.HeapInuse {
		most = m.HeapInuse - before.HeapInuse
	}
	if limit := int64(64<<20 + 2*size); held > limit || memory.Held() > limit {
		t.Errorf("%d MiB wait, %d now", held>>20, memory.Held()>>20)
	}
	if most > 100<<20 {
		t.Errorf("%d MiB of heap", most>>20)
	}
	if !strings.Contains(lines.text(), lossMemory) && !strings.Contains(lines.text(), lossRoom) {
		t.Errorf("log:\n%s", lines.text())
	}
	pub.mu.Lock()
	newest, _ := pub.subscribers[stops].peer.Out.Depth()
	pub.mu.Unlock()
	if newest < 10 {
		t.Errorf("%d wait for the last one that stopped", newest)
	}
	pub.Close(t.Context())
	b.close(t)
	if n := memory.Held(); n != 0 {
		t.Errorf("%d bytes are held after the end", n)
	}
}

// TestPubClosesThoseThatStopWithin has subscribers that stop reading within a
// message that takes the memory of all: they are closed, and the others go on.
func TestPubClosesThoseThatStopWithin(t *testing.T) {
	memory := &outq.Memory{}
	pub := NewPub(Config{Memory: memory, Most: 60 << 20})
	b := listen(t, zmq4.Pub, outq.Limits{Memory: memory}, pub.Serve)
	reader := subscriberOf(t, pub, b.address, "").drain()
	const n, size = 3, 16 << 20
	for i := range n {
		subscriberOf(t, pub, b.address, "")
		w := newWindow()
		w.publish(pub, numbered("events", i, size))
		w.wait()
		<-reader
	}
	deadline := time.Now().Add(limit)
	w := newWindow()
	for pub.heardFrom() == n+1 && time.Now().Before(deadline) {
		w.publish(pub, numbered("events", n, size))
		w.wait()
		<-reader
	}
	if pub.heardFrom() == n+1 {
		t.Error("nobody was closed")
	}
	w.publish(pub, &core.Message{Name: "events", Payload: []byte("last")})
	for m := range reader {
		if m == "last" {
			break
		}
	}
	pub.Close(t.Context())
	b.close(t)
	if n := memory.Held(); n != 0 {
		t.Errorf("%d bytes are held after the end", n)
	}
	if errors.Is(errHolds, peering.ErrLeft) {
		t.Error("it is told as one that has left")
	}
}
