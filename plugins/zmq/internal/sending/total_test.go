// SPDX-License-Identifier: Apache-2.0

package sending

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/plugins/zmq/internal/outq"
	"github.com/longshore-go/longshore/plugins/zmq/internal/peering"
)

// TestZ06MemoryOfManyThatStop has twenty subscribers that stop reading at
// different times, so that no two share what waits for them, and one that reads.
func TestZ06MemoryOfManyThatStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, lines := &outq.Memory{}, &logged{}
		const stops, each, size, total = 20, 20, 256 << 10, 16 << 20
		pub := NewPub(Config{Memory: memory, Most: total, Log: lines.logger()})
		limits := outq.Limits{Memory: memory, Bytes: total / 4}
		var before, m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		reader := attach(t, pub, "reader", limits, "")
		body := make([]byte, size)
		var held int64
		var most uint64
		newest := 0
		w := newWindow()
		for i := range stops * each {
			if i%each == 0 {
				attach(t, pub, "stopped", limits, "")
			}
			m := numbered("events", i, 4)
			m.Payload = append(m.Payload, body[4:]...)
			w.publish(pub, m)
			if m, err := reader.next(); err != nil || number(m.Payload) != i {
				t.Fatalf("the one that reads has %d, %v, want %d", number(m.Payload), err, i)
			}
			synctest.Wait() // its queue knows of it too
			held = max(held, memory.Held())
			if i >= (stops-1)*each {
				n, _ := pub.subscribers[stops].peer.Out.Depth()
				newest = max(newest, n)
			}
		}
		w.wait()
		runtime.GC()
		if runtime.ReadMemStats(&m); m.HeapInuse > before.HeapInuse {
			most = m.HeapInuse - before.HeapInuse
		}
		if limit := int64(total + 2*size); held > limit || memory.Held() > limit {
			t.Errorf("%d KiB wait, %d now", held>>10, memory.Held()>>10)
		}
		if most > 2*total {
			t.Errorf("%d MiB of heap", most>>20)
		}
		if !strings.Contains(lines.text(), lossMemory) && !strings.Contains(lines.text(), lossRoom) {
			t.Errorf("log:\n%s", lines.text())
		}
		if newest < 10 {
			t.Errorf("%d waited for the last one that stopped", newest)
		}
		pub.Close(t.Context())
		detach(pub)
		reader.conn.Reader().Close()
		if n := memory.Held(); n != 0 {
			t.Errorf("%d bytes are held after the end", n)
		}
	})
}

// detach closes all peers and waits until they are gone.
func detach(p *Pub) {
	p.mu.Lock()
	all := slices.Clone(p.subscribers)
	p.mu.Unlock()
	for _, s := range all {
		s.peer.Close(nil)
	}
	synctest.Wait()
}

// TestPubClosesThoseThatStopWithin has subscribers that stop reading within a
// message that takes the memory of all: they are closed, and the others go on.
func TestPubClosesThoseThatStopWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &outq.Memory{}
		const n, size = 3, 1 << 20
		pub := NewPub(Config{Memory: memory, Most: size * 15 / 4})
		limits := outq.Limits{Memory: memory}
		reader := attach(t, pub, "reader", limits, "").drain()
		publish := func(m *core.Message) {
			w := newWindow()
			w.publish(pub, m)
			w.wait()
			<-reader
			synctest.Wait() // its queue knows of it too
		}
		for i := range n {
			attach(t, pub, "stopped", limits, "")
			publish(numbered("events", i, size))
		}
		if c := pub.heardFrom(); c != n+1 {
			t.Fatalf("%d subscribers, want %d", c, n+1)
		}
		start := time.Now()
		for pub.heardFrom() == n+1 && time.Since(start) < time.Minute {
			publish(numbered("events", n, size))
			time.Sleep(stillAfter / 4) // of the bubble
		}
		if pub.heardFrom() == n+1 {
			t.Error("nobody was closed")
		}
		publish(&core.Message{Name: "events", Payload: []byte("last")})
		pub.Close(t.Context())
		detach(pub)
		if n := memory.Held(); n != 0 {
			t.Errorf("%d bytes are held after the end", n)
		}
		if errors.Is(errHolds, peering.ErrLeft) {
			t.Error("it is told as one that has left")
		}
	})
}
