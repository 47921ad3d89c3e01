// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	lib "github.com/apache/pulsar-client-go/pulsar"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// counted counts payloads.
type counted struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counted) add(payload []byte) (all int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[string(payload)]++
	for _, n := range c.n {
		all += n
	}
	return all
}

func (c *counted) of(n int) []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]int, n)
	for i := range out {
		out[i] = c.n[strconv.Itoa(i)]
	}
	return out
}

// P-15: a seek to the earliest message while eight handlers work. What comes behind
// it is all there is, once more, whatever handlers of before say.
func TestSeekUnderLoad(t *testing.T) {
	t.Parallel()
	types(t, all, func(t *testing.T, o settings.SubscribeOptions) {
		const n = 1000
		s := newService(t, rowOptions{})
		orders := s.reads("t", o)
		var handled counted
		half := make(chan struct{})
		s.Handle(orders, func(m *host.Message[[]byte]) error {
			if handled.add(m.Value) == n/2 {
				close(half)
			}
			return nil
		}, host.Workers(8))
		s.Start()
		s.put("t", numbered(n)...)
		<-half
		before := handled.of(n)
		if err := orders.Seek(t.Context(), host.Earliest()); err != nil {
			t.Fatalf("%v\n%s", err, s.Log)
		}
		s.Eventually("every message is handled once more", func() bool {
			return grown(before, handled.of(n))
		})
		s.left(0)
		endAll(s)
	})
}

// grown reports whether each count has grown.
func grown(before, after []int) bool {
	for i := range before {
		if after[i] <= before[i] {
			return false
		}
	}
	return true
}

// A seek goes to a time and to a position, of a delivery or of a receipt, and to both
// ends, over partitions as well.
func TestSeekToPositions(t *testing.T) {
	t.Parallel()
	for name, partitions := range map[string]int{"one topic": 0, "partitions": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, rowOptions{})
			if partitions > 0 {
				s.b.CreatePartitioned(s.topic("t"), partitions)
			}
			orders := s.reads("t", settings.SubscribeOptions{})
			positions := map[string][]byte{}
			s.Handle(orders, func(m *host.Message[[]byte]) error {
				positions[string(m.Value)] = m.Clone().Position()
				return nil
			})
			s.Start()
			s.b.CreateSubscription(s.topic("t"), "keeps") // what all have acked would be deleted
			s.put("t", keyed(0, 4)...)
			s.Handled(4)
			between := time.Now()
			tick := time.NewTicker(5 * time.Millisecond) // the broker's times are in milliseconds
			defer tick.Stop()
			<-tick.C
			s.put("t", keyed(4, 8)...)
			s.Handled(4)
			for _, step := range []struct {
				to   host.Position
				want []string
			}{
				{host.Earliest(), []string{"0", "1", "2", "3", "4", "5", "6", "7"}},
				{host.PublishedAfter(between), []string{"4", "5", "6", "7"}},
				{host.AtPosition(positions["6"]), []string{"6", "7"}}, // one key, so one partition
			} {
				if err := orders.Seek(t.Context(), step.to); err != nil {
					t.Fatalf("%v\n%s", err, s.Log)
				}
				var got []string
				for _, run := range s.Handled(len(step.want)) {
					var topic, attempt, payload string
					_, _ = fmt.Sscan(run, &topic, &attempt, &payload)
					got = append(got, payload)
				}
				slices.Sort(got)
				if !slices.Equal(got, step.want) {
					t.Errorf("behind %v: %v, want %v", step.to, got, step.want)
				}
			}
			if err := orders.Seek(t.Context(), host.Earliest()); err != nil {
				t.Fatal(err)
			}
			if err := orders.Seek(t.Context(), host.Latest()); err != nil {
				t.Fatal(err)
			}
			_ = s.Rest() // what came between the two
			s.put("t", keyed(8, 9)...)
			s.Eventually("the new one is handled", func() bool {
				return slices.ContainsFunc(s.Runs(), func(run string) bool { return run == s.run("t", 1, "8") })
			})
			endAll(s)
		})
	}
}

// keyed are the numbers from one up to another, of which all but the first ones of a
// half have one key.
func keyed(from, to int) (ms []*lib.ProducerMessage) {
	for i := from; i < to; i++ {
		m := &lib.ProducerMessage{Payload: []byte(strconv.Itoa(i)), Key: "late"}
		if i%4 < 2 {
			m.Key = fmt.Sprint("early ", i)
		}
		ms = append(ms, m)
	}
	return ms
}

// Two hosts share a subscription that one of them moves: both get what comes again,
// and nothing is lost of it.
func TestSeekOfASharedSubscription(t *testing.T) {
	t.Parallel()
	const n = 300
	var subs []*host.Subscription
	h := &handledBy{}
	var hosts []*service
	for i := range 2 {
		s := newService(t, rowOptions{})
		sub := s.reads("t", settings.SubscribeOptions{})
		s.Handle(sub, func(m *host.Message[[]byte]) error {
			h.add(i, m)
			return nil
		})
		s.Start()
		subs, hosts = append(subs, sub), append(hosts, s)
	}
	hosts[0].put("t", numbered(n)...)
	h.await(hosts[0], n/2)
	before := countsOf(h.all(), n)
	if err := subs[0].Seek(t.Context(), host.Earliest()); err != nil {
		t.Fatal(err)
	}
	hosts[0].Eventually("every message is handled once more", func() bool { return grown(before, countsOf(h.all(), n)) })
	hosts[0].left(0)
	endAll(hosts...)
}

// countsOf are the runs of each number.
func countsOf(runs []runBy, n int) []int {
	out := make([]int, n)
	for _, r := range runs {
		if i, err := strconv.Atoi(r.payload); err == nil && i < n {
			out[i]++
		}
	}
	return out
}

// A position that is none of the subscription's is refused, and it reads on.
func TestSeekInVain(t *testing.T) {
	t.Parallel()
	s := newService(t, rowOptions{})
	orders := s.reads("t", settings.SubscribeOptions{})
	other := host.To[[]byte](s.Host, s.in.To(s.topic("other")))
	s.Handle(orders, func(*host.Message[[]byte]) error { return nil })
	s.Start()
	r, err := other.Publish(t.Context(), []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	for what, position := range map[string][]byte{"no position": []byte("sequence 7"), "another topic's": r.Position} {
		var f *core.Fault
		if err := orders.Seek(t.Context(), host.AtPosition(position)); !errors.As(err, &f) || f.Transient {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.put("t", numbered(1)...)
	s.handled(1, 1, "0")
	s.Stop()
}
