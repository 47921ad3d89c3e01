// SPDX-License-Identifier: Apache-2.0

package mqtt_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/mosquitto"
	"github.com/longshore-go/longshore/internal/servicetest"
)

// Copies that wait leave before the service does, within its limit.
func TestS_MQT_31(t *testing.T) {
	t.Parallel()
	const d, limit = time.Second, servicetest.Limit
	s := newService(t, rowOptions{host: []host.Option{host.WithDrainLimit(limit)}})
	beside := s.b.Subscribe(1, []string{"t"})
	var last time.Time // of the runs
	s.Handle(s.reads("t", 1), func(*host.Message[[]byte]) error {
		last = time.Now()
		return host.RetryAfter(d, nil)
	})
	s.Start()
	s.put("t", "x", 1)
	s.Eventually("a copy waits", func() bool { return s.Health().Endpoints[0].Subscriptions[0].Counters.Waiting == 1 })
	began := time.Now()
	s.Cancel()
	s.Ended()
	ended := time.Now()
	s.b.Await(1, "Received DISCONNECT from "+clientID)
	if ended.Sub(last) < d || ended.Sub(began) > limit/2 {
		t.Errorf("the stop took %v, and ended %v behind the last run", ended.Sub(began), ended.Sub(last))
	}
	want := []string{"t x"}
	runs := s.Rest() // more than one where a copy has left before it was seen to wait
	for i := range runs {
		want = append(want, copied("t", "x", i+1))
		s.inOrder(fmt.Sprintf("out PUBACK #%d", i+1), fmt.Sprintf("out PUBLISH t q1 @%d", i+1), fmt.Sprintf("in PUBACK @%d", i+1))
	}
	if len(runs) == 0 || runs[0] != "t 1 x" {
		t.Errorf("runs %q", runs)
	}
	servicetest.Expect(t, "beside", beside.Rest(), want...)
	s.codes(nil)
}

// With a journal nothing waits at a stop: the next life publishes the copy.
func TestS_MQT_31_journal(t *testing.T) {
	t.Parallel()
	b := mosquitto.Start(t, mosquitto.Config{})
	beside := b.Subscribe(1, []string{"t"})
	j := &journal{rows: map[string]host.Row{}}
	s := newServiceAt(t, b, rowOptions{host: []host.Option{host.WithJournal(j)}})
	s.Handle(s.reads("t", 1), servicetest.Always(host.RetryAfter(time.Hour, nil)))
	s.Start()
	s.put("t", "x", 1)
	s.Ran(1)
	s.Eventually("the copy is kept", func() bool { return j.count() == 1 })
	s.stop()
	s.inOrder("out PUBACK #1")
	servicetest.Expect(t, "beside", beside.Rest(), "t x")

	j.due()
	next := newServiceAt(t, b, rowOptions{host: []host.Option{host.WithJournal(j)}})
	next.Handle(next.reads("t", 1), servicetest.Always(nil))
	next.Start()
	servicetest.Expect(t, "runs", next.Handled(1), "t 2 x")
	next.Stop()
	servicetest.Expect(t, "beside", beside.Rest(), copied("t", "x", 1))
	if n := j.count(); n != 0 {
		t.Errorf("%d copies are kept", n)
	}
}

// journal keeps copies as long as the test.
type journal struct {
	mu   sync.Mutex
	n    int
	rows map[string]host.Row
	old  []host.Row // of former lives, not asked for yet
}

func (j *journal) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.rows)
}

// due makes all that is kept due in the next life.
func (j *journal) due() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.rows {
		r.Delay = 0
		j.old = append(j.old, r)
	}
}

func (j *journal) Store(_ context.Context, c host.Copy, delay time.Duration) (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.n++
	id := fmt.Sprint(j.n)
	c.Message = c.Message.Clone()
	c.Carry = append([]byte(nil), c.Carry...)
	j.rows[id] = host.Row{ID: id, Copy: c, Delay: delay}
	return id, nil
}

func (j *journal) Forget(_ context.Context, row string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.rows, row)
	return nil
}

func (j *journal) Park(context.Context, host.Copy, string, string) error {
	return &core.Fault{Code: core.FaultUnavailable, Message: "nothing is parked here"}
}

func (j *journal) Due(_ context.Context, n int) ([]host.Row, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n = min(n, len(j.old))
	rows := j.old[:n:n]
	j.old = j.old[n:]
	return rows, nil
}
