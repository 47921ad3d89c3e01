// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
)

// journalDisk is what a journal keeps over the end of a process.
type journalDisk struct {
	mu     sync.Mutex
	next   int
	stored map[string]journalRow
	parked map[string]host.Copy
	calls  []string
	broken bool // Store fails
}

type journalRow struct {
	copy host.Copy
	due  time.Time
	run  int // which opening stored it, or has returned it
}

func newJournal() *journalDisk {
	return &journalDisk{stored: make(map[string]journalRow), parked: make(map[string]host.Copy)}
}

// open returns the journal of one more process.
func (d *journalDisk) open() host.Journal {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next += 1000
	return &openJournal{d, d.next}
}

// rows lists the stored rows, "payload to destination".
func (d *journalDisk) rows() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for _, r := range d.stored {
		out = append(out, fmt.Sprintf("%s to %v", r.copy.Message.Payload, r.copy.To))
	}
	slices.Sort(out)
	return out
}

func (d *journalDisk) parkedRows() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for _, c := range d.parked {
		out = append(out, fmt.Sprintf("%s to %v", c.Message.Payload, c.To))
	}
	slices.Sort(out)
	return out
}

// log returns the calls so far.
func (d *journalDisk) log() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

// openJournal is a journalDisk in use by one process.
type openJournal struct {
	*journalDisk
	run int
}

func (j *openJournal) Store(_ context.Context, c host.Copy, delay time.Duration) (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken {
		return "", errBroken
	}
	j.next++
	id := fmt.Sprint(j.next)
	j.stored[id] = journalRow{cloneCopy(c), time.Now().Add(delay), j.run}
	j.calls = append(j.calls, "store "+string(c.Message.Payload))
	return id, nil
}

func (j *openJournal) Forget(_ context.Context, row string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r, ok := j.stored[row]; ok {
		j.calls = append(j.calls, "forget "+string(r.copy.Message.Payload))
	}
	delete(j.stored, row)
	return nil
}

func (j *openJournal) Park(_ context.Context, c host.Copy, row, reason string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if row == "" {
		j.next++
		row = fmt.Sprint(j.next)
	}
	delete(j.stored, row)
	j.parked[row] = cloneCopy(c)
	j.calls = append(j.calls, "park "+string(c.Message.Payload))
	return nil
}

func (j *openJournal) Due(_ context.Context, n int) ([]host.Row, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	ids := slices.SortedFunc(maps.Keys(j.stored), func(a, b string) int {
		return j.stored[a].due.Compare(j.stored[b].due)
	})
	var out []host.Row
	for _, id := range ids {
		r := j.stored[id]
		if r.run == j.run || len(out) == n {
			continue
		}
		out = append(out, host.Row{ID: id, Copy: cloneCopy(r.copy), Delay: time.Until(r.due)})
		r.run = j.run
		j.stored[id] = r
	}
	return out, nil
}

func cloneCopy(c host.Copy) host.Copy {
	c.Message.Payload = slices.Clone(c.Message.Payload)
	c.Message.Name = strings.Clone(c.Message.Name)
	hs := make(core.Headers, len(c.Message.Headers))
	for i, h := range c.Message.Headers {
		hs[i] = core.Header{Name: strings.Clone(h.Name), Value: slices.Clone(h.Value)}
	}
	c.Message.Headers = hs
	c.Carry = slices.Clone(c.Carry)
	return c
}

// journalRun is a service with a journal whose handler asks for one retry
// later of each message.
func journalRun(t *testing.T, q *queues, d *journalDisk, delay time.Duration) *service {
	t.Helper()
	s := newService(host.WithJournal(d.open()))
	host.Handle(attach(s.Host, "in", q).Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
		if m.Header("x-longshore-journal") != "" {
			t.Error("the handler sees the journal's header")
		}
		if m.Attempt() == 1 {
			return host.RetryAfter(delay, nil)
		}
		return nil
	})
	s.run(t)
	synctest.Wait()
	return s
}

func TestJournalForgetsAtTheReceipt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // S-GEN-86
		q, d := newQueues(), newJournal()
		q.put("orders", "one")
		s := journalRun(t, q, d, 2*time.Second)
		if diff := cmp.Diff([]string{"one to orders@in"}, d.rows()); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
		time.Sleep(3 * time.Second)
		if rows := d.rows(); len(rows) != 0 {
			t.Errorf("the journal still holds %v", rows)
		}
		if diff := cmp.Diff([]string{"store one", "forget one"}, d.log()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"ack one", "ack one"}, q.verdicts("orders")); diff != "" {
			t.Errorf("verdicts (-want +got):\n%s", diff)
		}
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
	})
}

func TestJournalKeepsCopiesOverTheEndOfTheProcess(t *testing.T) {
	for name, end := range map[string]func(s *service){
		"an abort":         func(s *service) { s.Abort() }, // S-GEN-86: as good as kill -9 for what the journal holds
		"a stop, S-GEN-94": func(s *service) { s.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, d := newQueues(), newJournal()
				q.put("orders", "one", "two")
				first := journalRun(t, q, d, 10*time.Second)
				time.Sleep(2 * time.Second)
				end(first)
				first.result(t)
				if diff := cmp.Diff([]string{"one to orders@in", "two to orders@in"}, d.rows()); diff != "" {
					t.Errorf("rows after the first run (-want +got):\n%s", diff)
				}
				if got := len(q.took("orders")); got != 2 {
					t.Errorf("%d messages, want no copy yet", got)
				}
				second := journalRun(t, q, d, 10*time.Second)
				time.Sleep(7 * time.Second) // 9 of 10 s are over
				if got := len(q.took("orders")); got != 2 {
					t.Errorf("%d messages, want no copy before it is due", got)
				}
				time.Sleep(2 * time.Second)
				if got := len(q.took("orders")); got != 4 {
					t.Errorf("%d messages, want both copies when they are due", got)
				}
				if rows := d.rows(); len(rows) != 0 {
					t.Errorf("the journal still holds %v", rows)
				}
				if left := q.left("orders"); len(left) != 0 {
					t.Errorf("the queue still holds %v", left)
				}
				second.stop()
				if err := second.result(t); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestJournalForgetsWhenTheCopyIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // S-GEN-118: only this process reads the destination
		q, d := newQueues(), newJournal()
		q.source = core.Capabilities{Address: "own"}
		q.publishing.Retains = core.RetainProcess
		q.put("orders", "one")
		s := newService(host.WithJournal(d.open()))
		release := make(chan struct{})
		host.Handle(attach(s.Host, "in", q).Subscription("orders"), func(_ context.Context, m *host.Message[[]byte]) error {
			if m.Header("x-longshore-journal") != "" {
				t.Error("the handler sees the journal's header")
			}
			if m.Attempt() == 1 {
				return host.Retry(nil)
			}
			<-release
			return nil
		}, host.MaxAttempts(3))
		s.run(t)
		synctest.Wait()
		took := q.took("orders")
		if len(took) != 2 || header(took[1], "x-longshore-journal") == "" {
			t.Fatalf("published %v, want a copy that names its row", took)
		}
		if diff := cmp.Diff([]string{"one to orders@in"}, d.rows()); diff != "" {
			t.Errorf("the row must stay while the copy is in work (-want +got):\n%s", diff)
		}
		close(release)
		synctest.Wait()
		if rows := d.rows(); len(rows) != 0 {
			t.Errorf("the journal still holds %v", rows)
		}
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
	})
}

func TestJournalParksWhatCannotBePublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // S-GEN-77
		q, d := newQueues(), newJournal()
		q.published = refuseFor("dead")
		q.put("orders", "one")
		s := newService(host.WithJournal(d.open()), host.WithPublishLimit(10*time.Second))
		in := attach(s.Host, "in", q)
		host.Handle(in.Subscription("orders"), retries, host.MaxAttempts(1), host.DeadLetterTo(in.To("dead")))
		s.run(t)
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"one to dead@in"}, d.parkedRows()); diff != "" {
			t.Errorf("parked (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"ack one"}, q.verdicts("orders")); diff != "" {
			t.Errorf("verdicts (-want +got):\n%s", diff)
		}
		if lines := s.log.lines("level=WARN", "code=L-COPY"); len(lines) != 1 {
			t.Errorf("got %v, want one line", lines)
		}
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
	})
}
