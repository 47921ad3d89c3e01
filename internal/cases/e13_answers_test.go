// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory"
	"github.com/longshore-go/longshore/internal/memory/settings"
)

// E-13: what each outcome comes to on a normal delivery with nothing declared:
// the state at the source, the copies, and what is said. Sources without acks
// answer that they cannot, and it is said once a kind and registration.
func TestE13SettlementAnswers(t *testing.T) {
	t.Parallel()
	const delay = 50 * time.Millisecond
	outcomes := map[string]error{
		"ack": nil, "drop": host.Drop(nil), "retry": host.Retry(nil), "retry_after": host.RetryAfter(delay, nil),
	}
	want := map[string]map[string]string{
		"A": {"ack": "acked", "drop": "rejected", "retry": "again, acked", "retry_after": "acked, copy 1"},
		"C": {"ack": "acked", "drop": "rejected", "retry": "again, acked", "retry_after": "again, acked"},
		"M": {"ack": "acked", "drop": "acked", "retry": "outstanding, L-UNS", "retry_after": "acked, copy 1"},
		"U": {"ack": "sent, L-UNS", "drop": "sent, L-UNS", "retry": "sent, L-UNS", "retry_after": "sent, copy 1, L-UNS"},
		"K": {"ack": "acked", "drop": "acked", "retry": "acked, L-UNS", "retry_after": "acked, copy 1"},
	}
	b := newBench(t)
	s := newService(t)
	set := b.Settings
	for _, k := range kinds {
		for o := range outcomes {
			set = set.With(o+"-"+k.name, k.caps)
		}
	}
	in := b.attach(s, "mem", set)
	runs := newTally()
	for _, k := range kinds {
		for o, err := range outcomes {
			name := o + "-" + k.name
			host.Handle(in.Subscription(name), func(_ context.Context, m *host.Message[[]byte]) error {
				runs.ran(name, m.Attempt())
				if runs.runs(name) > 1 {
					return nil
				}
				return err
			}, backTo(in, name, k.caps)...)
		}
	}
	s.serve()
	for _, k := range kinds {
		for o := range outcomes {
			b.Publish(o+"-"+k.name, memory.Text("x"))
		}
	}
	for _, k := range kinds {
		for o := range outcomes {
			name := o + "-" + k.name
			switch want[k.name][o] {
			case "again, acked", "acked, copy 1", "sent, copy 1, L-UNS":
				eventually(t, "the second run of "+name, func() bool { return runs.runs(name) == 2 })
			default:
				eventually(t, "the run of "+name, func() bool { return runs.runs(name) == 1 })
			}
			if name != "retry-M" {
				b.must(b.WaitIdle(b.ctx, name))
			}
		}
	}
	got := map[string]map[string]string{}
	for _, k := range kinds {
		got[k.name] = map[string]string{}
		for o := range outcomes {
			name := o + "-" + k.name
			eventually(t, "what is said of "+name, func() bool {
				all := b.All(name)
				first := all[0]
				text := first.State.String()
				if first.Deliveries > 1 {
					text = "again, " + text
				}
				for _, c := range all[1:] {
					n, _ := c.Header(countHeader)
					text += ", copy " + n
				}
				for range s.log.of("L-UNS", name) {
					text += ", L-UNS"
				}
				got[k.name][o] = text
				return text == want[k.name][o]
			})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	s.stops()
}

// E-13: 10,000 outcomes on a source without acks are a handful of lines, and so
// are those of a second registration.
func TestE13ManyAcksAreFewLines(t *testing.T) {
	t.Parallel()
	messages := map[string]int{"first": 10_000, "second": 1_000}
	total := messages["first"] + messages["second"]
	b := newBench(t)
	s := newService(t)
	in := b.attach(s, "mem", b.Settings.With(settings.Rest, settings.KindU()))
	left := make(chan struct{}, total)
	for name, n := range messages {
		host.Handle(in.Subscription(name), func(_ context.Context, m *host.Message[[]byte]) error {
			left <- struct{}{}
			if m.Value[0]%2 == 0 {
				return host.Drop(nil)
			}
			return nil
		})
		batch := make([]memory.Message, n)
		for i := range batch {
			batch[i] = memory.Text(fmt.Sprint(i % 10))
		}
		b.Publish(name, batch...)
	}
	s.serve()
	for missing := total; missing > 0; missing-- {
		select {
		case <-left:
		case <-b.ctx.Done():
			t.Fatalf("%d are missing; %v", missing, b.Account())
		}
	}
	s.stops()
	for name := range messages {
		lines := s.log.that(func(l line) bool { return l.text("code") == "L-UNS" && l.text("subscription") == name })
		// One for acks, one for drops, and a summary of each at the end.
		if len(lines) < 2 || len(lines) > 6 {
			t.Errorf("%s: %d lines: %v", name, len(lines), lines)
		}
	}
	if all := s.log.above(); len(all) > 30 {
		t.Errorf("%d lines in all", len(all))
	}
}
