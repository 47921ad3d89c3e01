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
)

// sending publishes each message and acks with it; a failure is a retry.
func sending(failures *[]error) func(*Delivery) Said {
	return func(d *Delivery) Said {
		return Said{
			Outcome: core.Outcome{Kind: core.OutcomeAck},
			Publishes: []Publish{{
				To:      core.Destination{Endpoint: "in", Name: "next"},
				Message: core.Message{Payload: d.Message.Payload},
			}},
			Failed: func(d *Delivery, err error) Said {
				*failures = append(*failures, fmt.Errorf("%s: %w", d.Message.Payload, err))
				return Said{Outcome: core.Outcome{Kind: core.OutcomeRetry, Cause: core.CauseError}, Err: err}
			},
		}
	}
}

// A publish of a handler is handed over before the next delivery starts, awaited off the
// worker, and the outcome holds once it is confirmed.
func TestSend(t *testing.T) {
	gone := frame.Receipt{Status: frame.ReceiptRefused, Fault: &core.Fault{Code: core.FaultDenied, Message: "no rights"}}
	tests := map[string]struct {
		caps    core.Capabilities
		receipt frame.Receipt
		want    string
		failed  bool
	}{
		"confirmed":        {kindA, frame.Receipt{Status: frame.ReceiptConfirmed}, "ACK", false},
		"refused":          {kindA, gone, "WARN(L-ERR); PUBLISH(own,1)=REFUSED; WARN(L-COPY); HOLD(1s); REQUEUE", true},
		"unknown":          {kindA, frame.Receipt{Status: frame.ReceiptUnknown}, "WARN(L-ERR); PUBLISH(own,1); ACK", true},
		"unknown, no acks": {kindU, frame.Receipt{Status: frame.ReceiptUnknown}, "WARN-ONCE(L-UNS); RELEASE", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var failures []error
				b := newBench(t, tt.caps, sending(&failures), func(s *setup) {
					s.o.Policy.MaxAttempts = 3
					s.plugin = func(p *plugin) {
						p.receipt = func(o *frame.Outgoing, _ int) (frame.Receipt, bool) {
							if o.Message.Name == "own" && tt.receipt.Status == frame.ReceiptUnknown {
								return frame.Receipt{Status: frame.ReceiptConfirmed}, true
							}
							return tt.receipt, true
						}
					}
				})
				synctest.Wait()
				b.p.deliver(message("x"))
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if diff := cmp.Diff([]string{tt.want}, b.texts()); diff != "" {
					t.Error(diff)
				}
				if tt.failed != (len(failures) == 1) {
					t.Errorf("failures %v", failures)
				}
				unsure := tt.receipt.Status == frame.ReceiptUnknown && tt.caps.Ack == core.AckNone
				if lines := b.logs.lines("L-COPY"); unsure && (len(lines) != 1 || lines[0]["destination"] != "next@in") {
					t.Errorf("lines %v", b.logs.lines(""))
				}
				var e *PublishError
				if tt.failed && (!errors.As(failures[0], &e) || e.MaybeSent != (tt.receipt.Status == frame.ReceiptUnknown)) {
					t.Errorf("failure %v", failures[0])
				}
			})
		})
	}
}

func TestSendInOrderAndPipelined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures []error
		b := newBench(t, kindA, sending(&failures), func(s *setup) {
			s.plugin = func(p *plugin) { p.receipt = none }
		})
		synctest.Wait()
		var want, got []string
		for i := range 300 {
			want = append(want, fmt.Sprint(i))
			b.p.deliver(message(want[i]))
			if i%50 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		for _, o := range b.p.outgoing() {
			got = append(got, string(o.Payload))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if len(b.p.kinds()) != 0 {
			t.Error("acked before the receipts")
		}
		for id := range uint64(300) {
			b.p.receipts <- frame.Receipt{ID: id + 1, Status: frame.ReceiptConfirmed}
		}
		synctest.Wait()
		if n := b.p.unsettled(); n != 0 || len(b.p.kinds()) != 300 {
			t.Errorf("%d unsettled, %d verdicts", n, len(b.p.kinds()))
		}
	})
}

// A publish to an endpoint that is down fails at once; its retry waits.
func TestSendWhileDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures []error
		b := newBench(t, kindA, sending(&failures), func(s *setup) { s.o.Policy.MaxAttempts = 3 })
		synctest.Wait()
		b.box.Detach(nil)
		b.p.deliver(message("x"))
		synctest.Wait()
		var f *core.Fault
		if len(failures) != 1 || !errors.As(failures[0], &f) || f.Code != core.FaultUnavailable {
			t.Errorf("failures %v", failures)
		}
		if len(b.texts()) != 0 {
			t.Errorf("plans %v, want the copy to wait", b.texts())
		}
		time.Sleep(2 * publishLimit)
		synctest.Wait()
		want := []string{"WARN(L-ERR); PUBLISH(own,1)=TRANSIENT; WARN(L-COPY); HOLD(1s); REQUEUE"}
		if diff := cmp.Diff(want, b.texts()); diff != "" {
			t.Error(diff)
		}
	})
}

// A publish without a receipt is given up at the publish limit.
func TestSendWithoutAReceipt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures []error
		b := newBench(t, kindC, sending(&failures), func(s *setup) {
			s.plugin = func(p *plugin) { p.receipt = none }
		})
		synctest.Wait()
		m := message("x")
		m.Attempt = 1
		b.p.deliver(m)
		time.Sleep(publishLimit + time.Second)
		synctest.Wait()
		if diff := cmp.Diff([]string{"WARN(L-ERR); REQUEUE"}, b.texts()); diff != "" {
			t.Error(diff)
		}
	})
}

// The destination is named once, whatever the plugin says of it.
func TestPublishErrorNamesItsDestinationOnce(t *testing.T) {
	for said, want := range map[string]string{
		`publish to "next": no connected peer`: "publish to next@in: not sent: no connected peer",
		"publish to next: ZeroMQ cannot":       "publish to next@in: not sent: ZeroMQ cannot",
		`publish to "other": no such queue`:    `publish to next@in: not sent: publish to "other": no such queue`,
		"no rights":                            "publish to next@in: not sent: no rights",
	} {
		err := &PublishError{To: core.Destination{Endpoint: "in", Name: "next"}, Fault: &core.Fault{Message: said}}
		if err.Error() != want {
			t.Errorf("got %q, want %q", err.Error(), want)
		}
	}
}
