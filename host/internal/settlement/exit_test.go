// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
)

// exits ends its goroutine for messages that say so.
func exits(d *Delivery) Said {
	if string(d.Message.Payload) == "exit" {
		runtime.Goexit()
	}
	return acks(d)
}

// A handler that ends its goroutine has panicked, and the lane goes on.
func TestHandlerEndsItsGoroutine(t *testing.T) {
	asDrop := func(_ context.Context, d *Delivery) Said {
		if string(d.Message.Payload) != "exit" {
			t.Errorf("asked about %q", d.Message.Payload)
		}
		return Said{Outcome: core.Outcome{Kind: core.OutcomeDrop, Cause: core.CausePanic}, Err: errors.New("left")}
	}
	for name, c := range map[string]struct {
		exited Handler
		plan   string
		says   string
	}{
		"by default":       {nil, "ERROR(L-PAN); PUBLISH(own,1); ACK", ErrExited.Error()},
		"as the host says": {asDrop, "ERROR(L-PAN); REJECT", "left"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, kindA, exits, func(s *setup) {
					s.o.Exited, s.o.Policy.MaxAttempts = c.exited, 3
				})
				synctest.Wait()
				b.p.deliver(message("1"), message("exit"), message("exit"), message("2"))
				synctest.Wait()
				if got := b.lane.Counters(); got.Acked+got.Retried+got.Dropped != 4 || got.InWork != 0 {
					t.Errorf("counters %+v", got)
				}
				var plans []string
				for _, o := range b.observed() {
					plans = append(plans, o.String())
				}
				slices.Sort(plans) // they come to their ends as answers come in
				if d := cmp.Diff([]string{"ACK", "ACK", c.plan, c.plan}, plans); d != "" {
					t.Errorf("plans (-want +got):\n%s", d)
				}
				lines := b.logs.lines("L-PAN")
				if len(lines) != 2 {
					t.Fatalf("%d lines, want 2", len(lines))
				}
				stack, _ := lines[0]["stack"].(string)
				if lines[0]["panic"] != c.says || !strings.Contains(stack, "settlement.exits") {
					t.Errorf("line %v", lines[0])
				}
				if left, _, _ := b.stop(t.Context()); !left.Empty() {
					t.Errorf("stop left %+v", left)
				}
			})
		})
	}
}

// Of a handler that a stop has cancelled it is no verdict.
func TestHandlerEndsItsGoroutineAtAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, acks, func(s *setup) {
			s.o.Handle = func(ctx context.Context, _ *Delivery) Said {
				<-ctx.Done()
				runtime.Goexit()
				return Said{}
			}
		})
		synctest.Wait()
		b.p.deliver(message("x"))
		synctest.Wait()
		left, _, _ := b.stop(limited(t, 5*time.Second))
		if left.Cancelled != 1 || left.Handlers != 0 {
			t.Errorf("left %+v, want the one that was cancelled", left)
		}
		if lines := b.logs.lines("L-PAN"); len(lines) != 0 {
			t.Errorf("lines %v", lines)
		}
	})
}
