// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/intake"
)

// What became of one message for one filter.
const (
	partNone   = iota // the host does not have it
	partHanded        // it has
	partAcked
	partLeft // it has let it go
)

// modelMessage is a message as the server and the test's host know it.
type modelMessage struct {
	n       int
	qos     byte
	id      uint16
	wires   []string
	parts   map[string]int
	life    int             // how often it came as a new one
	runs    map[string]int  // deliveries
	excused map[string]bool // nobody was there who could have got it
	link    uint64          // that it was last sent on
	arrived bool            // on some link
	written bool            // PUBACK or PUBREC has left
	state   string          // of the server: sent, received (PUBREL is next), over, given up, lost
}

func (m *modelMessage) text() string { return fmt.Sprintf("m%d", m.n) }

func (m *modelMessage) all(part int) bool {
	for _, w := range m.wires {
		if m.parts[w] != part {
			return false
		}
	}
	return true
}

// model is a server, a host and an intake between them.
type model struct {
	*bench
	r         *rand.Rand
	most      int
	wires     []string
	receivers map[string][]*receiver
	all       []*modelMessage
	session   []*modelMessage // the server's, in order
	nextID    uint16
	unread    []string // answers that the server has not read
	inHand    []*modelDelivery
	memory    []func()
	trace     []string
}

type modelDelivery struct {
	rc     *receiver
	wire   string
	m      *modelMessage
	life   int
	handle any
}

// set notes what became of a delivery, unless its message has come anew since.
func (d *modelDelivery) set(part int) {
	if d.life == d.m.life && d.m.parts[d.wire] == partHanded && d.m.state != "lost" {
		d.m.parts[d.wire] = part
	}
}

func TestModel(t *testing.T) {
	rounds := 120
	if testing.Short() {
		rounds = 30
	}
	for seed := range uint64(rounds) {
		newModel(t, seed).run()
		if t.Failed() {
			return
		}
	}
}

func newModel(t *testing.T, seed uint64) *model {
	r := rand.New(rand.NewPCG(seed, 1))
	m := &model{r: r, most: 1 + r.IntN(8), wires: []string{"a/#", "a/b", "+/b"}, receivers: map[string][]*receiver{}}
	m.bench = newBench(t, func(c *intake.Config) { c.ReceiveMaximum = m.most })
	for i, w := range m.wires {
		rt := m.route(w, 2)
		for range 1 + i%2 {
			m.receivers[w] = append(m.receivers[w], &receiver{t: t, Receiver: rt.Open(w)})
		}
	}
	m.up(intake.Session{Kept: true})
	m.note("seed %d, at most %d", seed, m.most)
	return m
}

func (m *model) note(format string, args ...any) {
	m.trace = append(m.trace, fmt.Sprintf(format, args...))
}

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	from := max(0, len(m.trace)-80)
	m.t.Fatalf("%s\n%s\n%s", m.trace[0], strings.Join(m.trace[from:], "\n"), fmt.Sprintf(format, args...))
}

func (m *model) run() {
	for range 200 {
		switch k := m.r.IntN(100); {
		case k < 25:
			m.sendSome()
		case k < 50:
			m.receiveSome()
		case k < 72:
			m.ackSome()
		case k < 78:
			m.letGoOne()
		case k < 80:
			m.sendAgain()
		case k < 82:
			m.reopen()
		case k < 90:
			m.serverReads(len(m.unread))
		case k < 96:
			m.reconnect(true)
		case k < 98:
			m.reconnect(false)
		default:
			m.giveBack()
		}
		m.written()
		if s := m.in.Unsound(); s != "" {
			m.fail("%s", s)
		}
	}
	m.settleAll()
}

// reopen ends a receiver and opens another one.
func (m *model) reopen() {
	w := m.wires[m.r.IntN(len(m.wires))]
	rcs := m.receivers[w]
	i := m.r.IntN(len(rcs))
	m.note("receiver %d of %s is closed, another one opened", i, w)
	rcs[i].StopIntake()
	for _, x := range m.all {
		if len(rcs) == 1 && x.runs[w] == 0 {
			x.excused[w] = true
		}
	}
	rcs[i].Close()
	m.inHand = slices.DeleteFunc(m.inHand, func(d *modelDelivery) bool {
		if d.rc == rcs[i] {
			d.set(partLeft)
		}
		return d.rc == rcs[i]
	})
	rcs[i] = m.open(w, 2)
}

// receiveSome receives at one receiver.
func (m *model) receiveSome() {
	w := m.wires[m.r.IntN(len(m.wires))]
	rc := m.receivers[w][m.r.IntN(len(m.receivers[w]))]
	m.receiveAt(w, rc, pluginapi.Room{Messages: m.r.IntN(5), Bytes: 1 << 20})
}

func (m *model) receiveAt(w string, rc *receiver, room pluginapi.Room) bool {
	b, ok, err := rc.Take(room)
	if err != nil {
		m.fail("receive: %v", err)
	}
	if len(b.Deliveries) > room.Messages {
		m.fail("%d deliveries, and the room is %d", len(b.Deliveries), room.Messages)
	}
	for _, v := range b.Voids {
		for _, h := range v.Handles {
			m.void(rc, h, v.Returns)
		}
	}
	for i := range b.Deliveries {
		m.deliver(w, rc, &b.Deliveries[i])
	}
	if b.Memory != nil {
		m.memory = append(m.memory, m.keep(b))
	}
	return ok
}

// keep checks that a batch is what it was when its memory goes back.
func (m *model) keep(b pluginapi.Batch) func() {
	var payloads [][]byte
	var were []string
	for i := range b.Deliveries {
		payloads = append(payloads, b.Deliveries[i].Message.Payload)
		were = append(were, string(b.Deliveries[i].Message.Payload))
	}
	return func() {
		for i, p := range payloads {
			if string(p) != were[i] {
				m.fail("payload %q has become %q", were[i], p)
			}
		}
		b.Memory.Release()
	}
}

func (m *model) giveBack() {
	for _, f := range m.memory {
		f()
	}
	m.memory = nil
}

func (m *model) deliver(w string, rc *receiver, d *pluginapi.Delivery) {
	var n int
	if _, err := fmt.Sscanf(string(d.Message.Payload), "m%d", &n); err != nil {
		m.fail("payload %q", d.Message.Payload)
	}
	x := m.all[n]
	m.note("%s is delivered to %s, profile %d", x.text(), w, d.Profile)
	x.runs[w]++
	if !slices.Contains(x.wires, w) {
		m.fail("%s is not for %s", x.text(), w)
	}
	if x.qos == 0 || x.state == "lost" || x.state == "given up" {
		if x.runs[w] > 1 && x.qos == 0 || d.Profile != intake.ProfileNoAcks && x.state != "given up" {
			m.fail("%s (%s) is delivered to %s for the %d. time with profile %d", x.text(), x.state, w, x.runs[w], d.Profile)
		}
		if d.Profile == intake.ProfileNoAcks {
			x.parts[w] = partAcked
			return
		}
	}
	if x.state == "over" || x.parts[w] != partNone || d.Profile != intake.ProfileAcks {
		m.fail("%s (%s) is delivered to %s, which has had it: %v, profile %d", x.text(), x.state, w, x.parts, d.Profile)
	}
	x.parts[w] = partHanded
	m.inHand = append(m.inHand, &modelDelivery{rc, w, x, x.life, d.Handle})
}

func (m *model) void(rc *receiver, h any, returns bool) {
	i := slices.IndexFunc(m.inHand, func(d *modelDelivery) bool { return d.handle == h && d.rc == rc })
	if i < 0 {
		m.fail("a void for what the host does not have")
	}
	d := m.inHand[i]
	m.note("%s of %s is void, returns %v", d.m.text(), d.wire, returns)
	m.inHand = slices.Delete(m.inHand, i, i+1)
	if returns != (d.m.state != "lost") && d.m.state != "given up" {
		m.fail("%s (%s) is void, returns %v", d.m.text(), d.m.state, returns)
	}
}

func (m *model) ackSome() {
	for range 1 + m.r.IntN(3) {
		if len(m.inHand) > 0 {
			m.ackOne(m.r.IntN(len(m.inHand)))
		}
	}
}

func (m *model) ackOne(i int) {
	d := m.inHand[i]
	m.inHand = slices.Delete(m.inHand, i, i+1)
	status := d.rc.ack(got{handle: d.handle})[0]
	m.note("ack %s of %s: %d", d.m.text(), d.wire, status)
	if status == pluginapi.ResultStale {
		// Its void is on the way: put it back, so that it is found.
		m.inHand = append(m.inHand, d)
		for m.receiveAt(d.wire, d.rc, pluginapi.Room{}) {
		}
		if slices.Contains(m.inHand, d) {
			m.fail("stale, and there is no void")
		}
		return
	}
	d.set(partAcked)
	m.dropVoid(d)
}

// dropVoid takes the void of a delivery whose ack has crossed it.
func (m *model) dropVoid(d *modelDelivery) {
	b, _, _ := d.rc.Take(pluginapi.Room{})
	for _, v := range b.Voids {
		for _, h := range v.Handles {
			if h != d.handle {
				m.void(d.rc, h, v.Returns)
			}
		}
	}
}

func (m *model) letGoOne() {
	if len(m.inHand) == 0 {
		return
	}
	i := m.r.IntN(len(m.inHand))
	d := m.inHand[i]
	m.inHand = slices.Delete(m.inHand, i, i+1)
	m.note("let go %s of %s", d.m.text(), d.wire)
	d.rc.letGo(got{handle: d.handle})
	d.set(partLeft)
	m.dropVoid(d)
}

// settleAll brings everything to its end, and looks whether that is the right one.
func (m *model) settleAll() {
	m.note("the end")
	for range 6 {
		for w, rcs := range m.receivers {
			for _, rc := range rcs {
				for m.receiveAt(w, rc, wide) {
				}
			}
		}
		for len(m.inHand) > 0 {
			m.ackOne(0)
		}
		m.serverReads(1 << 20)
		var list []sent
		for _, x := range m.session {
			if x.state == "received" {
				list = append(list, pubrel(x.id))
			}
		}
		m.send(list...)
		m.serverReads(1 << 20)
		if len(m.session) > 0 { // what was let go comes again
			m.reconnect(true)
		}
	}
	if len(m.session) > 0 {
		m.fail("%s (%s, %v) is never answered", m.session[0].text(), m.session[0].state, m.session[0].parts)
	}
	for _, x := range m.all {
		for _, w := range x.wires {
			switch {
			case x.excused[w] && (x.qos == 0 || x.state == "lost"):
			case x.runs[w] == 0 && x.state != "given up":
				m.fail("%s (%s) never came to %s", x.text(), x.state, w)
			case x.qos == 2 && x.runs[w] > 1+x.life:
				m.fail("%s came to %s %d times", x.text(), w, x.runs[w])
			}
		}
	}
	m.giveBack()
	if s := m.in.State(); s.Flight != 0 || s.Loose != 0 {
		m.fail("left behind: %+v", s)
	}
}
