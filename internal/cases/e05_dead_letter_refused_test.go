// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// E-05: a dead letter that cannot be written is said with both names, and good
// messages go on. Where the source can hold it the original stays unsettled and
// is dead-lettered later; where it cannot, one message is lost and said to be.
func TestE05DeadLetterRefused(t *testing.T) {
	t.Parallel()
	type source struct {
		name string
		caps core.Capabilities
	}
	// These give it back for nine tenths of their longest delay.
	delaying := func(c core.Capabilities) core.Capabilities { c.MaxDelay = time.Second; return c }
	sources := []source{{"B", delaying(settings.KindB())}, {"D", delaying(settings.KindD())}}
	for _, k := range kinds {
		sources = append(sources, source(k))
	}
	faults := map[string]memory.PublishFault{
		"for good": {Status: memory.PublishRefused, Fault: &core.Fault{Code: core.FaultDenied, Message: "no permission to write"}},
		"for now":  {Status: memory.PublishRefused, Fault: &core.Fault{Code: core.FaultUnavailable, Message: "disk is full", Transient: true}},
	}
	for _, k := range sources {
		for how, fault := range faults {
			t.Run(k.name+" "+how, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				heal := b.FailPublishes("graves", fault)
				s := newService(t, host.WithPublishLimit(4*time.Second))
				set := b.Settings.With("orders", k.caps)
				set.Session = "kept"
				in := b.attach(s, "mem", set)
				runs := newTally()
				host.Handle(in.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
					runs.ran(string(m.Value), m.Attempt())
					if string(m.Value) == "bad" {
						return host.Retry(fmt.Errorf("no stock"))
					}
					return nil
				}, append(backTo(in, "orders", k.caps), host.MaxAttempts(1), host.DeadLetterTo(in.To("graves")))...)
				s.serve()
				b.Publish("orders", memory.Text("bad"))
				for i := range 20 {
					b.Publish("orders", memory.Text(fmt.Sprintf("good %02d", i)))
				}
				held := k.caps.Ack == core.AckSingle
				code := "L-COPY"
				if !held {
					code = "L-LOST"
				}
				eventually(t, "it is said", func() bool { return len(s.log.of(code, "orders")) > 0 })
				b.wait("the good ones are through", func(v memory.View) bool {
					a := v.Account("orders")
					return a.Acked+a.Sent >= 20
				})
				l := s.log.of(code, "orders")[0]
				if l.text("endpoint") != "mem" || l.text("destination") != "graves@mem" || !strings.Contains(l.text("error"), fault.Fault.Message) {
					t.Errorf("it says %v", l)
				}
				if n := len(b.Published("graves")); n != 0 {
					t.Fatalf("%d dead letters before it could be written", n)
				}
				if !held {
					if l.text("level") != "ERROR" {
						t.Errorf("level %s", l.text("level"))
					}
					s.stops()
					if n := len(s.log.of("L-LOST", "orders")); n != 1 {
						t.Errorf("said %d times that it is lost", n)
					}
					return
				}
				if a := b.Account("orders"); a.Queued+a.Outstanding != 1 || a.Lost != 0 {
					t.Errorf("account: %v, want the bad one to be held", a)
				}
				heal()
				b.must(b.WaitPublished(b.ctx, "graves", 1))
				b.must(b.WaitIdle(b.ctx, "orders"))
				s.stops()
				if diff := cmp.Diff([]string{"bad"}, payloads(b.Published("graves"))); diff != "" {
					t.Errorf("dead letters (-want +got):\n%s", diff)
				}
				if a := b.Account("orders"); a.Acked != 21 || a.Lost != 0 {
					t.Errorf("account: %v", a)
				}
				for i := range 20 {
					if n := runs.runs(fmt.Sprintf("good %02d", i)); n != 1 {
						t.Errorf("good %d ran %d times", i, n)
					}
				}
				if n := len(s.log.of("L-LOST", "")); n != 0 {
					t.Errorf("said %d times that something is lost", n)
				}
			})
		}
	}
}

// E-05: a dead letter for an endpoint whose plugin is gone waits for its return.
func TestE05DeadLetterToAnEndpointThatIsDown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := newService(t, host.WithRestartBackoff(300*time.Millisecond, 300*time.Millisecond))
	in := b.attach(s, "mem", b.Settings.With("orders", settings.KindA()))
	far := b.attach(s, "far", b.Settings)
	host.Handle(in.Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		if string(m.Value) == "bad" {
			return host.Retry(nil)
		}
		return nil
	}, host.MaxAttempts(1), host.DeadLetterTo(far.To("graves")))
	s.serve()
	b.must(b.client("far").Kill())
	b.Publish("orders", memory.Text("bad"))
	for range 20 {
		b.Publish("orders", memory.Text("good"))
	}
	b.wait("the good ones are through", func(v memory.View) bool {
		return v.Account("orders").Acked == 20 && len(v.Published("graves")) == 0
	})
	b.must(b.WaitPublished(b.ctx, "graves", 1))
	b.must(b.WaitIdle(b.ctx, "orders"))
	s.stops()
	if a := b.Account("orders"); a.Acked != 21 || a.Lost != 0 {
		t.Errorf("account: %v", a)
	}
}
