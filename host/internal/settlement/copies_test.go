// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

func pairs(h core.Headers) []string {
	var out []string
	for _, x := range h {
		out = append(out, x.Name+": "+string(x.Value))
	}
	return out
}

// A copy has the headers as received, the count, the carry and its purpose, and
// none of the dead letter's headers.
func TestCopy(t *testing.T) { // S-GEN-97, D25
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, says(retry()), func(s *setup) { s.o.Policy.MaxAttempts = 3 })
		synctest.Wait()
		m := message("payload", "X-Tenant", "a", "x-tenant", "b", "X-RustStream-Retry-Count", "+1", "x-longshore-journal", "row9")
		m.Carry = []byte("qos 1")
		b.p.deliver(m)
		synctest.Wait()
		got := b.p.outgoing()
		if len(got) != 1 {
			t.Fatalf("%d copies", len(got))
		}
		want := published{
			Message: core.Message{Name: "own", Payload: []byte("payload"), Headers: core.Headers{
				{Name: "X-Tenant", Value: []byte("a")}, {Name: "x-tenant", Value: []byte("b")},
				{Name: core.CountHeader, Value: []byte("2")},
			}},
			purpose: transportpb.Purpose_PURPOSE_RETRY, carry: "qos 1",
		}
		if diff := cmp.Diff(want, got[0], cmp.AllowUnexported(published{})); diff != "" {
			t.Error(diff)
		}
	})
}

// The handler sees the message without the journal's header, and its attempt.
func TestDelivery(t *testing.T) { // D13, S-GEN-19, 20, 118
	synctest.Test(t, func(t *testing.T) {
		var got []Delivery
		b := newBench(t, kindA, func(d *Delivery) Said {
			c := *d
			c.Message = d.Message.Clone()
			got = append(got, c)
			return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
		}, func(s *setup) { s.o.Policy.MaxAttempts = 3 })
		synctest.Wait()
		b.p.deliver(
			message("1"),
			message("2", core.CountHeader, "2", core.JournalHeader, "row1", "a", "b"),
			message("3", core.CountHeader, "abc"),
		)
		synctest.Wait()
		want := []struct {
			number  uint64
			last    bool
			headers int
		}{{1, false, 0}, {3, true, 2}, {1, false, 1}}
		for i, w := range want {
			if got[i].Number != w.number || got[i].Last != w.last || len(got[i].Message.Headers) != w.headers {
				t.Errorf("delivery %d: %+v", i, got[i])
			}
		}
		lines := b.logs.lines("L-COUNT")
		if len(lines) != 1 || lines[0]["value"] != "abc" {
			t.Errorf("lines %v", lines)
		}
	})
}

// The attempt is unknown where nothing counts and no copy can be made.
func TestDeliveryUnknownAttempt(t *testing.T) { // S-PUL-04, 36
	synctest.Test(t, func(t *testing.T) {
		exclusive := core.Capabilities{Ack: core.AckSingle, Requeue: core.RequeueDelayed, Unsettled: core.UnsettledOnDisconnect}
		number := uint64(99)
		b := newBench(t, exclusive, func(d *Delivery) Said {
			number = d.Number
			return Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
		}, func(s *setup) { s.o.RetryTo = core.Route{} })
		synctest.Wait()
		b.p.deliver(message("1"))
		synctest.Wait()
		if number != 0 {
			t.Errorf("attempt %d", number)
		}
	})
}

func TestDeadLetter(t *testing.T) { // D6, D7, D26, S-GEN-93, S-FIL-26, 27
	native, text, enveloped := stored, stored, stored
	text.Headers, text.Repeats = core.HeadersNativeText, false
	enveloped.Headers = core.HeadersEnveloped
	tests := map[string]struct {
		to     core.Publishing
		causes bool
		want   []string
	}{
		"native bytes": {native, false, []string{
			"x-bin: \x00\xff", "a: 1", "a: 2", "x-ruststream-retry-count: 1",
			"x-longshore-endpoint: in", "x-longshore-subscription: jobs", "x-longshore-attempts: 1",
			"x-longshore-time: 2000-01-01T00:00:00Z", "x-longshore-error: *errors.errorString",
			"x-longshore-reason: no stock, sorry", "x-longshore-stack: goroutine 1 main.go:7",
		}},
		"native text": {text, false, []string{
			"a: 2", "x-ruststream-retry-count: 1",
			"x-longshore-endpoint: in", "x-longshore-subscription: jobs", "x-longshore-attempts: 1",
			"x-longshore-time: 2000-01-01T00:00:00Z", "x-longshore-error: *errors.errorString",
			"x-longshore-reason: no stock, sorry", "x-longshore-stack: goroutine 1 main.go:7",
			"x-longshore-headers: " + core.Headers{{Name: "x-bin", Value: []byte{0, 0xff}}, {Name: "a", Value: []byte("1")}}.Encode(),
		}},
		"enveloped": {enveloped, false, []string{
			"x-bin: \x00\xff", "a: 1", "x-longshore-reason: old", "a: 2", "x-ruststream-retry-count: 1",
		}},
		"enveloped, on request": {enveloped, true, []string{
			"x-bin: \x00\xff", "a: 1", "a: 2", "x-ruststream-retry-count: 1",
			"x-longshore-endpoint: in", "x-longshore-subscription: jobs", "x-longshore-attempts: 1",
			"x-longshore-time: 2000-01-01T00:00:00Z", "x-longshore-error: *errors.errorString",
			"x-longshore-reason: no stock, sorry", "x-longshore-stack: goroutine 1 main.go:7",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, kindA, func(*Delivery) Said {
					return Said{
						Outcome: core.Outcome{Kind: core.OutcomeRetry, Cause: core.CausePanic},
						Err:     errors.New("no stock,\nsorry"), Stack: "goroutine 1\n\tmain.go:7",
					}
				}, func(s *setup) {
					s.o.Policy.MaxAttempts, s.o.Policy.DeadLetter = 1, true
					s.o.Dead = open("q", tt.to)
					s.o.Causes = tt.causes
				})
				synctest.Wait()
				b.p.deliver(message("x", "x-bin", "\x00\xff", "a", "1", "x-longshore-reason", "old", "a", "2"))
				synctest.Wait()
				got := b.p.outgoing()
				if len(got) != 1 || got[0].purpose != transportpb.Purpose_PURPOSE_DEAD_LETTER || got[0].Name != "q" {
					t.Fatalf("published %+v", got)
				}
				if diff := cmp.Diff(tt.want, pairs(got[0].Headers)); diff != "" {
					t.Error(diff)
				}
				if c := b.lane.Counters(); c.DeadLettered != 1 {
					t.Errorf("counters %+v", c)
				}
			})
		})
	}
}

// A destination computed for one delivery that nothing can carry: the delivery
// is dropped with a warning that says why.
func TestComputedDestination(t *testing.T) { // D8, S-MQT-23, S-GEN-61, 71
	tests := map[string]struct {
		attempt string
		fn      func(d *Delivery) (core.Route, error)
		want    string
		sent    []string
		calls   int
	}{
		"open": {"0", func(d *Delivery) (core.Route, error) { return open(d.Message.Name+".again", stored), nil },
			"PUBLISH(own,1); ACK", []string{"own.again"}, 1},
		"refused": {"0", func(*Delivery) (core.Route, error) { return core.Route{}, errors.New("topic is empty") },
			"WARN(L-REF); REJECT", nil, 1},
		"not asked at the cap": {"1", func(*Delivery) (core.Route, error) { return core.Route{}, errors.New("not asked") },
			"WARN(L-CAP-DL); PUBLISH(q,2); ACK", []string{"q"}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				b := newBench(t, kindA, says(retry()), func(s *setup) {
					s.o.Policy = core.Policy{MaxAttempts: 2, DeadLetter: true, RetryTo: true}
					s.o.Dead = open("q", stored)
					s.o.RetryTo = core.Route{}
					s.o.RetryFunc = func(d *Delivery) (core.Route, error) { calls++; return tt.fn(d) }
				})
				synctest.Wait()
				b.p.deliver(message("x", core.CountHeader, tt.attempt))
				synctest.Wait()
				if diff := cmp.Diff([]string{tt.want}, b.texts()); diff != "" {
					t.Error(diff)
				}
				var sent []string
				for _, o := range b.p.outgoing() {
					sent = append(sent, o.Name)
				}
				if diff := cmp.Diff(tt.sent, sent); diff != "" {
					t.Error(diff)
				}
				if calls != tt.calls {
					t.Errorf("asked %d times", calls)
				}
				if lines := b.logs.lines("L-REF"); name == "refused" && (len(lines) != 1 || lines[0]["reason"] != "topic is empty") {
					t.Errorf("lines %v", lines)
				}
			})
		})
	}
}

// Every try of one copy has the same id where the destination knows copies
// apart, and so has the copy of the same attempt after a redelivery.
func TestDedupID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, says(retry()), func(s *setup) {
			s.o.Policy.MaxAttempts = 5
			s.o.RetryTo.Caps.Dedups = true
			s.plugin = func(p *plugin) {
				p.receipt = func(_ *frame.Outgoing, n int) (frame.Receipt, bool) {
					if n == 1 {
						return frame.Receipt{Status: frame.ReceiptUnknown}, true
					}
					return frame.Receipt{Status: frame.ReceiptConfirmed}, true
				}
			}
		})
		synctest.Wait()
		m := message("x")
		m.Identity = []byte("id")
		next := message("x", core.CountHeader, "1")
		next.Identity = []byte("id")
		for _, d := range []frame.Delivery{m, m, next, message("y"), message("y")} {
			b.p.deliver(d)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		var ids []string
		for _, o := range b.p.outgoing() {
			ids = append(ids, o.dedup)
		}
		if len(ids) != 6 || ids[0] == "" || ids[0] != ids[1] || ids[1] != ids[2] || ids[2] == ids[3] || ids[4] == ids[5] {
			t.Errorf("ids %s", strings.Join(ids, " "))
		}
	})
}

// What a computed destination was refused for, and what a handler said, is the
// reason of a reject, on one line.
func TestRejectReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, func(*Delivery) Said {
			return Said{Outcome: core.Outcome{Kind: core.OutcomeDrop}, Err: errors.New("bad\nvalue")}
		})
		synctest.Wait()
		b.p.deliver(message("x"))
		synctest.Wait()
		if got := b.p.verdicts[0].Reason; got != "bad value" {
			t.Errorf("reason %q", got)
		}
	})
}
