// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/internal/frame"
	"github.com/longshore-go/longshore/internal/transportpb"
)

// Credit sets the window.
func (s *Sub) Credit(messages, bytes uint64) {
	c := frame.Credit{Messages: messages, Bytes: bytes}
	s.mu.Lock()
	s.windows = append(s.windows, c)
	s.mu.Unlock()
	s.request(&frame.SubscribeRequest{Credit: &c})
}

// request sends one message.
func (s *Sub) request(r *frame.SubscribeRequest) {
	s.send.Lock()
	defer s.send.Unlock()
	if err := s.t.sends(s.cancel, func() error { return s.stream.Send(r) }); err != nil {
		s.t.Errorf("send on the subscription's stream: %v", err)
	}
}

// Take returns the next n deliveries. The case ends where they do not come.
func (s *Sub) Take(n int) []*Delivery {
	if !s.until(func() bool { return len(s.queue) >= n || s.over }) || s.pending() < n {
		s.t.Fatalf("%d of %d deliveries came within %v%s", s.pending(), n, s.t.Subject.Wait, s.state())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ds := s.queue[:n:n]
	s.queue = s.queue[n:]
	return ds
}

// Next returns the next delivery.
func (s *Sub) Next() *Delivery { return s.Take(1)[0] }

// pending is how many deliveries the case has not taken.
func (s *Sub) pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// state says what else is known of the stream, for messages.
func (s *Sub) state() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	if s.over {
		fmt.Fprintf(&b, "; the stream has ended (%v)", s.err)
	}
	if s.ended != nil {
		fmt.Fprintf(&b, "; the subscription has ended (%v)", s.ended.GetFault().GetMessage())
	}
	for _, r := range s.reports {
		fmt.Fprintf(&b, "; it reported %q", r.GetFault().GetMessage())
	}
	return b.String()
}

// TakeKeys takes deliveries until each key has come, and returns the first of
// each key. What else comes is returned beside it, in order.
func (s *Sub) TakeKeys(keys []string) (first map[string]*Delivery, more []*Delivery) {
	first = map[string]*Delivery{}
	missing := map[string]bool{}
	for _, k := range keys {
		missing[k] = true
	}
	for len(missing) > 0 {
		if !s.until(func() bool { return len(s.queue) > 0 || s.over }) || s.pending() == 0 {
			lost := make([]string, 0, len(missing))
			for _, k := range keys {
				if missing[k] {
					lost = append(lost, k)
				}
			}
			s.t.Fatalf("%d of %d messages did not come within %v: %s%s", len(lost), len(keys), s.t.Subject.Wait, some(lost), s.state())
		}
		d := s.Next()
		if missing[d.Key] {
			delete(missing, d.Key)
			first[d.Key] = d
		} else {
			more = append(more, d)
		}
	}
	return first, more
}

// some lists the first of many names.
func some(names []string) string {
	const shown = 5
	if len(names) > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}

// Within takes the deliveries that come within a time.
func (s *Sub) Within(d time.Duration) []*Delivery {
	ctx, cancel := context.WithTimeout(s.t.Ctx, d)
	defer cancel()
	eventually(ctx, s.change, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.over
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	ds := s.queue
	s.queue = nil
	return ds
}

// Settle sends verdicts, of which results come only where something is wrong.
func (s *Sub) Settle(runs ...frame.VerdictRun) []*verdict {
	var sent []*verdict
	s.send.Lock() // verdicts are noted in the order sent
	defer s.send.Unlock()
	s.mu.Lock()
	for _, r := range runs {
		for id := r.First; id < r.First+max(r.Count, 1); id++ {
			v := &verdict{id: id, kind: r.Kind, asked: r.WantResult}
			s.verdicts = append(s.verdicts, v)
			sent = append(sent, v)
			if id == 0 || id > uint64(len(s.all)) {
				continue
			}
			d := s.all[id-1]
			v.voided = d.void
			if r.Kind != core.VerdictExtend && !d.decided {
				if d.decided = true; !d.void {
					s.open--
					s.bytes -= d.weight
				}
			}
		}
	}
	s.mu.Unlock()
	err := s.t.sends(s.cancel, func() error { return s.stream.Send(&frame.SubscribeRequest{Settle: runs}) })
	if err != nil {
		s.t.Errorf("send verdicts: %v", err)
	}
	return sent
}

// Ack acks deliveries, each by itself.
func (s *Sub) Ack(ds ...*Delivery) {
	runs := make([]frame.VerdictRun, 0, len(ds))
	for _, d := range ds {
		runs = append(runs, frame.VerdictRun{First: d.ID, Kind: core.VerdictAck})
	}
	if len(runs) > 0 {
		s.Settle(runs...)
	}
}

// Results sends verdicts and returns the result of each.
func (s *Sub) Results(runs ...frame.VerdictRun) []frame.SettleResult {
	for i := range runs {
		runs[i].WantResult = true
	}
	sent := s.Settle(runs...)
	answered := func() bool {
		for _, v := range sent {
			if !v.settled {
				return false
			}
		}
		return true
	}
	if !s.until(func() bool { return answered() || s.over }) {
		s.t.Fatalf("the results of %d verdicts did not come within %v%s", len(sent), s.t.Subject.Wait, s.state())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !answered() {
		s.t.Fatalf("the stream ended before the results of %d verdicts: %v", len(sent), s.err)
	}
	out := make([]frame.SettleResult, len(sent))
	for i, v := range sent {
		out[i] = v.result
	}
	return out
}

// Result sends one verdict and returns its result.
func (s *Sub) Result(run frame.VerdictRun) frame.SettleResult { return s.Results(run)[0] }

// Verdict decides one delivery and returns what became of it.
func (s *Sub) Verdict(d *Delivery, kind core.VerdictKind) frame.SettleStatus {
	return s.Result(frame.VerdictRun{First: d.ID, Kind: kind}).Status
}

// Done decides one delivery and says what is wrong where that is not DONE.
func (s *Sub) Done(d *Delivery, kind core.VerdictKind) {
	if r := s.Result(frame.VerdictRun{First: d.ID, Kind: kind}); r.Status != frame.SettleDone {
		s.t.Errorf("%v of delivery %d was answered %s in place of DONE: %v", kind, d.ID, statusWord(r.Status), r.Fault)
	}
}

// statusWord is the protocol's word for a status.
func statusWord(s frame.SettleStatus) string {
	return strings.TrimPrefix(transportpb.SettleStatus(s).String(), "SETTLE_STATUS_")
}

// Barrier waits until everything that the plugin had sent before it read this
// has arrived, and until the last window is the only one in force.
func (s *Sub) Barrier() {
	s.mu.Lock()
	before := len(s.windows)
	s.mu.Unlock()
	if r := s.Result(frame.VerdictRun{Kind: core.VerdictRelease}); r.Status != frame.SettleStale {
		s.t.Errorf("RELEASE of delivery 0, which does not exist, was answered %s in place of STALE", statusWord(r.Status))
	}
	s.mu.Lock()
	if before > 0 {
		s.windows = s.windows[before-1:]
	}
	s.mu.Unlock()
}

// Stop ends intake and waits for ended.
func (s *Sub) Stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.request(&frame.SubscribeRequest{Stop: true})
	if !s.until(func() bool { return s.ended != nil || s.over }) {
		s.t.Fatalf("stop was not answered with ended within %v", s.t.Subject.Wait)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended == nil {
		s.t.Fatalf("the stream ended behind stop without ended: %v", s.err)
	}
}

// HalfClose says that no verdict follows and waits for the orderly end of the
// stream.
func (s *Sub) HalfClose() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.send.Lock()
	err := s.stream.CloseSend()
	s.send.Unlock()
	if err != nil {
		s.t.Errorf("half-close the subscription's stream: %v", err)
	}
	if !s.until(func() bool { return s.over }) {
		s.t.Fatalf("the stream did not end within %v behind the host's half-close", s.t.Subject.Wait)
	}
}

// End stops and half-closes.
func (s *Sub) End() {
	s.Stop()
	s.HalfClose()
}

// Cancel ends the stream as the loss of the host does.
func (s *Sub) Cancel() {
	s.mu.Lock()
	s.canceled = true
	s.mu.Unlock()
	s.cancel()
	s.wait.Wait()
}

// Finish lets go of deliveries for good, each as its profile allows: by an ack,
// else by a release.
func (s *Sub) Finish(ds ...*Delivery) {
	runs := make([]frame.VerdictRun, 0, len(ds))
	for _, d := range ds {
		kind := core.VerdictAck
		if d.Caps.Ack == core.AckNone {
			kind = core.VerdictRelease
		}
		runs = append(runs, frame.VerdictRun{First: d.ID, Kind: kind})
	}
	if len(runs) > 0 {
		s.Settle(runs...)
	}
}
