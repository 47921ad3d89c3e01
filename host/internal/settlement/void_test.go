// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// texts are the plans as they were carried out.
func (b *bench) texts() []string {
	var out []string
	for _, o := range b.observed() {
		out = append(out, o.String())
	}
	return out
}

// A handler whose delivery ended behind its back is not answered with a
// verdict. What returns is not copied as well.
func TestVoidWhileTheHandlerRuns(t *testing.T) { // S-GEN-98
	lostM := kindM
	lostM.Unsettled = core.UnsettledLost
	tests := map[string]struct {
		caps core.Capabilities
		void func(b *bench)
		want string
		sent int
		at   func(c Counters) uint64
	}{
		"returns": {kindA, func(b *bench) { b.p.void(&transportpb.Void{First: 1, Count: 1, Returns: true}) }, "NONE", 0,
			func(c Counters) uint64 { return c.Stale }},
		"does not return": {kindA, func(b *bench) { b.p.void(&transportpb.Void{First: 1, Count: 1}) }, "PUBLISH(own,1)", 1,
			func(c Counters) uint64 { return c.Retried }},
		"all of the scope": {kindA, func(b *bench) { b.p.void(&transportpb.Void{Scope: "", Returns: true}) }, "NONE", 0,
			func(c Counters) uint64 { return c.Stale }},
		"another scope": {kindA, func(b *bench) { b.p.say(frame.SubscribeResponse{Void: &transportpb.Void{Scope: "p1", Returns: true}}) },
			"PUBLISH(own,1); ACK", 1, func(c Counters) uint64 { return c.Retried }},
		"its plugin dies": {kindA, func(b *bench) { b.crash(); b.attach(newPlugin()) }, "NONE", 0,
			func(c Counters) uint64 { return c.Stale }},
		"its plugin dies, lost": {lostM, func(b *bench) { b.crash(); b.attach(newPlugin()) }, "PUBLISH(own,1)", 1,
			func(c Counters) uint64 { return c.Retried }},
		"its plugin dies, no acks": {kindU, func(b *bench) { b.crash(); b.attach(newPlugin()) }, "PUBLISH(own,1)", 1,
			func(c Counters) uint64 { return c.Retried }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, tt.caps, func(*Delivery) Said {
					time.Sleep(time.Second)
					return Said{Outcome: retry()}
				}, func(s *setup) { s.o.Policy.MaxAttempts = 3 })
				synctest.Wait()
				b.p.deliver(message("x"))
				synctest.Wait()
				tt.void(b)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if diff := cmp.Diff([]string{tt.want}, b.texts()); diff != "" {
					t.Error(diff)
				}
				if got := len(b.p.outgoing()); got != tt.sent {
					t.Errorf("%d copies, want %d", got, tt.sent)
				}
				if n := tt.at(b.lane.Counters()); n != 1 {
					t.Errorf("counted wrongly: %+v", b.lane.Counters())
				}
			})
		})
	}
}

// What a dead plugin had delivered and no handler has begun: it is not begun
// where it comes back, and begun where it would be lost.
func TestVoidBeforeTheHandlerRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		caps core.Capabilities
		want int
	}{"comes back": {kindA, 1}, "would be lost": {kindU, 3}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran := 0
				b := newBench(t, tt.caps, func(*Delivery) Said {
					ran++
					time.Sleep(time.Second)
					return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
				})
				synctest.Wait()
				b.p.deliver(message("1"), message("2"), message("3"))
				synctest.Wait()
				b.crash()
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if ran != tt.want {
					t.Errorf("%d handlers ran, want %d", ran, tt.want)
				}
				c := b.lane.Counters()
				if c.Received != 3 || c.InWork != 0 || c.Acked+c.Stale != 3 {
					t.Errorf("counters %+v", c)
				}
			})
		})
	}
}

// A void that comes between two steps is looked at before the copy leaves and
// when the verdict is given.
func TestVoidBetweenSteps(t *testing.T) {
	returns := &transportpb.Void{First: 1, Count: 1, Returns: true}
	gone := &transportpb.Void{First: 1, Count: 1}
	slow := func(wait time.Duration, status frame.ReceiptStatus) func(*plugin) {
		return func(p *plugin) {
			p.receipt = func(o *frame.Outgoing, _ int) (frame.Receipt, bool) {
				id := o.ID
				time.AfterFunc(wait, func() { p.receipts <- frame.Receipt{ID: id, Status: status} })
				return frame.Receipt{}, false
			}
		}
	}
	failing := func(p *plugin) {
		p.receipt = func(*frame.Outgoing, int) (frame.Receipt, bool) {
			return frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{Transient: true}}, true
		}
	}
	tests := map[string]struct {
		caps   core.Capabilities
		said   core.Outcome
		plugin func(*plugin)
		void   *transportpb.Void
		want   string
		lines  int
	}{
		"returns while the receipt is missing": {kindA, retry(), slow(2*time.Second, frame.ReceiptConfirmed), returns,
			"PUBLISH(own,1); ACK=STALE; WARN(L-DBL)", 1},
		"gone while the receipt is missing": {kindA, retry(), slow(2*time.Second, frame.ReceiptConfirmed), gone,
			"PUBLISH(own,1); ACK=STALE", 0},
		"returns between two tries": {kindA, retry(), failing, returns, "PUBLISH(own,1)=STALE", 0},
		"returns while it is held":  {kindC, later(10 * time.Second), nil, returns, "HOLD(10s)=STALE", 0},
		"gone while it is held":     {kindC, later(10 * time.Second), nil, gone, "HOLD(10s); REQUEUE=STALE; WARN(L-NACK)", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, tt.caps, says(tt.said), func(s *setup) {
					s.o.Policy.MaxAttempts = 3
					s.plugin = tt.plugin
				})
				synctest.Wait()
				m := message("x")
				m.Attempt = 1
				b.p.deliver(m)
				time.Sleep(time.Second)
				b.p.void(tt.void)
				time.Sleep(time.Minute)
				synctest.Wait()
				if diff := cmp.Diff([]string{tt.want}, b.texts()); diff != "" {
					t.Error(diff)
				}
				if got := len(b.logs.lines("L-DBL")); got != tt.lines {
					t.Errorf("%d lines L-DBL, want %d", got, tt.lines)
				}
			})
		})
	}
}

// What a former generation said and is read late changes nothing of the lane,
// to which the next one is attached by now.
func TestWordsOfAFormerGeneration(t *testing.T) {
	tests := map[string]frame.SubscribeResponse{
		"caught up":   {CaughtUp: true},
		"ended":       {Ended: ended()},
		"ended badly": {Ended: &transportpb.Ended{Fault: &transportpb.Fault{Message: "denied"}}},
		"void":        {Void: &transportpb.Void{All: true, Returns: true}},
		"void of one": {Void: &transportpb.Void{First: 1, Count: 1}},
		"failed":      {Settled: []frame.SettleResult{{First: 1, Count: 1, Status: frame.SettleFailed}}},
		"too late":    {Settled: []frame.SettleResult{{First: 1, Count: 1, Status: frame.SettleStale}}},
		"nonsense":    {Settled: []frame.SettleResult{{First: 7, Count: 1}}},
	}
	for name, said := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, kindA, func(*Delivery) Said {
					time.Sleep(time.Minute)
					return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
				})
				synctest.Wait()
				b.p.deliver(message("x"))
				synctest.Wait()
				b.lane.mu.Lock()
				former := b.lane.now
				b.lane.mu.Unlock()
				b.crash()
				b.attach(newPlugin())
				synctest.Wait()
				b.p.deliver(message("y"))
				synctest.Wait()
				state, counters := b.lane.State(), b.lane.Counters()
				if err := former.take(&said); err != nil {
					t.Errorf("it broke the generation that is gone: %v", err)
				}
				synctest.Wait()
				if diff := cmp.Diff(state, b.lane.State()); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(counters, b.lane.Counters()); diff != "" {
					t.Error(diff)
				}
				if lines := b.logs.lines("L-UNS"); len(lines) > 0 {
					t.Errorf("lines %v", lines)
				}
				time.Sleep(5 * time.Minute)
				if n := b.p.unsettled(); n != 0 {
					t.Errorf("%d deliveries of the next generation have no verdict", n)
				}
			})
		})
	}
}
