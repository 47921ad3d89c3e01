// SPDX-License-Identifier: Apache-2.0

package pulsar_test

import (
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/plugins/pulsar/settings"
)

// P-17: a handler that takes longer than ack_timeout, with a second service idle. The
// message runs twice at most and ends acked, and the late ack takes no other message
// away. Without ack_timeout it stays with its handler.
func TestP17HandlerOutlivesAckTimeout(t *testing.T) {
	t.Parallel()
	const limit = 3 * time.Second // what is settled at once is so before
	for name, timeout := range map[string]time.Duration{"with": limit, "without": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := settings.SubscribeOptions{AckTimeout: core.Duration(timeout)}
			others := make(chan struct{})
			all, h := crew(t, 2, o, func(_ int, m *host.Message[[]byte]) error {
				switch {
				case string(m.Value) == "0" && m.Attempt() == 1:
					time.Sleep(limit * 8 / 5) // what the handler takes
				case string(m.Value) == "1":
					<-others // it is in work when the late ack comes, and fails then
					if m.Attempt() == 1 {
						return host.Retry(nil)
					}
				}
				return nil
			}, host.Workers(2))
			s := all[0]
			s.put("t", numbered(1)...)
			h.await(s, 1)
			runs := 1
			if timeout > 0 {
				h.await(s, 2)
				runs = 2
			}
			s.left(0)
			close(others)
			s.put("t", texts("1")...)
			s.left(0)
			time.Sleep(limit * 6 / 5) // a third run would come now
			n := map[string]int{}
			for _, r := range h.all() {
				n[r.payload]++
			}
			if n["0"] != runs || n["1"] != 2 {
				t.Errorf("runs: %v, want %d of the one and 2 of the other", n, runs)
			}
			s.left(0)
		})
	}
}

// P-17: a delay that reaches ack_timeout is refused at the start where it is a rule,
// see TestS_PUL_37. Where a handler asks for it, it is said, and the message comes
// when ack_timeout is over.
func TestP17RetryAfterBeyondAckTimeout(t *testing.T) {
	t.Parallel()
	const limit = time.Second
	o := settings.SubscribeOptions{AckTimeout: core.Duration(limit)}
	var c clock
	s := row(t, o, c.of(until(1, host.RetryAfter(limit*6/5, nil))), nil)
	s.put("t", texts("x")...)
	s.ran(2, 1, "x", 2, "x")
	if took := c.between(1, 2); took < limit*9/10 || took > 20*limit {
		t.Errorf("it came after %v", took)
	}
	s.left(0)
	s.stop(0)
	s.codes(map[string]int{"L-DELAY": 1})
}
