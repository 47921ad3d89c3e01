// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/carry"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/intake"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// wide is room for anything.
var wide = pluginapi.Room{Messages: 1 << 16, Bytes: 1 << 40}

// link is one connection, which keeps what is written to it.
type link struct {
	number uint64

	mu      sync.Mutex
	out     []byte
	dead    bool // Write fails
	ended   error
	code    byte
	waiting int
	pieces  int // calls of Write

	onWrite func() // is called once, in front of the next Write
}

func (l *link) Number() uint64 { return l.number }

func (l *link) Write(f func([]byte) []byte) (uint64, bool) {
	if first := l.onWrite; first != nil {
		l.onWrite = nil
		first()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return 0, false
	}
	l.pieces++
	l.out = f(l.out)
	return uint64(len(l.out)), true
}

func (l *link) End(err error, code byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended, l.code, l.dead = err, code, true
}

func (l *link) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// die makes what is written be lost.
func (l *link) die() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
}

// over returns the code that the link was ended with, 0 = it was not.
func (l *link) over() byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.code
}

// bench is an intake whose server is the test.
type bench struct {
	t      testing.TB
	in     *intake.Intake
	links  uint64
	link   *link // the last one
	stream bytes.Buffer
	reader *packet.Reader
	log    *logged
}

// instance is that of all tests.
var instance = carry.Instance{1, 2, 3, 4, 5, 6, 7, 8}

func newBench(t testing.TB, change ...func(*intake.Config)) *bench {
	b := &bench{t: t, log: new(logged)}
	c := intake.Config{
		Log: slog.New(slog.NewTextHandler(b.log, nil)), Instance: instance,
		ReceiveMaximum: 1000, QoS0Messages: 65536, QoS0Bytes: 64 << 20,
	}
	for _, f := range change {
		f(&c)
	}
	b.in = intake.New(c)
	t.Cleanup(b.in.Close)
	return b
}

// route is one whose identifier is made of its wire form.
func (b *bench) route(wire string, qos byte) *intake.Route {
	filter := wire
	if rest, ok := strings.CutPrefix(wire, "$share/"); ok {
		_, filter, _ = strings.Cut(rest, "/")
	}
	return b.in.Route(intake.Filter{Wire: wire, Filter: filter, Identifier: number(wire), QoS: qos})
}

// open is a route with one receiver.
func (b *bench) open(wire string, qos byte) *receiver {
	return &receiver{t: b.t, Receiver: b.route(wire, qos).Open(wire)}
}

func (b *bench) up(s intake.Session) *link {
	b.links++
	b.link = &link{number: b.links}
	b.reader = packet.NewReader(&b.stream, 0)
	b.in.Up(b.link, s)
	return b.link
}

func (b *bench) down() {
	b.link.die()
	b.in.Down(b.link)
	b.reader.Close()
	b.stream.Reset()
}

// again is a new link to a server that has the session.
func (b *bench) again() *link {
	b.down()
	return b.up(intake.Session{Present: true, Kept: true})
}

// lost is a new link to a server that has no session.
func (b *bench) lost() *link {
	b.down()
	return b.up(intake.Session{Kept: true})
}

// write passes bytes to the intake as a client's read loop does.
func (b *bench) write(raw []byte) error {
	b.stream.Write(raw)
	var failed error
	for b.stream.Len() > 0 && failed == nil {
		if err := b.reader.Fill(); err != nil {
			b.t.Fatalf("fill: %v", err)
		}
		var p packet.Packet
		for {
			ok, err := b.reader.Next(&p)
			if err != nil {
				b.t.Fatalf("next: %v", err)
			}
			if !ok {
				break
			}
			if failed = b.in.Packet(b.link, &p); failed != nil {
				break
			}
		}
		b.in.Handled(b.link, b.reader)
	}
	return failed
}

// send sends packets in one read.
func (b *bench) send(list ...sent) {
	b.t.Helper()
	var raw []byte
	for _, s := range list {
		raw = s.append(raw)
	}
	if err := b.write(raw); err != nil {
		b.t.Fatalf("packet: %v", err)
	}
}

// answers takes what was written to a link, as "PUBACK 1".
func (b *bench) answers() []string { return b.link.take(b.t) }

func (l *link) take(t testing.TB) []string {
	t.Helper()
	l.mu.Lock()
	raw := l.out
	l.out = nil
	l.mu.Unlock()
	var list []string
	r := packet.NewReader(bytes.NewReader(raw), 0)
	defer r.Close()
	for len(raw) > 0 {
		if err := r.Fill(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("answers: %v", err)
		}
		var p packet.Packet
		for {
			ok, err := r.Next(&p)
			if err != nil {
				t.Fatalf("answers: %v", err)
			}
			if !ok {
				break
			}
			var a packet.Ack
			if err := packet.ParseAck(&p, &a); err != nil {
				t.Fatalf("answers: %v", err)
			}
			s := fmt.Sprintf("%s %d", packet.Name(p.Type), a.ID)
			if a.Code != 0 {
				s += fmt.Sprintf(" 0x%02X", a.Code)
			}
			list = append(list, s)
			r.Spent()
		}
	}
	return list
}

// receiver is a subscription with a host that is the test.
type receiver struct {
	*intake.Receiver
	t testing.TB
}

// got is one delivery, whose memory goes back at once.
type got struct {
	text    string
	handle  any
	profile uint32
	carry   carry.Carry
	headers core.Headers
	fault   *core.Fault
}

// receive returns what can be had now.
func (r *receiver) receive(room pluginapi.Room) (list []got, voids []pluginapi.Void) {
	r.t.Helper()
	for room.Messages > 0 || len(voids) == 0 {
		b, ok, err := r.Take(room)
		if err != nil {
			r.t.Fatalf("receive: %v", err)
		}
		if !ok {
			break
		}
		for i := range b.Deliveries {
			list = append(list, r.take(&b.Deliveries[i]))
		}
		voids = append(voids, b.Voids...)
		if b.Memory != nil {
			b.Memory.Release()
		}
		room.Messages -= len(b.Deliveries)
	}
	return list, voids
}

// all returns the deliveries that can be had now, and fails where there are voids.
func (r *receiver) all() []got {
	r.t.Helper()
	list, voids := r.receive(wide)
	if len(voids) > 0 {
		r.t.Fatalf("voids %v", voids)
	}
	return list
}

// one returns the only delivery that can be had now.
func (r *receiver) one() got {
	r.t.Helper()
	list := r.all()
	if len(list) != 1 {
		r.t.Fatalf("%d deliveries, want 1: %v", len(list), texts(list))
	}
	return list[0]
}

func (r *receiver) take(d *pluginapi.Delivery) got {
	r.t.Helper()
	c, ok := carry.Parse(d.Carry)
	if !ok || c.Instance != instance {
		r.t.Errorf("carry %x", d.Carry)
	}
	return got{
		text: d.Message.Name + " " + string(d.Message.Payload), handle: d.Handle, profile: d.Profile,
		carry: c, headers: d.Message.Headers.Clone(), fault: d.Undecodable,
	}
}

// ack acks deliveries and returns the results.
func (r *receiver) ack(list ...got) []pluginapi.ResultStatus {
	r.t.Helper()
	var vs []pluginapi.Verdict
	for _, g := range list {
		vs = append(vs, pluginapi.Verdict{Handle: g.handle, Kind: core.VerdictAck})
	}
	var out []pluginapi.ResultStatus
	for _, res := range r.Settle(r.t.Context(), vs) {
		out = append(out, res.Status)
	}
	return out
}

// done acks deliveries, each of which is there.
func (r *receiver) done(list ...got) {
	r.t.Helper()
	for i, s := range r.ack(list...) {
		if s != pluginapi.ResultDone {
			r.t.Fatalf("ack of %q: result %d, want DONE", list[i].text, s)
		}
	}
}

func (r *receiver) letGo(list ...got) {
	var handles []any
	for _, g := range list {
		handles = append(handles, g.handle)
	}
	r.Release(handles)
}

func texts(list []got) []string {
	var out []string
	for _, g := range list {
		out = append(out, g.text)
	}
	return out
}

// logged keeps what is logged.
type logged struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

// lines are those with a text in them.
func (l *logged) lines(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []string
	for line := range strings.Lines(l.all.String()) {
		if strings.Contains(line, text) {
			list = append(list, line)
		}
	}
	return list
}
