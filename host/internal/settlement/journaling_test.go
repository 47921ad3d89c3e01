// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
)

// A copy that only this process reads is stored, carries its row, and the row
// goes when the copy's own delivery is settled by an outcome other than none.
func TestJournalOfCopiesThatOnlyThisProcessReads(t *testing.T) { // S-GEN-118
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		outcomes := []core.Outcome{
			retry(), retry(), // attempts 1 and 2
			{Kind: core.OutcomeAck}, // attempt 3
		}
		n := 0
		b := newBench(t, kindU, func(d *Delivery) Said {
			if d.Message.Headers.Has(core.JournalHeader) {
				t.Error("the handler sees the journal's header")
			}
			n++
			return Said{Outcome: outcomes[n-1]}
		}, func(s *setup) {
			s.o.Policy.MaxAttempts = 3
			s.o.RetryTo.Caps.Retains = core.RetainProcess
			s.o.Journal = j
			s.plugin = func(p *plugin) { p.looped = true }
		})
		synctest.Wait()
		b.p.deliver(message("x"))
		synctest.Wait()
		want := []string{
			"store own 0s", "store own 0s", "forget row1", "forget row2",
		}
		slices.Sort(j.calls[2:])
		if diff := cmp.Diff(want, j.calls); diff != "" {
			t.Error(diff)
		}
		for i, o := range b.p.outgoing() {
			if got := o.Headers.Value(core.JournalHeader); got != fmt.Sprint("row", i+1) {
				t.Errorf("copy %d carries %q", i, got)
			}
		}
		if rows, _ := j.kept(); rows != 0 {
			t.Errorf("%d rows are left", rows)
		}
		if n != 3 || b.p.unsettled() != 0 {
			t.Errorf("%d runs, %d unsettled", n, b.p.unsettled())
		}
	})
}

func TestJournalKeepsTheRowOfWhatIsLeft(t *testing.T) {
	for name, o := range map[string]core.Outcome{"leave": {}, "fail fast": {Kind: core.OutcomeFailFast}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJournal()
				j.rows["row7"] = Copy{}
				b := newBench(t, kindU, says(o), func(s *setup) { s.o.Journal = j })
				synctest.Wait()
				b.p.deliver(message("x", core.JournalHeader, "row7"))
				synctest.Wait()
				if rows, _ := j.kept(); rows != 1 {
					t.Errorf("the row is gone: %v", j.calls)
				}
			})
		})
	}
}

// Stored copies of former runs are published when they are due; a row goes at
// the receipt, or stays until the copy's own delivery is settled.
func TestRestore(t *testing.T) { // S-GEN-86, 94
	process := stored
	process.Retains = core.RetainProcess
	tests := map[string]struct {
		to    core.Publishing
		state core.RouteState
		fails bool
		calls []string
		sent  []string
	}{
		"kept by its transport":   {stored, core.RouteOpen, false, []string{"forget row1", "forget row2", "forget row3"}, []string{"0s one", "1m0s two", "2m0s three"}},
		"read by this process":    {process, core.RouteOpen, false, nil, []string{"0s one", "1m0s two", "2m0s three"}},
		"refused for good":        {stored, core.RouteOpen, true, []string{"park row1", "park row2", "park row3"}, []string{"0s one", "1m0s two", "2m0s three"}},
		"no destination any more": {stored, core.RouteRefused, false, []string{"park row1", "park row2", "park row3"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJournal()
				for i, payload := range []string{"one", "two", "three"} {
					id := fmt.Sprint("row", i+1)
					c := Copy{
						To:       core.Destination{Endpoint: "in", Name: "own"},
						Message:  core.Message{Name: "own", Payload: []byte(payload), Headers: core.Headers{{Name: core.CountHeader, Value: []byte("2")}}},
						Endpoint: "in", Subscription: "former",
					}
					j.rows[id] = c
					j.due = append(j.due, Row{ID: id, Copy: c, Delay: time.Duration(i) * time.Minute})
				}
				start := time.Now()
				var sent []string
				b := newBench(t, kindA, acks, func(s *setup) {
					s.waiting.Messages = 2 // so that the last one has to wait for room
					s.plugin = func(p *plugin) {
						p.receipt = func(o *frame.Outgoing, _ int) (frame.Receipt, bool) {
							sent = append(sent, fmt.Sprint(time.Since(start).Truncate(time.Second), " ", string(o.Message.Payload)))
							if o.Message.Headers.Has(core.JournalHeader) != (tt.to.Retains == core.RetainProcess) {
								t.Errorf("headers %v", pairs(o.Message.Headers))
							}
							if tt.fails {
								return frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{Message: "no"}}, true
							}
							return frame.Receipt{Status: frame.ReceiptConfirmed}, true
						}
					}
				})
				err := b.waiting.Restore(t.Context(), RestoreOptions{
					Journal:  j,
					Outboxes: func(string) *Outbox { return b.box },
					Route: func(c Copy) core.Route {
						r := open(c.To.Name, tt.to)
						r.State = tt.state
						return r
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if diff := cmp.Diff(tt.sent, sent); diff != "" {
					t.Error(diff)
				}
				slices.Sort(j.calls)
				if diff := cmp.Diff(tt.calls, j.calls); diff != "" {
					t.Error(diff)
				}
				if n := b.waiting.Len(); n != 0 {
					t.Errorf("%d copies wait", n)
				}
			})
		})
	}
}

// A stop leaves stored copies of former runs to the journal.
func TestRestoreThenStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		c := Copy{To: core.Destination{Endpoint: "in", Name: "own"}, Endpoint: "in", Subscription: "former"}
		j.rows["row1"] = c
		j.due = []Row{{ID: "row1", Copy: c, Delay: time.Hour}}
		b := newBench(t, kindA, acks)
		if err := b.waiting.Restore(t.Context(), RestoreOptions{
			Journal: j, Outboxes: func(string) *Outbox { return b.box },
			Route: func(c Copy) core.Route { return open(c.To.Name, stored) },
		}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]WaitingCopies{{"in", "former", 1}}, b.waiting.List()); diff != "" {
			t.Error(diff)
		}
		start := time.Now()
		_, lost, _ := b.stop(t.Context())
		if len(lost) != 0 || time.Since(start) != 0 {
			t.Errorf("lost %v after %v", lost, time.Since(start))
		}
		if rows, _ := j.kept(); rows != 1 {
			t.Errorf("the row is gone: %v", j.calls)
		}
	})
}
