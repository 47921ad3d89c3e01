// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/zmq/internal/intake"
	"github.com/longshore-go/longshore/plugins/zmq/internal/message"
)

func TestALoneMessageComesAtOnce(t *testing.T) {
	b := listen(t, zmq4.Pull, intake.Options{}, nil)
	p := b.dial(zmq4.Push, "")
	for range 3 {
		want := core.Message{
			Name:    "jobs",
			Headers: core.Headers{{Name: "X-Tenant", Value: []byte("acme")}, {Name: "x-tenant", Value: []byte("b")}},
			Payload: []byte(`{"id":7}`),
		}
		p.write(message.Append(nil, &want, want.Name))
		batch := b.receive(wide)
		if len(batch.Deliveries) != 1 {
			t.Fatalf("%d deliveries, want 1", len(batch.Deliveries))
		}
		if diff := cmp.Diff(want, batch.Deliveries[0].Message); diff != "" {
			t.Error(diff)
		}
		if batch.Deliveries[0].Handle != nil {
			t.Error("a delivery that nothing can be settled of has a handle")
		}
		release(batch)
	}
}

func TestRoomIsObeyed(t *testing.T) {
	b := listen(t, zmq4.Pull, intake.Options{}, nil)
	p := b.dial(zmq4.Push, "")
	p.send("jobs", numbers("p", 20)...)
	b.nothing(pluginapi.Room{})
	b.nothing(pluginapi.Room{Messages: 0, Bytes: 100})
	b.nothing(pluginapi.Room{Messages: 10, Bytes: 0})
	for i := range 5 {
		got := b.receive(pluginapi.Room{Messages: 1, Bytes: 1 << 20})
		if len(got.Deliveries) != 1 || string(got.Deliveries[0].Message.Payload) != fmt.Sprintf("p %d", i) {
			t.Fatalf("with room for one: %v", got.Deliveries)
		}
	}
	// Bytes are overdrawn by one message at most.
	if got := b.receive(pluginapi.Room{Messages: 100, Bytes: 4}); len(got.Deliveries) != 2 {
		t.Errorf("with room for 4 bytes and messages of 3: %d messages, want 2", len(got.Deliveries))
	}
	for i := range 100 {
		_ = b.in.Own(core.Message{Name: "jobs", Payload: fmt.Appendf(nil, "own %d", i)}, pluginapi.PurposeRetry)
	}
	b.nothing(pluginapi.Room{})
	if got := b.receive(pluginapi.Room{Messages: 3, Bytes: 1 << 20}); len(got.Deliveries) != 3 {
		t.Errorf("with room for 3 and own messages: %d", len(got.Deliveries))
	}
}

func TestReceiveEndsWithItsContext(t *testing.T) {
	b := listen(t, zmq4.Pull, intake.Options{}, nil)
	p := b.dial(zmq4.Push, "")
	b.nothing(wide)
	ended := errors.New("ended")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	p.send("jobs", "m1")
	eventually(t, func() bool { return len(b.served(1)) == 1 })
	batch, err := b.in.Receive(ctx, wide)
	if len(batch.Deliveries) > 0 || !errors.Is(err, ended) {
		t.Errorf("got %d deliveries and %v, want none and the cause", len(batch.Deliveries), err)
	}
	if got := b.texts(1, wide); got[0] != "m1" {
		t.Errorf("then %q, want m1", got)
	}
	done := make(chan error, 1)
	go func() {
		_, err := b.in.Receive(t.Context(), wide)
		done <- err
	}()
	b.in.Stop()
	p.nc.Close()
	if err := <-done; !errors.Is(err, io.EOF) {
		t.Errorf("after Stop Receive returns %v, want io.EOF", err)
	}
	if err := b.ended(); err != nil {
		t.Errorf("after Stop Serve returns %v, want nil", err)
	}
}

// Batches are as large as a frame to the host.
func TestBatchesFillAFrame(t *testing.T) {
	b := listen(t, zmq4.Pull, intake.Options{}, nil)
	for _, c := range []struct{ size, count, least, most int }{
		{8, 4000, 256, 256},
		{512, 10_000, 190, 220},
		{16 << 10, 60, 7, 7},
		{300 << 10, 6, 1, 1},
	} {
		p := b.dial(zmq4.Push, "")
		body := strings.Repeat("x", c.size)
		largest := 0
		for try := 0; try < 100 && largest < c.least; try++ { // a peer may be slower than the host
			go func() {
				for range c.count {
					p.nc.Write(message.Append(nil, &core.Message{Payload: []byte(body)}, "jobs"))
				}
			}()
			for got := 0; got < c.count; {
				batch := b.receive(wide)
				got += len(batch.Deliveries)
				largest = max(largest, len(batch.Deliveries))
				release(batch)
				time.Sleep(100 * time.Microsecond) // a host that is busy
			}
		}
		if largest < c.least || largest > c.most {
			t.Errorf("of %d bytes at most %d messages were in a batch, want %d to %d", c.size, largest, c.least, c.most)
		}
	}
}

// However much one peer sends, the others have their turn.
func TestPeersTakeTurns(t *testing.T) {
	for _, others := range []int{1, 7, 999} {
		t.Run(fmt.Sprint(others, " others"), func(t *testing.T) {
			b := listen(t, zmq4.Pull, intake.Options{}, nil)
			flood := b.dial(zmq4.Push, "")
			var flooding sync.WaitGroup
			var raw []byte
			for range 100 {
				raw = message.Append(raw, &core.Message{Payload: make([]byte, 500)}, "flood")
			}
			flooding.Go(func() {
				for {
					if _, err := flood.nc.Write(raw); err != nil {
						return
					}
				}
			})
			defer flooding.Wait()
			defer flood.nc.Close()
			for range 100 {
				release(b.receive(wide)) // the flood is there, in large reads
			}
			for range others {
				b.dial(zmq4.Push, "").send("lone", "m")
			}
			eventually(t, func() bool { return b.in.Ready() == others+1 })
			var names []string
			for lone := 0; lone < others; {
				batch := b.receive(wide)
				for i := range batch.Deliveries {
					name := batch.Deliveries[i].Message.Name
					names = append(names, name)
					if name == "lone" {
						lone++
					}
				}
				release(batch)
			}
			if before := slices.Index(names, "lone"); before > turnMessages {
				t.Errorf("%d messages of one peer came before the first lone one of %d, want at most a turn", before, others)
			}
			slices.Reverse(names)
			if most := others + 2*turnMessages + others; len(names)-slices.Index(names, "lone") > most {
				t.Errorf("the last one of %d lone messages was number %d, want it among the first %d", others, len(names), most)
			}
		})
	}
}

// turnMessages is how many messages of 500 bytes are in a turn of 16 KiB.
const turnMessages = 30

// Peers that all have more than fits get about the same.
func TestBusyPeersShare(t *testing.T) {
	const peers, each = 100, 400
	b := listen(t, zmq4.Pull, intake.Options{}, nil)
	all := make([]*remote, peers)
	for i := range all {
		all[i] = b.dial(zmq4.Push, "")
	}
	b.served(peers)
	for i, p := range all {
		size := 300 + 200*(i%3)
		list := numbers(fmt.Sprint("p", i), each)
		for i := range list {
			list[i] += strings.Repeat(" ", size)
		}
		p.send("jobs", list...)
	}
	var got []string
	bytes := map[string]int{}
	for len(got) < peers*each/4 {
		eventually(t, func() bool { return b.in.Ready() == peers }) // the host is slower than all of them
		batch := b.receive(wide)
		for i := range batch.Deliveries {
			text := string(batch.Deliveries[i].Message.Payload)
			who, _, _ := strings.Cut(text, " ")
			bytes[who] += len(text)
			got = append(got, strings.TrimRight(text, " "))
		}
		release(batch)
	}
	inOrder(t, got)
	least, most := 1<<30, 0
	for _, n := range bytes {
		least, most = min(least, n), max(most, n)
	}
	if len(bytes) != peers || most-least > 2*16<<10 {
		t.Errorf("%d of %d peers had a turn, of %d to %d bytes", len(bytes), peers, least, most)
	}
}

// A peer that is quiet holds nothing, however much it has sent.
func TestQuietPeersHoldNoMemory(t *testing.T) {
	const peers = 300
	b := listen(t, zmq4.Pull, intake.Options{}, nil)
	all := make([]*remote, peers)
	for i := range all {
		all[i] = b.dial(zmq4.Push, "")
	}
	b.served(peers)
	round := func() (heap uint64) {
		for _, p := range all {
			p.send("jobs", strings.Repeat("x", 100_000), "y")
		}
		for n := 0; n < 2*peers; {
			batch := b.receive(wide)
			n += len(batch.Deliveries)
			release(batch)
		}
		b.nothing(wide)
		runtime.GC() // the pools let go of what
		runtime.GC() // they have not given out since the last one
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	if after := round(); after > before.HeapAlloc+peers*2048 {
		t.Errorf("%d quiet peers hold %d bytes each", peers, (after-before.HeapAlloc)/peers)
	}
}
