// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// wire is a connection whose operating system takes as much as a test says.
type wire struct {
	mu      sync.Mutex
	all     []byte
	written int
	dead    bool
	stuck   bool // Flush writes nothing
}

func (w *wire) Append(f func([]byte) []byte) (uint64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return 0, false
	}
	w.all = f(w.all)
	return uint64(len(w.all)), true
}

func (w *wire) Flush() {
	if !w.stuck {
		w.write(1 << 30)
	}
}

func (w *wire) Written() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return uint64(w.written)
}

func (w *wire) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all) - w.written
}

// write takes up to n bytes more.
func (w *wire) write(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = min(len(w.all), w.written+n)
}

// frame is one packet that a server has read.
type frame struct {
	typ   byte
	pub   packet.Publish
	ack   packet.Ack
	topic string
}

// frames reads the whole packets in b, and returns how many bytes they take.
func frames(tb rapid.TB, b []byte) (all []frame, n int) {
	tb.Helper()
	r := packet.NewReader(bytes.NewReader(b), 0)
	defer r.Close()
	for r.Fill() == nil {
		var p packet.Packet
		for {
			ok, err := r.Next(&p)
			if err != nil {
				tb.Fatal(err)
			}
			if !ok {
				break
			}
			all = append(all, asFrame(tb, &p))
			n += 2 + len(p.Body)
			for k := len(p.Body); k > 127; k >>= 7 {
				n++
			}
		}
	}
	return all, n
}

func asFrame(tb rapid.TB, p *packet.Packet) frame {
	tb.Helper()
	f := frame{typ: p.Type}
	var err error
	if p.Type == packet.TypePublish {
		err = packet.ParsePublish(p, &f.pub)
		f.topic = string(f.pub.Topic)
		f.pub.Payload, f.pub.Topic, f.pub.Properties = bytes.Clone(f.pub.Payload), nil, nil
	} else {
		err = packet.ParseAck(p, &f.ack)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// String is a packet as tests expect it: "PUBLISH q1 #3 dup jobs/0".
func (f frame) String() string {
	if f.typ != packet.TypePublish {
		s := fmt.Sprintf("%s #%d", packet.Name(f.typ), f.ack.ID)
		if f.ack.Code != 0 {
			s += fmt.Sprintf(" 0x%02X", f.ack.Code)
		}
		return s
	}
	s := fmt.Sprintf("PUBLISH q%d", f.pub.QoS)
	if f.pub.QoS > 0 {
		s += fmt.Sprintf(" #%d", f.pub.ID)
	}
	if f.pub.Dup {
		s += " dup"
	}
	return s + " " + f.topic
}

// rig is an outbox with a wire and the receipts that it has given.
type rig struct {
	rapid.TB
	o    *Outbox
	w    *wire
	read int
	mu   sync.Mutex
	got  map[int][]pluginapi.Receipt
	n    int
}

func newRig(tb rapid.TB, c Config) *rig {
	return &rig{TB: tb, o: New(c), got: make(map[int][]pluginapi.Receipt)}
}

func (r *rig) done(i int, x pluginapi.Receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got[i] = append(r.got[i], x)
}

// add adds a message whose topic is its number, and returns that.
func (r *rig) add(qos byte, change ...func(*Post)) int {
	r.Helper()
	i := r.n
	r.n++
	p := Post{Message: core.Message{Name: "t/" + strconv.Itoa(i), Payload: []byte("x")}, QoS: qos, Done: r.done, I: i}
	for _, f := range change {
		f(&p)
	}
	if f := r.o.Add(&p); f != nil {
		r.done(i, pluginapi.Refused(f))
	}
	r.o.Flush()
	return i
}

// up begins a connection, down ends it.
func (r *rig) up(s Server) {
	r.w, r.read = &wire{}, 0
	if s.MaximumQoS == 0 {
		s.MaximumQoS = 2
	}
	r.o.Up(r.w, s)
}

func (r *rig) down() { r.endAs(EndByServer) }

func (r *rig) endAs(end End) {
	r.w.mu.Lock()
	r.w.dead = true
	r.w.mu.Unlock()
	r.o.Down(r.w, end)
}

// sent returns what was written since it was asked last.
func (r *rig) sent() string {
	r.Helper()
	r.w.mu.Lock()
	b := r.w.all[r.read:r.w.written]
	r.w.mu.Unlock()
	all, n := frames(r.TB, b)
	r.read += n
	s := ""
	for _, f := range all {
		s += f.String() + "\n"
	}
	return s
}

func (r *rig) ack(typ byte, id uint16, code byte) {
	r.Helper()
	if err := r.o.Ack(r.w, typ, &packet.Ack{ID: id, Code: code}); err != nil {
		r.Fatal(err)
	}
	r.o.Flush()
}

// receipt returns the only receipt of a message, zero where it has none.
func (r *rig) receipt(i int) pluginapi.Receipt {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch len(r.got[i]) {
	case 0:
		return pluginapi.Receipt{}
	case 1:
		return r.got[i][0]
	}
	r.Fatalf("message %d has receipts %v", i, r.got[i])
	return pluginapi.Receipt{}
}

// want compares a receipt's status.
func (r *rig) want(i int, s pluginapi.ReceiptStatus) pluginapi.Receipt {
	r.Helper()
	x := r.receipt(i)
	if x.Status != s {
		r.Fatalf("message %d: receipt %d (%v), want %d", i, x.Status, x.Fault, s)
	}
	return x
}

func (r *rig) wantSent(want string) {
	r.Helper()
	if got := r.sent(); got != want {
		r.Fatalf("sent\n%swant\n%s", got, want)
	}
}
