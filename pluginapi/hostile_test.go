// SPDX-License-Identifier: Apache-2.0

package pluginapi

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// huge is an error as an author makes it who puts the message into its text.
func huge() *core.Fault {
	f := &core.Fault{Code: core.FaultUnavailable, Message: strings.Repeat("ä", 10<<20)}
	for range 1000 {
		f.Diagnostics = append(f.Diagnostics, core.Diagnostic{Path: strings.Repeat("p", 5000)})
	}
	return f
}

func TestFaultsAreCut(t *testing.T) {
	f := brief(huge())
	if len(f.Message) > maxFaultText || len(f.Diagnostics) != maxDiagnostics || len(f.Diagnostics[0].Path) != maxReportPlace {
		t.Errorf("cut to %d bytes and %d diagnostics of %d bytes", len(f.Message), len(f.Diagnostics), len(f.Diagnostics[0].Path))
	}
	if f.Message != strings.ToValidUTF8(f.Message, "") || !strings.HasSuffix(f.Message, "...") {
		t.Errorf("message ends with %q", f.Message[len(f.Message)-9:])
	}
	small := newFault(core.FaultInternal, "small")
	if brief(small) != small || brief(nil) != nil {
		t.Error("what fits is copied")
	}
	if d := cmp.Diff([]string{"abc", "a...", "...", ""}, []string{cut("abc", 3), cut("aäbcde", 5), cut("äbcdef", 4), cut("", 0)}); d != "" {
		t.Errorf("cut (-want +got):\n%s", d)
	}
}

// Whatever texts and bytes an author returns, results and receipts get through.
func TestHugeAnswers(t *testing.T) {
	tr := newQueueTransport(everything())
	tr.settle = func(_ context.Context, _ *queue, vs []Verdict) []Result {
		return failed(len(vs), huge())
	}
	tr.publish = func(_ context.Context, msgs []Outgoing, done func(int, Receipt)) {
		for i := range msgs {
			done(i, Receipt{Status: ReceiptRefused, Fault: huge(), Position: make([]byte, 70<<20)})
		}
	}
	b := serve(t, tr).connect()
	q := tr.queue("q")
	q.put(Delivery{Undecodable: huge()}, Delivery{})
	q.say(Batch{Reports: []Report{{Fault: huge(), Position: strings.Repeat("x", 70<<20)}}})
	q.finish(huge())
	st := b.subscribe("q")
	st.credit(10, 1<<20)
	st.got(2)
	st.settle(ack(1), ack(2))
	if d := cmp.Diff(map[uint64]frame.SettleStatus{1: frame.SettleFailed, 2: frame.SettleFailed}, st.results(2)); d != "" {
		t.Errorf("results (-want +got):\n%s", d)
	}
	st.wait("Ended", func() bool { return len(st.ended) == 1 })
	st.finish()
	p := b.publish()
	p.send(to("n", "1"), to("n", "2"))
	if d := cmp.Diff(map[uint64]frame.ReceiptStatus{1: frame.ReceiptRefused, 2: frame.ReceiptRefused}, p.statuses(2)); d != "" {
		t.Errorf("receipts (-want +got):\n%s", d)
	}
}

// deaf is a publish stream that takes no receipts.
type deaf struct {
	ctx  context.Context
	once chan *frame.Publishes
}

func (d deaf) Context() context.Context   { return d.ctx }
func (d deaf) Send([]frame.Receipt) error { return newFault(core.FaultTooLarge, "no") }
func (d deaf) Recv() (*frame.Publishes, error) {
	select {
	case f := <-d.once:
		return f, nil
	case <-d.ctx.Done():
		return nil, d.ctx.Err()
	}
}

// A publish stream on which receipts cannot be sent ends with the reason.
func TestReceiptsThatCannotBeSent(t *testing.T) {
	b := serve(t, newQueueTransport(everything())).connect()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d := deaf{ctx, make(chan *frame.Publishes, 1)}
	f := frame.NewPublishes()
	f.Items = append(f.Items, frame.Outgoing{ID: 1})
	d.once <- f
	err := b.server.Publish(d)
	var fault *core.Fault
	if !errors.As(err, &fault) || fault.Code != core.FaultTooLarge {
		t.Errorf("stream ended with %v", err)
	}
	b.publish().send(to("n", "1")) // there can be another one
}

// refusing is a subscription's stream that takes nothing after Started.
type refusing struct {
	ctx context.Context
	in  chan frame.SubscribeRequest
}

func (r refusing) Context() context.Context { return r.ctx }

func (r refusing) Send(m *frame.SubscribeResponse) error {
	if m.Started != nil {
		return nil
	}
	if m.Deliveries != nil {
		m.Deliveries.Release()
	}
	return newFault(core.FaultTooLarge, "no")
}

func (r refusing) Recv(m *frame.SubscribeRequest) error {
	select {
	case *m = <-r.in:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

func TestDeliveriesThatCannotBeSent(t *testing.T) {
	tr := newQueueTransport(everything())
	b := serve(t, tr).connect()
	tr.queue("q").fill(1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := refusing{ctx, make(chan frame.SubscribeRequest, 2)}
	r.in <- frame.SubscribeRequest{Start: &transportpb.SubscribeStart{Registration: &transportpb.Registration{Name: "q"}}}
	r.in <- frame.SubscribeRequest{Credit: &frame.Credit{Messages: 1, Bytes: 1}}
	err := b.server.Subscribe(r)
	var fault *core.Fault
	if !errors.As(err, &fault) || fault.Code != core.FaultTooLarge {
		t.Errorf("stream ended with %v", err)
	}
	if n := tr.queue("q").left(); n != 1 {
		t.Errorf("%d unsettled, want 1", n)
	}
}

// Handles that cannot be compared end a subscription whose wrapper needs it,
// and hang nothing.
func TestWrappersOfHandlesThatCannotBeCompared(t *testing.T) {
	for name, wrap := range map[string]func(Subscription) Subscription{
		"held": func(s Subscription) Subscription { return Held(s, 0) }, "cumulative": Cumulative,
	} {
		t.Run(name, func(t *testing.T) {
			tr := newQueueTransport(HeldCapabilities(requeueNow()))
			tr.offers = []core.Capabilities{requeueNow()}
			tr.receive = func(ctx context.Context, _ *queue, room Room) (Batch, error) {
				return Batch{Deliveries: []Delivery{{Handle: []byte("slice"), Attempt: 1, Scope: "s"}}}, nil
			}
			tr.wrap = wrap
			b := serve(t, tr).connect()
			st := b.subscribe("q")
			st.credit(1, 1<<20)
			st.wait("Ended", func() bool { return len(st.ended) == 1 })
			if f := st.ended[0].GetFault(); f.GetCode() != transportpb.FaultCode_FAULT_CODE_INTERNAL {
				t.Errorf("ended with %v", f)
			}
			st.finish()
		})
	}
}
