// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

func ended() *transportpb.Ended { return &transportpb.Ended{} }

func report(code core.FaultCode, position string) frame.SubscribeResponse {
	return frame.SubscribeResponse{Report: &transportpb.Report{
		Fault:    &transportpb.Fault{Code: transportpb.FaultCode(code), Message: "broken"},
		Position: position,
	}}
}

// Acks and drops on a source without acks are said once each, counted, and
// summed up.
func TestAcksAreSaidOnce(t *testing.T) { // E-13, D5
	synctest.Test(t, func(t *testing.T) {
		n := 0
		b := newBench(t, kindU, func(*Delivery) Said {
			n++
			if n%10 == 0 {
				return Said{Outcome: core.Outcome{Kind: core.OutcomeDrop}}
			}
			return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
		}, func(s *setup) { s.blind = true })
		synctest.Wait()
		const all = 100_000
		for done := 0; done < all; done += 50 {
			var items []frame.Delivery
			for range 50 {
				items = append(items, message("x"))
			}
			b.p.deliver(items...)
			synctest.Wait()
		}
		if got := len(b.logs.lines("")); got != 2 {
			t.Errorf("%d lines for %d deliveries, want one for acks and one for drops", got, all)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		lines := b.logs.lines("L-UNS")
		if len(lines) != 4 {
			t.Fatalf("%d lines with the summaries: %v", len(lines), lines)
		}
		var since float64
		for _, l := range lines[2:] {
			since += l["since"].(float64)
		}
		if since != all-2 {
			t.Errorf("the summaries count %v, want %d", since, all-2)
		}
		if c := b.lane.Counters(); c.Acked != all-all/10 || c.Dropped != all/10 {
			t.Errorf("counters %+v", c)
		}
	})
}

// A plain retry that the source cannot carry out is always said: at most one
// line a second, the later ones with the number since.
func TestRetriesAreAlwaysSaid(t *testing.T) { // S-GEN-91
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindU, says(retry()))
		synctest.Wait()
		for range 20 {
			var items []frame.Delivery
			for range 50 {
				items = append(items, message("x"))
			}
			b.p.deliver(items...)
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		lines := b.logs.lines("L-UNS")
		if len(lines) != 2 || lines[1]["since"] != 999.0 {
			t.Errorf("lines %v, want two, the second with 999 since", lines)
		}
		for _, p := range b.texts() {
			if p != "WARN(L-UNS); RELEASE" {
				t.Fatalf("plan %s", p)
			}
		}
	})
}

// An ack that fails after its plan has ended is said and counted; one that
// comes too late is counted.
func TestLateAnswers(t *testing.T) { // S-GEN-100
	tests := map[string]struct {
		status frame.SettleStatus
		lines  int
		failed uint64
	}{
		"failed":      {frame.SettleFailed, 1, 3},
		"unsupported": {frame.SettleUnsupported, 1, 3},
		"stale":       {frame.SettleStale, 0, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, kindA, acks, func(s *setup) {
					s.blind = true
					s.plugin = func(p *plugin) {
						p.answer = func(frame.VerdictRun) (frame.SettleStatus, *core.Fault) {
							return tt.status, &core.Fault{Message: "no connection"}
						}
					}
				})
				synctest.Wait()
				b.p.deliver(message("1"), message("2"), message("3"))
				synctest.Wait()
				if got := len(b.logs.lines("L-UNS")); got != tt.lines {
					t.Errorf("%d lines, want %d: %v", got, tt.lines, b.logs.lines(""))
				}
				if c := b.lane.Counters(); c.Failed != tt.failed || c.Acked != 3 {
					t.Errorf("counters %+v", c)
				}
			})
		})
	}
}

// Lines about a cause carry it, and the code.
func TestLinesOfCauses(t *testing.T) { // D6, D27
	tests := map[string]struct {
		said Said
		code string
		want map[string]any
	}{
		"error": {
			Said{Outcome: core.Outcome{Kind: core.OutcomeRetry, Cause: core.CauseError}, Err: errors.New("no stock")}, "L-ERR",
			map[string]any{"level": "WARN", "error": "no stock", "outcome": "retry", "attempt": 1.0},
		},
		"panic": {
			Said{Outcome: core.Outcome{Kind: core.OutcomeRetry, Cause: core.CausePanic}, Err: errors.New("nil map"), Stack: "goroutine 1"}, "L-PAN",
			map[string]any{"level": "ERROR", "panic": "nil map", "stack": "goroutine 1", "attempt": 1.0},
		},
		"panic, what was thrown": {
			Said{
				Outcome: core.Outcome{Kind: core.OutcomeRetry, Cause: core.CausePanic},
				Err:     errors.New("handler panicked: nil map"), Thrown: "nil map", Stack: "goroutine 1",
			}, "L-PAN",
			map[string]any{"level": "ERROR", "msg": "handler panicked", "panic": "nil map", "attempt": 1.0},
		},
		"undecodable": {
			Said{Outcome: core.Outcome{Kind: core.OutcomeDrop, Cause: core.CauseUndecodable}, Err: errors.New("unexpected end")}, "L-DEC",
			map[string]any{"level": "WARN", "error": "unexpected end", "attempt": 1.0, "outcome": "drop"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, kindA, func(*Delivery) Said { return tt.said })
				synctest.Wait()
				b.p.deliver(message("x"))
				synctest.Wait()
				lines := b.logs.lines(tt.code)
				if len(lines) != 1 {
					t.Fatalf("lines %v", b.logs.lines(""))
				}
				for k, v := range map[string]any{"endpoint": "in", "subscription": "jobs"} {
					tt.want[k] = v
				}
				for k, v := range tt.want {
					if lines[0][k] != v {
						t.Errorf("%s is %v, want %v", k, lines[0][k], v)
					}
				}
			})
		})
	}
}

// Fail fast stops the host with the first failure.
func TestFailFast(t *testing.T) { // S-GEN-45
	synctest.Test(t, func(t *testing.T) {
		n := 0
		b := newBench(t, kindA, func(*Delivery) Said {
			n++
			return Said{
				Outcome: core.Outcome{Kind: core.OutcomeFailFast, Cause: core.CausePanic},
				Err:     fmt.Errorf("failure %d", n),
			}
		})
		synctest.Wait()
		b.p.deliver(message("1"), message("2"))
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		want := `handle delivery of subscription "jobs" on endpoint "in": failure 1`
		if len(b.failed) != 1 || b.failed[0].Error() != want {
			t.Errorf("failed with %v", b.failed)
		}
	})
}

// A plain retry without a cap comes back at once, then behind a floor that
// grows to a second.
func TestFloor(t *testing.T) { // S-GEN-76, S-PUL-03, D17
	returns := func(n uint32) frame.Delivery {
		m := message("x")
		m.Identity, m.Attempt = []byte("id"), n
		return m
	}
	growing := []string{
		"REQUEUE", "HOLD(50ms); REQUEUE", "HOLD(100ms); REQUEUE", "HOLD(200ms); REQUEUE", "HOLD(400ms); REQUEUE",
		"HOLD(800ms); REQUEUE", "HOLD(1s); REQUEUE", "HOLD(1s); REQUEUE",
	}
	delayed := core.Capabilities{Ack: core.AckSingle, Requeue: core.RequeueDelayed, Counts: core.CountNative, Unsettled: core.UnsettledOnDisconnect}
	tests := map[string]struct {
		caps   core.Capabilities
		change func(*setup)
		item   func(n uint32) frame.Delivery
		want   []string
	}{
		"by identity":      {kindA, nil, returns, growing},
		"by its own count": {kindC, nil, returns, growing},
		"by its own delay": {delayed, nil, returns, []string{"REQUEUE", "REQUEUE(50ms)", "REQUEUE(100ms)"}},
		"no identity": {kindA, nil, func(uint32) frame.Delivery { return message("x") },
			[]string{"HOLD(50ms); REQUEUE", "HOLD(50ms); REQUEUE"}},
		"off":         {kindA, func(s *setup) { s.o.NoFloor = true }, returns, []string{"REQUEUE", "REQUEUE", "REQUEUE"}},
		"lower":       {kindA, func(s *setup) { s.o.Floor = 80 * time.Millisecond }, returns, []string{"REQUEUE", "HOLD(50ms); REQUEUE", "HOLD(80ms); REQUEUE"}},
		"under a cap": {kindC, func(s *setup) { s.o.Policy.MaxAttempts = 9 }, returns, []string{"REQUEUE", "REQUEUE", "REQUEUE"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, tt.caps, says(retry()), func(s *setup) {
					if tt.change != nil {
						tt.change(s)
					}
				})
				synctest.Wait()
				for n := range tt.want {
					b.p.deliver(tt.item(uint32(n) + 1))
					time.Sleep(2 * time.Second)
				}
				synctest.Wait()
				if diff := cmp.Diff(tt.want, b.texts()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestFloorTable(t *testing.T) {
	f := newFloors(0)
	for i := range recentMost + 10 {
		f.returned(fmt.Append(nil, i))
	}
	if len(f.entries) != recentMost {
		t.Errorf("%d entries, the bound is %d", len(f.entries), recentMost)
	}
	if n := f.returned([]byte("5")); n != 1 {
		t.Errorf("the oldest was not forgotten: %d returns", n)
	}
	if n := f.returned(fmt.Append(nil, recentMost)); n != 2 {
		t.Errorf("a younger one was: %d returns", n)
	}
	for i := range recentMost + 10 {
		f.forget(fmt.Append(nil, i))
	}
	if len(f.entries) != 0 || f.oldest != nil || f.newest != nil || f.any.Load() {
		t.Errorf("not empty: %d", len(f.entries))
	}
}

// After an ack a message is told apart no more.
func TestFloorForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		b := newBench(t, kindA, func(*Delivery) Said {
			n++
			if n == 3 {
				return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
			}
			return Said{Outcome: retry()}
		})
		synctest.Wait()
		m := message("x")
		m.Identity = []byte("id")
		for range 4 {
			b.p.deliver(m)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		want := []string{"REQUEUE", "HOLD(50ms); REQUEUE", "ACK", "REQUEUE"}
		if diff := cmp.Diff(want, b.texts()); diff != "" {
			t.Error(diff)
		}
	})
}

// A line names its message where that has another name than the subscription, which
// is then a filter.
func TestLinesNameTheMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, says(retry()), func(s *setup) { s.o.Policy.MaxAttempts = 1 })
		synctest.Wait()
		for _, name := range []string{b.lane.o.Subscription, "cranes/4/load"} {
			m := message("x")
			m.Message.Name = name
			b.p.deliver(m)
			synctest.Wait()
		}
		lines := b.logs.lines("L-CAP-RJ")
		if len(lines) != 2 || lines[0]["name"] != nil || lines[1]["name"] != "cranes/4/load" {
			t.Errorf("%v", lines)
		}
	})
}
