// SPDX-License-Identifier: Apache-2.0

package settlement

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// What is decided about a nil once for all of a profile's deliveries is what
// would be decided about each.
func TestDirectAcksAreThePlan(t *testing.T) {
	names := []string{"A", "B", "C", "D", "K", "M", "T", "U"}
	rapid.Check(t, func(t *rapid.T) {
		source := kinds[rapid.SampledFrom(names).Draw(t, "kind")]
		route := rapid.SampledFrom([]core.Route{{}, open("own", stored), {State: core.RouteRefused}})
		o := LaneOptions{RetryTo: route.Draw(t, "retry"), Dead: route.Draw(t, "dead"), Policy: core.Policy{
			MaxAttempts: rapid.Uint32Range(0, 3).Draw(t, "cap"),
			DeadLetter:  rapid.Bool().Draw(t, "dead letter"),
			Backoff:     rapid.Bool().Draw(t, "backoff"),
		}}
		direct := directAcks(&o, []core.Capabilities{source})[0]
		c := core.Case{
			Source: source, Retry: o.RetryTo, Dead: o.Dead, Outcome: acked,
			Attempt: core.Attempt{Native: rapid.Uint32Range(0, 5).Draw(t, "native"), Copies: rapid.Uint64Range(0, 5).Draw(t, "copies")},
			Held:    time.Duration(rapid.IntRange(0, 60).Draw(t, "held")) * time.Second,
			Spent:   rapid.Bool().Draw(t, "spent"), Full: rapid.Bool().Draw(t, "full"),
		}
		if !core.Admit(&o.Policy, &c) {
			t.Skip("no handler runs")
		}
		var p core.Plan
		core.Decide(&o.Policy, &c, &p)
		one := p.Notes == 0 && p.Steps[0].Do == core.ActAck && silent(&p, &p.Steps[0])
		if one != direct {
			t.Errorf("direct is %v, the plan %v", direct, p)
		}
	})
}

// A lane that makes no plan for a nil gives the same verdicts and counts as one
// that makes and walks it.
func TestDirectAcksEndAsPlans(t *testing.T) {
	for name, kind := range kinds {
		for what, after := range map[string]func(b *bench, d *Delivery) Said{
			"acks": func(*bench, *Delivery) Said { return Said{Outcome: acked} },
			"taken back while they run": func(b *bench, d *Delivery) Said {
				if string(d.Message.Payload) == "2" {
					time.Sleep(time.Second) // the verdict before has left
					b.p.void(&transportpb.Void{First: 2, Count: 1})
					time.Sleep(time.Second)
				}
				return Said{Outcome: acked}
			},
			"lost while they run": func(b *bench, d *Delivery) Said {
				if string(d.Message.Payload) == "2" {
					time.Sleep(time.Second) // the verdict before has left
					b.crash()
					time.Sleep(time.Second)
				}
				return Said{Outcome: acked}
			},
			"retried before": func(_ *bench, d *Delivery) Said {
				if string(d.Message.Payload) == "2" && d.Number < 2 {
					return Said{Outcome: retry()}
				}
				return Said{Outcome: acked}
			},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				run := func(direct bool) (verdicts []core.VerdictKind, c Counters) {
					synctest.Test(t, func(t *testing.T) {
						var b *bench
						b = newBench(t, kind, func(d *Delivery) Said { return after(b, d) }, func(s *setup) {
							s.blind, s.o.Policy.MaxAttempts = true, 3
							if !direct { // it counts outcomes, and never opens
								s.o.Circuit = &Circuit{Share: 1, Of: 1000, Pause: time.Second, Longest: time.Second, Probes: 1}
							}
						})
						synctest.Wait()
						b.p.deliver(message("1"), message("2"), message("3"), message("4"))
						time.Sleep(time.Minute)
						synctest.Wait()
						verdicts, c = b.p.kinds(), b.lane.Counters()
					})
					return verdicts, c
				}
				verdicts, counts := run(true)
				walked, counted := run(false)
				if d := cmp.Diff(walked, verdicts); d != "" {
					t.Errorf("verdicts (-by plans +direct):\n%s", d)
				}
				if d := cmp.Diff(counted, counts); d != "" {
					t.Errorf("counts (-by plans +direct):\n%s", d)
				}
			})
		}
	}
}

// What a nil leaves behind in the worker's settlement is nothing that a next
// delivery could take for its own.
func TestDirectAcksLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		var s *settlement
		b = newBench(t, kindC, func(*Delivery) Said {
			b.lane.mu.Lock()
			defer b.lane.mu.Unlock()
			s = b.lane.running[0]
			return Said{Outcome: acked}
		}, func(s *setup) { s.blind = true })
		synctest.Wait()
		d := message("1", core.CountHeader, "no number", "a", "b")
		d.Identity, d.Position, d.Scope, d.PublishedAt = []byte("id"), []byte("at"), "scope", 1
		b.p.deliver(d)
		synctest.Wait()
		if c := b.lane.Counters(); c.Acked != 1 {
			t.Fatalf("counters %+v", c)
		}
		kept := strings.Fields("l index generation id c of plan cur step wait")
		v := reflect.ValueOf(s).Elem()
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; !slices.Contains(kept, name) && !v.Field(i).IsZero() {
				t.Errorf("%s is %v", name, v.Field(i))
			}
		}
	})
}

// A case begins as that of its profile, whatever the last one became.
func TestCasesBeginAnew(t *testing.T) {
	o := LaneOptions{RetryTo: open("own", stored), Dead: open("dead", stored)}
	of := cases(&o, []core.Capabilities{kindA, kindC})
	s := &settlement{}
	for i := range 4 {
		s.begins(&of[i/2])
		if d := cmp.Diff(of[i/2], s.c); d != "" {
			t.Fatal(d)
		}
		v := reflect.ValueOf(&s.c).Elem()
		for f := range v.NumField() {
			switch name := v.Type().Field(f).Name; name {
			case "Source", "Retry", "Dead", "Journal": // of the profile
			case "Attempt", "Outcome", "Held", "Floor", "Void", "Spent", "Full":
				fill(v.Field(f))
			default:
				t.Fatalf("does %s change with a delivery?", name)
			}
		}
	}
}

// fill sets everything in v.
func fill(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(1)
	default:
		v.SetUint(1)
	}
}
