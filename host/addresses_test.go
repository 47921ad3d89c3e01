// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-go/longshore/host"
)

// listening compares what an endpoint says of where it listens.
func listening(t *testing.T, when string, e *host.Endpoint, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, e.Addresses()); d != "" {
		t.Errorf("%s (-want +got):\n%s", when, d)
	}
}

// Addresses are those of the generation that is up, and a copy.
func TestAddressesOfAnEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lives atomic.Int64
		q := newQueues()
		q.listens = func() []string {
			return []string{fmt.Sprintf("tcp://127.0.0.1:%d", 5000+lives.Add(1)), "ipc:///tmp/in"}
		}
		s := newService(host.WithRestartBackoff(10*time.Second, 10*time.Second))
		in, out := attach(s.Host, "in", q), attach(s.Host, "out", newQueues())
		host.Handle(in.Subscription("orders"), acks)
		host.Handle(out.Subscription("orders"), acks)
		listening(t, "before Run", in)
		s.run(t)
		synctest.Wait()
		listening(t, "when it serves", in, "tcp://127.0.0.1:5001", "ipc:///tmp/in")
		listening(t, "of one that does not listen", out)
		in.Addresses()[0] = "mine"
		listening(t, "after a caller wrote into them", in, "tcp://127.0.0.1:5001", "ipc:///tmp/in")
		s.Crash("in")
		synctest.Wait()
		listening(t, "after a crash", in)
		time.Sleep(11 * time.Second)
		listening(t, "with its second plugin", in, "tcp://127.0.0.1:5002", "ipc:///tmp/in")
		if n := len(s.log.lines("endpoint listens", "level=INFO", "endpoint=in", "tcp://127.0.0.1:500")); n != 2 {
			t.Errorf("%d lines say where it listens, want one for each plugin", n)
		}
		if n := len(s.log.lines("endpoint listens", "endpoint=out")); n != 0 {
			t.Errorf("%d lines of one that does not listen", n)
		}
		s.stop()
		if err := s.result(t); err != nil {
			t.Error(err)
		}
		listening(t, "after the stop", in)
	})
}

// What a plugin in any language says goes to terminals: what is no text for
// people, or too much of it, is left out and told.
func TestAddressesThatNobodyCanRead(t *testing.T) {
	h := &hostile{addresses: append([]string{"tcp://127.0.0.1:1", "\x1b]0;owned\a", strings.Repeat("a", 1025)}, slices.Repeat([]string{"b"}, 70)...)}
	s, e := h.attach(t)
	host.Handle(e.Subscription("q"), acks)
	s.serve(t)
	listening(t, "what is kept", e, append([]string{"tcp://127.0.0.1:1"}, slices.Repeat([]string{"b"}, 63)...)...)
	if n := len(s.log.lines("level=WARN", "addresses of the plugin are left out", "endpoint=evil", "addresses=9")); n != 1 {
		t.Errorf("%d lines say that some are left out, want 1", n)
	}
	if strings.Contains(s.log.text(), "owned") {
		t.Error("the log has what is no text for people")
	}
}
