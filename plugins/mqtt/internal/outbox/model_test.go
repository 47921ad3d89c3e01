// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

// model is a server that acks, refuses, forgets and is cut off as rapid draws it,
// and what it has seen.
type model struct {
	*rig
	t       *rapid.T
	max     int
	known   map[uint16]int  // ids of QoS 2 between PUBLISH and PUBREL, with the message
	used    map[uint16]int  // ids without a last answer in this session, with the message
	pending []frame         // acks that were not sent yet
	owed    map[uint16]bool // ids of this connection that count against its Receive Maximum
	arrived map[int]int     // how often a message was accepted
	refused map[int]bool    // by an answer
	last    int             // the latest message that has come for the first time
	qos     map[int]byte
	former  int // messages of a former process that it has released
	up      bool
	poison  map[int]bool // the server ends the connection when it reads one, without a word
	dead    bool         // it has
}

// former are the numbers of messages of a former process.
const former = -1

func newModel(t *rapid.T) *model {
	m := &model{
		rig: newRig(t, Config{Window: rapid.IntRange(1, 6).Draw(t, "window"), Wait: time.Hour}), t: t,
		known: make(map[uint16]int), used: make(map[uint16]int), owed: make(map[uint16]bool),
		arrived: make(map[int]int), refused: make(map[int]bool), qos: make(map[int]byte), last: -1,
		poison: make(map[int]bool),
	}
	if rapid.Bool().Draw(t, "former process") {
		for id := range uint16(rapid.IntRange(1, 8).Draw(t, "left over")) {
			m.known[id+1] = former
		}
		m.connect(true)
	} else {
		m.connect(false)
	}
	return m
}

func (m *model) connect(present bool) {
	m.max = rapid.IntRange(1, 8).Draw(m.t, "receive maximum")
	clear(m.owed)
	m.pending = nil
	if !present {
		clear(m.known)
		clear(m.used)
	}
	m.w, m.read, m.up, m.dead = &wire{stuck: true}, 0, true, false
	m.o.Up(m.w, Server{Present: present, ReceiveMaximum: m.max, MaximumQoS: 2})
}

// take reads up to n packets of what was written.
func (m *model) take(n int) {
	all, _ := frames(m.rig, m.w.all[m.read:m.w.written])
	for i := range min(n, len(all)) {
		if m.dead {
			return
		}
		f := all[i]
		m.read += m.length()
		if f.typ == packet.TypePublish {
			m.publish(f)
		} else {
			m.pubrel(f)
		}
	}
}

// length is how many bytes the next packet takes.
func (m *model) length() int {
	b := m.w.all[m.read:]
	n, size := 1, 0
	for shift := 0; ; shift += 7 {
		size |= int(b[n]&0x7F) << shift
		n++
		if b[n-1] < 0x80 {
			return n + size
		}
	}
}

func (m *model) publish(f frame) {
	i, err := strconv.Atoi(strings.TrimPrefix(f.topic, "t/"))
	if err != nil {
		m.t.Fatal(err)
	}
	if m.poison[i] {
		m.dead = true
		return
	}
	if i > m.last {
		m.last = i
	} else if !f.pub.Dup && m.arrived[i] == 0 && !m.refused[i] && m.qos[i] == 2 {
		m.t.Fatalf("message %d comes behind message %d", i, m.last)
	}
	if f.pub.QoS == 0 {
		m.arrived[i]++
		return
	}
	id := f.pub.ID
	if other, ok := m.used[id]; ok && (other != i || !f.pub.Dup) {
		m.t.Fatalf("%v uses the id of message %d, which has no answer", f, other)
	}
	m.used[id], m.owed[id] = i, true
	if len(m.owed) > m.max {
		m.t.Fatalf("%d messages without an answer, the server takes %d", len(m.owed), m.max)
	}
	code := rapid.SampledFrom([]byte{0, 0, 0, 0x10, 0x97, 0x87}).Draw(m.t, "code")
	if f.pub.QoS == 1 {
		m.accept(i, code)
		m.pending = append(m.pending, frame{typ: packet.TypePuback, ack: packet.Ack{ID: id, Code: code}})
		return
	}
	if of, ok := m.known[id]; ok {
		code = 0
		if of != i {
			m.t.Fatalf("%v looks like message %d, which the server has", f, of)
		}
	} else if m.accept(i, code); code < packet.CodeError {
		m.known[id] = i
	}
	m.pending = append(m.pending, frame{typ: packet.TypePubrec, ack: packet.Ack{ID: id, Code: code}})
}

func (m *model) accept(i int, code byte) {
	if code < packet.CodeError {
		m.arrived[i]++
	} else {
		m.refused[i] = true
	}
}

func (m *model) pubrel(f frame) {
	if f.typ != packet.TypePubrel {
		m.t.Fatalf("the server gets %v", f)
	}
	code := packet.CodeIDNotFound
	if i, ok := m.known[f.ack.ID]; ok {
		code = 0
		if i == former {
			m.former++
		}
		delete(m.known, f.ack.ID)
	}
	m.pending = append(m.pending, frame{typ: packet.TypePubcomp, ack: packet.Ack{ID: f.ack.ID, Code: code}})
}

// answer sends the i-th ack.
func (m *model) answer(i int) {
	f := m.pending[i]
	m.pending = append(m.pending[:i], m.pending[i+1:]...)
	if f.typ != packet.TypePubrec || f.ack.Code >= packet.CodeError {
		if f.typ != packet.TypePubcomp || m.known[f.ack.ID] == 0 { // of the former process's id
			delete(m.used, f.ack.ID)
			delete(m.owed, f.ack.ID)
		}
	}
	m.ack(f.typ, f.ack.ID, f.ack.Code)
}

// cut ends the connection: of what was written the server reads a part.
func (m *model) cut() {
	m.take(rapid.IntRange(0, 20).Draw(m.t, "read at the end"))
	m.up = false
	m.down()
}

func (m *model) step() {
	switch rapid.SampledFrom([]string{"add", "add", "add", "write", "write", "read", "read", "answer", "answer", "link"}).Draw(m.t, "step") {
	case "add":
		q := byte(rapid.IntRange(0, 2).Draw(m.t, "qos"))
		m.qos[m.n] = q
		m.poison[m.n] = rapid.IntRange(0, 15).Draw(m.t, "poison") == 0
		m.add(q)
	case "write":
		if m.up {
			m.w.write(rapid.IntRange(1, 60).Draw(m.t, "bytes"))
			m.o.Wrote(m.w)
		}
	case "read":
		if m.up {
			m.take(rapid.IntRange(1, 4).Draw(m.t, "packets"))
			m.endDead()
		}
	case "answer":
		if m.up && len(m.pending) > 0 {
			m.answer(0)
		}
	case "link":
		if m.up {
			m.cut()
		} else {
			m.connect(rapid.Bool().Draw(m.t, "present"))
		}
	}
}

// endDead ends a connection that the server has ended.
func (m *model) endDead() {
	if m.dead {
		m.up, m.dead = false, false
		m.down()
	}
}

// drain lets the server do all there is to do.
func (m *model) drain() {
	for range 10_000 {
		if !m.up {
			m.connect(rapid.Bool().Draw(m.t, "present at last"))
		}
		m.w.write(1 << 20)
		m.o.Wrote(m.w)
		m.take(1 << 20)
		if m.dead {
			m.endDead()
			continue
		}
		if len(m.pending) == 0 && m.w.Waiting() == 0 && m.read == len(m.w.all) {
			return
		}
		for len(m.pending) > 0 {
			m.answer(0)
		}
	}
	m.t.Fatal("the server is never done")
}

// TestModel publishes through random servers, connections and losses: each message
// has one receipt, and it is true.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt)
		for range rapid.IntRange(0, 120).Draw(rt, "steps") {
			m.step()
		}
		ctx, cancel := context.WithCancel(t.Context())
		if complete := rapid.Bool().Draw(rt, "complete"); complete {
			m.drain()
		} else {
			cancel()
		}
		_ = m.o.Close(ctx)
		cancel()
		for i := range m.n {
			m.check(i)
		}
	})
}

func (m *model) check(i int) {
	if len(m.got[i]) != 1 {
		m.t.Fatalf("message %d (QoS %d) has %d receipts", i, m.qos[i], len(m.got[i]))
	}
	what := fmt.Sprintf("message %d (QoS %d), arrived %d times: receipt %v %v", i, m.qos[i], m.arrived[i], m.got[i][0].Status, m.got[i][0].Fault)
	switch m.got[i][0].Status {
	case pluginapi.ReceiptConfirmed:
		if m.arrived[i] == 0 && m.qos[i] > 0 {
			m.t.Fatal(what)
		}
	case pluginapi.ReceiptRefused:
		if m.arrived[i] > 0 && (m.qos[i] == 2 || !m.refused[i]) { // QoS 1 may be refused when it comes again
			m.t.Fatal(what)
		}
	case pluginapi.ReceiptUnknown:
		if m.qos[i] == 0 && m.arrived[i] == 0 && m.up {
			break // given to a connection that lives
		}
	default:
		m.t.Fatal(what)
	}
	if m.qos[i] == 2 && m.arrived[i] > 1 {
		m.t.Fatal(what)
	}
}
