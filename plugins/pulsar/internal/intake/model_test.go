// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/feed"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/intake"
	"github.com/longshore-go/longshore/plugins/pulsar/internal/wire"
)

const (
	modelSeeds = 200 // for each kind of server
	modelSteps = 200
)

// model is a server, a host and an intake between them.
type model struct {
	t     *testing.T
	r     *rand.Rand
	s     *modelServer
	in    *intake.Intake
	hands []any // deliveries that the host has
	voids []any // that are void and may be acked late
	of    map[any]modelID
	live  map[modelID]any
	acked map[modelID]bool // by an accepted ack
	steps []string
}

// TestModel lets a host and a server do what they like, in any order, and looks that
// nothing is lost, delivered beside itself, or delivered behind its ack.
func TestModel(t *testing.T) {
	for _, counts := range []bool{true, false} {
		for _, indexes := range []bool{true, false} {
			t.Run(fmt.Sprintf("counts %v, indexes %v", counts, indexes), func(t *testing.T) {
				for seed := range uint64(modelSeeds) {
					runModel(t, seed, counts, indexes)
					if t.Failed() {
						return
					}
				}
			})
		}
	}
}

func runModel(t *testing.T, seed uint64, counts, indexes bool) {
	r, own := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a test's
	m := &model{
		t: t, r: r, s: newModelServer(own, counts, indexes),
		of: map[any]modelID{}, live: map[modelID]any{}, acked: map[modelID]bool{},
	}
	kind := wire.Exclusive
	if counts {
		kind = wire.Shared
	}
	m.in = intake.Over(intake.Config{Feed: feed.Config{Type: kind}}, m.s, m.s.ack, m.s.nack, m.s.current)
	for range modelSteps {
		m.step()
	}
	m.drain()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := m.in.Close(ctx); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("seed %d: %q", seed, m.steps)
	}
}

func (m *model) note(format string, args ...any) {
	m.steps = append(m.steps, fmt.Sprintf(format, args...))
}

func (m *model) step() {
	switch n := m.r.IntN(20); {
	case n < 3:
		m.s.publish(1 + int32(max(0, m.r.IntN(6)-2)))
	case n < 6:
		m.s.send(1 + m.r.IntN(5))
	case n < 11:
		m.receive(m.r.IntN(8))
	case n < 14:
		m.settle(core.VerdictAck)
	case n < 16:
		m.settle(core.VerdictRequeue)
	case n < 17:
		m.release()
	case n < 18:
		m.late()
	case n < 19:
		m.note("lose")
		m.s.lose()
	default:
		m.note("join")
		m.s.join()
	}
}

// receive takes what there is.
func (m *model) receive(room int) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b, err := m.in.Receive(ctx, pluginapi.Room{Messages: room, Bytes: 1 << 20})
	if err != nil && ctx.Err() == nil {
		m.t.Fatal(err)
	}
	for _, v := range b.Voids {
		for _, h := range v.Handles {
			m.void(h, v.Returns)
		}
	}
	if len(b.Deliveries) > room {
		m.t.Errorf("%d deliveries in a room of %d", len(b.Deliveries), room)
	}
	for i := range b.Deliveries {
		m.delivered(&b.Deliveries[i])
	}
	if b.Memory != nil {
		b.Memory.Release()
	}
}

func (m *model) void(h any, returns bool) {
	id := m.of[h]
	m.note("void %v", id)
	if !returns {
		m.t.Errorf("%v does not come again", id)
	}
	if m.live[id] != h {
		return // settled meanwhile
	}
	delete(m.live, id)
	m.drop(h)
	m.voids = append(m.voids, h)
}

func (m *model) delivered(d *pluginapi.Delivery) {
	var id modelID
	if _, err := fmt.Sscanf(string(d.Message.Payload), "7:%d:%d", &id.entry, &id.batch); err != nil {
		m.t.Fatal(err)
	}
	m.note("delivered %v", id)
	if m.live[id] != nil {
		m.t.Errorf("%v is delivered while the host has it", id)
	}
	if m.acked[id] {
		m.t.Errorf("%v is delivered behind its ack", id)
	}
	if !m.s.counts {
		for o := range m.live {
			if o.entry > id.entry || o.entry == id.entry && o.batch > id.batch {
				m.t.Errorf("%v is delivered behind %v", id, o)
			}
		}
	}
	if (d.Attempt > 0) != m.s.counts {
		m.t.Errorf("%v has attempt %d", id, d.Attempt)
	}
	m.of[d.Handle], m.live[id] = id, d.Handle
	m.hands = append(m.hands, d.Handle)
}

func (m *model) drop(h any) {
	for i := range m.hands {
		if m.hands[i] == h {
			m.hands = append(m.hands[:i], m.hands[i+1:]...)
			return
		}
	}
}

func (m *model) pick(from []any) (any, bool) {
	if len(from) == 0 {
		return nil, false
	}
	return from[m.r.IntN(len(from))], true
}

func (m *model) settle(kind core.VerdictKind) {
	h, ok := m.pick(m.hands)
	if !ok {
		return
	}
	id := m.of[h]
	m.note("%v of %v", kind, id)
	res := m.in.Settle(context.Background(), []pluginapi.Verdict{{Handle: h, Kind: kind}})
	m.drop(h)
	delete(m.live, id)
	switch {
	case res[0].Status == pluginapi.ResultDone:
		m.acked[id] = m.acked[id] || kind == core.VerdictAck
	case res[0].Status != pluginapi.ResultStale || kind == core.VerdictAck:
		m.t.Errorf("%v of %v: %+v", kind, id, res[0])
	}
}

func (m *model) release() {
	if h, ok := m.pick(m.hands); ok {
		m.note("release %v", m.of[h])
		m.in.Release([]any{h})
		delete(m.live, m.of[h])
		m.drop(h)
	}
}

func (m *model) late() {
	h, ok := m.pick(m.voids)
	if !ok {
		return
	}
	id := m.of[h]
	m.note("late %v", id)
	if m.in.AckLate(context.Background(), []any{h})[0].Status == pluginapi.ResultDone {
		m.acked[id] = true
	}
}

// drain acks all there is until the server has nothing left.
func (m *model) drain() {
	m.note("drain")
	m.s.lose()
	m.s.join()
	limit := time.Now().Add(patience)
	for !m.s.done() {
		m.s.send(100)
		m.receive(100)
		for len(m.hands) > 0 {
			m.settle(core.VerdictAck)
		}
		ctx, cancel := context.WithTimeout(m.t.Context(), time.Second)
		m.in.Flush(ctx)
		cancel()
		if time.Now().After(limit) || m.t.Failed() {
			m.t.Errorf("the server has %d entries that are not acked", len(m.s.entries))
			return
		}
	}
	if n, retained := m.in.Leftovers(); n > 0 || retained != 0 {
		m.t.Errorf("left over: %d entries, %d bytes", n, retained)
	}
}
