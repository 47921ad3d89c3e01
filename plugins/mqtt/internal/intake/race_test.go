// SPDX-License-Identifier: Apache-2.0

package intake_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/mqtt/internal/intake"
)

// All goroutines of a host beside the one that reads, over reconnects: each
// message of QoS 2 is handled once, each of QoS 1 at least once, and everything is
// answered.
func TestAllAtOnce(t *testing.T) {
	const each, most = 3000, 50
	b := newBench(t, func(c *intake.Config) { c.ReceiveMaximum = most })
	wires := []string{"a", "+"}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	runs := map[string]*[each]atomic.Int32{}
	for i, w := range append(wires, "a") {
		rc := b.open(w, 2)
		if runs[w] == nil {
			runs[w] = new([each]atomic.Int32)
		}
		counts := runs[w]
		all.Go(func() { host(ctx, rc, counts, i) })
	}
	b.up(intake.Session{Present: true})
	open := map[uint16]sent{}
	state := map[uint16]string{}
	var order []uint16
	read := func() { // the server reads our answers
		for _, s := range b.answers() {
			var typ string
			var id uint16
			_, _ = fmt.Sscanf(s, "%s %d", &typ, &id)
			switch {
			case typ == "PUBREC":
				state[id] = "received"
				b.send(pubrel(id))
			case state[id] != "":
				delete(open, id)
				delete(state, id)
			}
		}
	}
	next := 0
	for rounds := 0; next < each || len(open) > 0; rounds++ {
		for next < each && len(open) < most {
			id := uint16(next%60000 + 1)
			s := sent{topic: "a", payload: fmt.Sprint(next), qos: byte(1 + next%2), id: id, for_: wires[:1+next%3%2]}
			open[id], state[id] = s, "sent"
			order = append(order, id)
			next++
			b.send(s)
		}
		read()
		if rounds%200 != 199 {
			continue
		}
		b.down()
		b.up(intake.Session{Present: true})
		for _, id := range order {
			switch state[id] {
			case "sent":
				b.send(open[id].again())
			case "received":
				b.send(pubrel(id))
			}
		}
	}
	cancel()
	all.Wait()
	for n := range each {
		for _, w := range wires[:1+n%3%2] {
			if got := runs[w][n].Load(); got == 0 || got > 1 && n%2 == 1 {
				t.Errorf("message %d was handled %d times at %s", n, got, w)
			}
		}
	}
	want(t, "left behind", b.in.State(), intake.State{})
}

// host receives on one goroutine and settles on another, as the SDK does.
func host(ctx context.Context, rc *receiver, runs *[3000]atomic.Int32, odd int) {
	verdicts := make(chan []pluginapi.Verdict, 4)
	var settler sync.WaitGroup
	settler.Go(func() {
		for vs := range verdicts {
			rc.Settle(context.Background(), vs)
		}
	})
	for k := 0; ; k++ {
		batch, err := rc.Receive(ctx, pluginapi.Room{Messages: 1 + (k+odd)%7, Bytes: 1 << 20})
		if err != nil {
			break
		}
		var vs []pluginapi.Verdict
		for i := range batch.Deliveries {
			d := &batch.Deliveries[i]
			n := 0
			_, _ = fmt.Sscan(string(d.Message.Payload), &n)
			runs[n].Add(1)
			vs = append(vs, pluginapi.Verdict{Handle: d.Handle, Kind: core.VerdictAck})
		}
		if batch.Memory != nil {
			batch.Memory.Release()
		}
		if len(vs) > 0 {
			verdicts <- vs
		}
	}
	close(verdicts)
	settler.Wait()
	rc.StopIntake()
	rc.Close()
}
