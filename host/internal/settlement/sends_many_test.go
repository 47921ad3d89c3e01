// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// sendsAll publishes to each destination and acks with it.
func sendsAll(failed func(error), to ...string) func(*Delivery) Said {
	return func(d *Delivery) Said {
		said := Said{Outcome: core.Outcome{Kind: core.OutcomeAck}}
		for _, name := range to {
			p := Publish{
				To:      core.Destination{Endpoint: "in", Name: name},
				Message: core.Message{Payload: d.Message.Payload},
				Purpose: uint8(transportpb.Purpose_PURPOSE_APPLICATION),
			}
			if before, endpoint, ok := strings.Cut(name, "@"); ok {
				p.To.Name, p.To.Endpoint = before, endpoint
			}
			said.Publishes = append(said.Publishes, p)
		}
		said.Failed = func(_ *Delivery, err error) Said {
			failed(err)
			return Said{Outcome: core.Outcome{Kind: core.OutcomeRetry, Cause: core.CauseError}, Err: err}
		}
		return said
	}
}

// names are what was published so far, copies left out.
func (p *plugin) names() []string {
	var out []string
	for _, o := range p.outgoing() {
		if o.purpose == transportpb.Purpose_PURPOSE_APPLICATION || o.purpose == transportpb.Purpose_PURPOSE_REPLY {
			out = append(out, o.Name)
		}
	}
	return out
}

// Several publishes of one handler are all confirmed before its ack, or the
// first that was not decides; the others stay sent.
func TestSendMany(t *testing.T) {
	gone := frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{Code: core.FaultDenied, Message: "no rights"}}
	confirmed := frame.Receipt{Status: frame.ReceiptConfirmed}
	tests := map[string]struct {
		caps     core.Capabilities
		receipts map[string]frame.Receipt
		want     string
		failed   string // the destination that decides
		maybe    bool
	}{
		"all confirmed":     {kindA, nil, "ACK", "", false},
		"the second is not": {kindA, map[string]frame.Receipt{"b": gone}, "WARN(L-ERR); PUBLISH(own,1); ACK", "b@in", false},
		"two are not": {
			kindA, map[string]frame.Receipt{"b": {Status: frame.ReceiptUnknown}, "c": gone},
			"WARN(L-ERR); PUBLISH(own,1); ACK", "b@in", true,
		},
		"unknown, no acks":             {kindU, map[string]frame.Receipt{"b": {Status: frame.ReceiptUnknown}}, "WARN-ONCE(L-UNS); RELEASE", "", false},
		"unknown and refused, no acks": {kindU, map[string]frame.Receipt{"a": {Status: frame.ReceiptUnknown}, "c": gone}, "WARN(L-ERR); PUBLISH(own,1); RELEASE", "c@in", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var failures []error
				b := newBench(t, tt.caps, sendsAll(func(err error) { failures = append(failures, err) }, "a", "b", "c"), func(s *setup) {
					s.o.Policy.MaxAttempts = 3
					s.plugin = func(p *plugin) {
						p.receipt = func(o *frame.Outgoing, _ int) (frame.Receipt, bool) {
							if r, ok := tt.receipts[o.Message.Name]; ok {
								return r, true
							}
							return confirmed, true
						}
					}
				})
				synctest.Wait()
				b.p.deliver(message("x"))
				synctest.Wait()
				if diff := cmp.Diff([]string{tt.want}, b.texts()); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff([]string{"a", "b", "c"}, b.p.names()); diff != "" {
					t.Error(diff)
				}
				if tt.failed == "" {
					if len(failures) != 0 {
						t.Errorf("failures %v", failures)
					}
					return
				}
				var e *PublishError
				if len(failures) != 1 || !errors.As(failures[0], &e) {
					t.Fatalf("failures %v", failures)
				}
				if e.To.String() != tt.failed || e.MaybeSent != tt.maybe || e.Purpose != uint8(transportpb.Purpose_PURPOSE_APPLICATION) {
					t.Errorf("failure %+v", e)
				}
			})
		})
	}
}

// Where one of several publishes cannot leave, none does.
func TestSendNothingWhereOneCannotLeave(t *testing.T) {
	huge := strings.Repeat("x", 100)
	tests := map[string]struct {
		to     []string
		failed string
		code   core.FaultCode
	}{
		"not attached": {[]string{"a", "b@nowhere", "c"}, "b@nowhere", core.FaultNotFound},
		"down":         {[]string{"a", "b", "c@down"}, "c@down", core.FaultUnavailable},
		"no UTF-8":     {[]string{"a", "b\xff", "c"}, "b\xff@in", core.FaultInvalid},
		"the first":    {[]string{"a@down", "b@nowhere"}, "a@down", core.FaultUnavailable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var failures []error
				b := newBench(t, kindA, sendsAll(func(err error) { failures = append(failures, err) }, tt.to...), func(s *setup) {
					s.o.Policy.MaxAttempts = 3
				})
				down := NewOutbox(OutboxOptions{Endpoint: "down", Logger: b.lane.log})
				defer down.Close()
				b.lane.o.Outboxes = func(endpoint string) *Outbox {
					return map[string]*Outbox{"in": b.box, "down": down}[endpoint]
				}
				synctest.Wait()
				b.p.deliver(message(huge))
				synctest.Wait()
				if names := b.p.names(); len(names) != 0 {
					t.Errorf("%q left", names)
				}
				if diff := cmp.Diff([]string{"WARN(L-ERR); PUBLISH(own,1); ACK"}, b.texts()); diff != "" {
					t.Error(diff)
				}
				var e *PublishError
				if len(failures) != 1 || !errors.As(failures[0], &e) || e.Fault == nil {
					t.Fatalf("failures %v", failures)
				}
				if e.To.String() != tt.failed || e.Fault.Code != tt.code || e.MaybeSent {
					t.Errorf("failure %+v: %v", e, e.Fault)
				}
			})
		})
	}
}

// All of a delivery's publishes are handed over before the next delivery's.
func TestSendManyInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, sendsAll(func(err error) { t.Error(err) }, "a", "b"), func(s *setup) {
			s.plugin = func(p *plugin) { p.receipt = none }
		})
		synctest.Wait()
		var want, got []string
		for i := range 100 {
			b.p.deliver(message(fmt.Sprint(i)))
			want = append(want, fmt.Sprint("a", i), fmt.Sprint("b", i))
		}
		synctest.Wait()
		for _, o := range b.p.outgoing() {
			got = append(got, o.Name+string(o.Payload))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		for id := range uint64(200) { // the last receipts first
			if id == 199 && len(b.p.kinds()) != 99 {
				t.Errorf("%d verdicts before the last receipt", len(b.p.kinds()))
			}
			b.p.receipts <- frame.Receipt{ID: 200 - id, Status: frame.ReceiptConfirmed}
			synctest.Wait()
		}
		if n := b.p.unsettled(); n != 0 || len(b.p.kinds()) != 100 {
			t.Errorf("%d unsettled, %d verdicts", n, len(b.p.kinds()))
		}
	})
}

// Receipts that are missing at the publish limit decide, late ones do nothing.
func TestSendManyWithoutAReceipt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures []error
		b := newBench(t, kindA, sendsAll(func(err error) { failures = append(failures, err) }, "a", "b", "c"), func(s *setup) {
			s.o.Policy.MaxAttempts = 3
			s.plugin = func(p *plugin) {
				p.receipt = func(o *frame.Outgoing, _ int) (frame.Receipt, bool) {
					return frame.Receipt{Status: frame.ReceiptConfirmed}, o.Message.Name != "b"
				}
			}
		})
		synctest.Wait()
		b.p.deliver(message("x"))
		time.Sleep(publishLimit + time.Second)
		synctest.Wait()
		b.p.receipts <- frame.Receipt{ID: 2, Status: frame.ReceiptConfirmed}
		synctest.Wait()
		var e *PublishError
		if len(failures) != 1 || !errors.As(failures[0], &e) || e.To.Name != "b" || !e.MaybeSent {
			t.Errorf("failures %v", failures)
		}
		if diff := cmp.Diff([]string{"WARN(L-ERR); PUBLISH(own,1); ACK"}, b.texts()); diff != "" {
			t.Error(diff)
		}
	})
}

// Without Failed a reply that fails is a retry with L-REPLY, which names it (1.15,
// S-GEN-52), and the delivery's carry goes with the reply.
func TestSendReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, kindA, func(*Delivery) Said {
			return Said{
				Outcome: core.Outcome{Kind: core.OutcomeAck},
				Publishes: []Publish{{
					To: core.Destination{Endpoint: "in", Name: "answers"}, Purpose: uint8(transportpb.Purpose_PURPOSE_REPLY),
					Type: "Priced", WithCarry: true, DedupID: "one", DeliverAfter: time.Second,
				}},
			}
		}, func(s *setup) {
			s.o.Policy.MaxAttempts = 2
			s.plugin = func(p *plugin) {
				p.receipt = func(o *frame.Outgoing, _ int) (frame.Receipt, bool) {
					if o.Message.Name == "answers" {
						return frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{Code: core.FaultDenied, Message: "no rights"}}, true
					}
					return frame.Receipt{Status: frame.ReceiptConfirmed}, true
				}
			}
		})
		synctest.Wait()
		m := message("x")
		m.Carry = []byte("origin")
		b.p.deliver(m)
		synctest.Wait()
		if diff := cmp.Diff([]string{"WARN(L-REPLY); PUBLISH(own,1); ACK"}, b.texts()); diff != "" {
			t.Error(diff)
		}
		sent := b.p.outgoing()[0]
		if sent.carry != "origin" || sent.dedup != "one" || sent.after != time.Second {
			t.Errorf("sent %+v", sent)
		}
		lines := b.logs.lines("L-REPLY")
		if len(lines) != 1 || lines[0]["reply"] != "answers@in" || lines[0]["reply_type"] != "Priced" || lines[0]["error"] == "" {
			t.Errorf("lines %v", lines)
		}
	})
}
