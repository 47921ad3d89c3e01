// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/eclipse/paho.golang/packets"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/leaktest"
	"github.com/longshore-go/longshore/plugins/internal/fault"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/client"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/packet"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// wire is a connection that keeps what is written to it.
type wire struct {
	mu      sync.Mutex
	written bytes.Buffer
	waiting []byte
	over    bool
}

func (w *wire) Append(f func([]byte) []byte) (uint64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return 0, false
	}
	w.waiting = f(w.waiting)
	return 0, true
}

func (w *wire) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written.Write(w.waiting)
	w.waiting = nil
}

// said are the packets since the last call, in words.
func (w *wire) said(t *testing.T) []string {
	t.Helper()
	w.Flush()
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for w.written.Len() > 0 {
		p, err := packets.ReadPacket(&w.written)
		if err != nil {
			t.Fatal(err)
		}
		switch c := p.Content.(type) {
		case *packets.Subscribe:
			for _, s := range c.Subscriptions {
				id := 0
				if c.Properties.SubscriptionIdentifier != nil {
					id = *c.Properties.SubscriptionIdentifier
				}
				out = append(out, fmt.Sprintf("%d: subscribe %s as %d, QoS %d, handling %d, no local %v, as published %v",
					c.PacketID, s.Topic, id, s.QoS, s.RetainHandling, s.NoLocal, s.RetainAsPublished))
			}
		case *packets.Unsubscribe:
			out = append(out, fmt.Sprintf("%d: unsubscribe %s", c.PacketID, strings.Join(c.Topics, " ")))
		default:
			t.Fatalf("%v", p)
		}
	}
	return out
}

// target is where messages of a filter would go.
type target struct {
	mu      sync.Mutex
	granted []byte
	failed  *core.Fault
}

func (r *target) Grant(qos byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.granted = append(r.granted, qos)
}

func (r *target) Fail(f *core.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = f
}

// all is a server that can do everything.
var all = client.Limits{Wildcards: true, Shared: true, Identifiers: true}

// desk is subscriptions with a log.
type desk struct {
	*subscriptions
	t   *testing.T
	log bytes.Buffer
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t}
	d.subscriptions = newSubscriptions(slog.New(slog.NewTextHandler(&d.log, nil)))
	t.Cleanup(func() { d.end(fault.Closed("subscribe")) })
	return d
}

// begin starts to subscribe and returns what gets the answer.
func (d *desk) begin(u *sub) chan *core.Fault {
	got := make(chan *core.Fault, 1)
	go func() { got <- d.subscribe(d.t.Context(), u) }()
	synctest.Wait()
	return got
}

// reply answers what was asked under an identifier.
func (d *desk) reply(id uint16, code byte) {
	d.t.Helper()
	if err := d.acked(packet.TypeSuback, &packet.Suback{ID: id, Codes: []byte{code}}); err != nil {
		d.t.Error(err)
	}
	synctest.Wait()
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

const (
	askJobs  = "subscribe jobs as 81088002, QoS 1, handling 1, no local false, as published false"
	askGroup = "subscribe $share/workers/jobs as 238245131, QoS 2, handling 0, no local false, as published true"
)

func jobs() Filter { return Filter{Name: "jobs", QoS: 1, RetainHandling: 1} }
func group() Filter {
	return Filter{Name: "jobs", Group: "workers", QoS: 2, RetainAsPublished: true}
}
