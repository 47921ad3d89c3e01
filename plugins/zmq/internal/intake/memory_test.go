// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/go-zeromq/zmq4"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/internal/poison"
	"github.com/longshore-go/longshore/plugins/zmq/internal/intake"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
)

// telling is message n of a peer: every byte of it tells which one it is.
func telling(peer, n uint32, size int) core.Message {
	random := rand.NewPCG(uint64(peer), uint64(n))
	m := core.Message{Name: fmt.Sprint("peer", peer)}
	m.Payload = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, n), uint32(size))
	for len(m.Payload) < size+8 {
		m.Payload = binary.BigEndian.AppendUint64(m.Payload, random.Uint64())
	}
	m.Payload = m.Payload[:size+8]
	for i := range n % 4 {
		m.Headers = append(m.Headers, core.Header{
			Name: fmt.Sprintf("h%d-%d", i, n%50), Value: fmt.Appendf(nil, "%x", random.Uint64()),
		})
	}
	return m
}

// untold says how a delivery is not the message that it says it is, "" = it is.
func untold(m *core.Message) string {
	var peer, n uint32
	if k, _ := fmt.Sscanf(m.Name, "peer%d", &peer); k != 1 || len(m.Payload) < 8 {
		return fmt.Sprintf("%s with a payload of %x", m.Name, m.Payload)
	}
	n = binary.BigEndian.Uint32(m.Payload)
	size := binary.BigEndian.Uint32(m.Payload[4:])
	if int(size)+8 != len(m.Payload) {
		return fmt.Sprintf("%s with a payload of %d bytes, not %d", m.Name, len(m.Payload), size)
	}
	want := telling(peer, n, int(size))
	if string(m.Payload) != string(want.Payload) || m.Headers.String() != want.Headers.String() {
		return fmt.Sprintf("%s %d is not what was sent", m.Name, n)
	}
	return ""
}

// What is delivered stays as it is until its memory is released, however late
// that is.
func TestMessagesStayUntilTheirMemoryIsReleased(t *testing.T) {
	const peers, each = 5, 3000
	b := listen(t, zmq4.Pull, intake.Options{}, nil)
	for i := range uint32(peers) {
		p := b.dial(zmq4.Push, "")
		go func() {
			var raw []byte
			for n := range uint32(each) {
				size := int(n*37) % 1500
				if n%97 == 0 {
					size += int(n*911) % 300_000
				}
				m := telling(i, n, size)
				if raw = message.Append(raw, &m, m.Name); len(raw) > int(i)*30_000 || n == each-1 {
					p.nc.Write(raw)
					raw = raw[:0]
				}
			}
		}()
	}
	type kept struct {
		batch pluginapi.Batch
		list  []pluginapi.Delivery
	}
	var held []kept
	let := func(k kept) {
		for i := range k.list {
			if told := untold(&k.list[i].Message); told != "" {
				t.Fatal(told)
			}
		}
		release(k.batch)
	}
	for got := 0; got < peers*each; {
		batch := b.receive(pluginapi.Room{Messages: 1 + rand.IntN(300), Bytes: 1 + rand.Int64N(100_000)})
		got += len(batch.Deliveries)
		held = append(held, kept{batch, append([]pluginapi.Delivery(nil), batch.Deliveries...)})
		for len(held) > rand.IntN(20) {
			at := rand.IntN(len(held))
			let(held[at])
			held = append(held[:at], held[at+1:]...)
		}
	}
	for _, k := range held {
		let(k)
	}
}

// A use of it after that shows in builds that are made for it: of what is copied
// out of small reads, and of what is lent.
func TestReleasedMemoryIsOverwritten(t *testing.T) {
	if !poison.On {
		t.Skip("runs with the race detector, or the tag poison")
	}
	for _, size := range []int{100, 10_000, 400_000} {
		b := listen(t, zmq4.Pull, intake.Options{}, nil)
		p := b.dial(zmq4.Push, "")
		m := telling(1, 3, size)
		p.write(message.Append(nil, &m, m.Name))
		batch := b.receive(wide)
		got := batch.Deliveries[0].Message
		if told := untold(&got); told != "" {
			t.Fatal(told)
		}
		release(batch)
		for i, c := range got.Payload {
			if c != poison.Byte {
				t.Fatalf("byte %d of a payload of %d is %#x after its memory was released", i, size, c)
			}
		}
		if got.Headers[0].Name == m.Headers[0].Name {
			t.Errorf("the headers are %v after their memory was released", got.Headers)
		}
	}
}

// However it is sent and asked for, each peer's messages come once and in order.
func TestEachMessageComesOnceAndInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := listen(t, zmq4.Pull, intake.Options{}, nil)
		defer b.close()
		peers := rapid.IntRange(1, 6).Draw(rt, "peers")
		total := 0
		for i := range peers {
			sizes := rapid.SliceOfN(rapid.OneOf(
				rapid.IntRange(0, 300), rapid.IntRange(0, 20_000), rapid.IntRange(0, 500_000),
			), 0, 20).Draw(rt, "sizes")
			var raw []byte
			for n, size := range sizes {
				m := telling(uint32(i), uint32(n), size)
				raw = message.Append(raw, &m, m.Name)
			}
			total += len(sizes)
			cuts := rapid.SliceOfN(rapid.IntRange(1, 100_000), 1, 10).Draw(rt, "cuts")
			p := b.dial(zmq4.Push, "")
			go func() {
				for k := 0; len(raw) > 0; k++ {
					n := min(cuts[k%len(cuts)], len(raw))
					p.nc.Write(raw[:n])
					raw = raw[n:]
				}
				p.nc.Close()
			}()
		}
		next := map[string]uint32{}
		for total > 0 {
			room := pluginapi.Room{
				Messages: rapid.IntRange(1, 40).Draw(rt, "messages"),
				Bytes:    rapid.Int64Range(1, 200_000).Draw(rt, "bytes"),
			}
			batch := b.receive(room)
			if len(batch.Deliveries) > room.Messages {
				rt.Fatalf("%d messages with room for %d", len(batch.Deliveries), room.Messages)
			}
			for i := range batch.Deliveries {
				m := &batch.Deliveries[i].Message
				if told := untold(m); told != "" {
					rt.Fatal(told)
				}
				if n := binary.BigEndian.Uint32(m.Payload); n != next[m.Name] {
					rt.Fatalf("%s %d came where %d was next", m.Name, n, next[m.Name])
				}
				next[m.Name]++
			}
			total -= len(batch.Deliveries)
			release(batch)
		}
	})
}
