// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

var errHandler = errors.New("it failed")

// live is a service with a live subscription on the key "k", whose handler
// always says the same.
func live(t *testing.T, says error, rules ...host.Rule) *service {
	t.Helper()
	s := newService(t, settings.Settings{})
	s.publishes("k")
	s.Handle(s.read("k", settings.Subscription{}), servicetest.Always(says), rules...)
	return s
}

// withRules is live with rules that name destinations of the endpoint.
func withRules(t *testing.T, says error, rules func(s *service) []host.Rule) *service {
	t.Helper()
	s := newService(t, settings.Settings{})
	s.publishes("k")
	s.Handle(s.read("k", settings.Subscription{}), servicetest.Always(says), rules(s)...)
	return s
}

func TestS_FIL_01(t *testing.T) {
	for name, says := range map[string]error{"ack": nil, "drop": host.Drop(errHandler)} {
		t.Run(name, func(t *testing.T) {
			s := live(t, says)
			s.Start()
			for range 20 {
				s.put("k", "x")
			}
			s.Handled(20)
			if got := s.stop(); len(got) != 20 {
				t.Errorf("the file holds %q", got)
			}
			// The first is warned of, and the rest summed up.
			if n := s.Log.Coded("L-UNS"); n < 1 || n > 2+int(time.Since(s.Began)/time.Second) {
				t.Errorf("%d lines of L-UNS\n%s", n, s.Log)
			}
		})
	}
}

func TestS_FIL_02(t *testing.T) {
	s := live(t, host.Retry(nil))
	s.Start()
	s.put("k", "x")
	servicetest.Expect(t, "runs", s.Handled(1), "k 1 x")
	servicetest.Expect(t, "file", s.stop(), "k x")
	if s.Log.Coded("L-UNS") != 1 {
		t.Errorf("log: %s", s.Log)
	}
}

func TestS_FIL_03(t *testing.T) {
	const d = 300 * time.Millisecond
	s := newService(t, settings.Settings{})
	s.publishes("k")
	s.Handle(s.read("k", settings.Subscription{}), func(m *host.Message[[]byte]) error {
		if m.Attempt() == 1 {
			return host.RetryAfter(d, nil)
		}
		return nil
	})
	s.Start()
	s.put("k", `{"id":7}`)
	began := time.Now()
	servicetest.Expect(t, "runs", s.Handled(2), `k 1 {"id":7}`, `k 2 {"id":7}`)
	if took := time.Since(began); took < d {
		t.Errorf("the copy came after %v", took)
	}
	servicetest.Expect(t, "file", s.stop(), `k {"id":7}`, copied("k", `{"id":7}`, 1, 1))
}

func TestS_FIL_04(t *testing.T) {
	s := newService(t, settings.Settings{})
	s.publishes("k")
	s.Handle(s.read("k", settings.Subscription{}), func(m *host.Message[[]byte]) error {
		if m.Attempt() == 1 {
			return host.Retry(nil)
		}
		return nil
	}, host.MaxAttempts(2))
	s.Start()
	s.put("k", "x")
	servicetest.Expect(t, "runs", s.Handled(2), "k 1 x", "k 2 x")
	servicetest.Expect(t, "file", s.stop(), "k x", copied("k", "x", 1, 1))
}

func TestS_FIL_05(t *testing.T) {
	s := live(t, host.Retry(nil), host.MaxAttempts(2))
	s.Start()
	s.put("k", "x")
	servicetest.Expect(t, "runs", s.Handled(2), "k 1 x", "k 2 x")
	servicetest.Expect(t, "file", s.stop(), "k x", copied("k", "x", 1, 1))
	if s.Log.Coded("L-CAP-RJ") != 1 || s.Log.Coded("L-UNS") != 0 {
		t.Errorf("log: %s", s.Log)
	}
}

func TestS_FIL_06(t *testing.T) {
	s := withRules(t, host.Retry(nil), func(s *service) []host.Rule {
		return []host.Rule{host.MaxAttempts(3), host.DeadLetterTo(s.in.To("q"))}
	})
	s.Start()
	s.put("k", "x")
	servicetest.Expect(t, "runs", s.Handled(3), "k 1 x", "k 2 x", "k 3 x")
	servicetest.Expect(t, "file", s.stop(), "k x", copied("k", "x", 1, 1), copied("k", "x", 2, 2), copied("q", "x", 3, 3))
	if s.Log.Coded("L-CAP-DL") != 1 {
		t.Errorf("log: %s", s.Log)
	}
}

func TestS_FIL_07(t *testing.T) {
	s := withRules(t, host.Retry(nil), func(s *service) []host.Rule {
		return []host.Rule{host.DeadLetterTo(s.in.To("q"))}
	})
	s.Start()
	s.put("k", "x")
	s.put("k", "y")
	s.Handled(2)
	servicetest.Expect(t, "file", sorted(s.stop()), "k x", "k y", copied("q", "x", 1, 1), copied("q", "y", 2, 1))
	if s.Log.Coded("L-CAP-DL") != 0 {
		t.Errorf("log: %s", s.Log)
	}
}

func TestS_FIL_08(t *testing.T) {
	for name, key := range map[string]string{"blank": " ", "250 characters": strings.Repeat("q", 250), "a slash": "a/b"} {
		t.Run(name, func(t *testing.T) {
			s := withRules(t, nil, func(s *service) []host.Rule { return []host.Rule{host.DeadLetterTo(s.in.To(key))} })
			s.Refused("k", "DeadLetterTo", key)
		})
	}
	t.Run("empty", func(t *testing.T) {
		s := withRules(t, nil, func(s *service) []host.Rule { return []host.Rule{host.DeadLetterTo(s.in.To(""))} })
		s.Refused("k", "DeadLetterTo")
	})
}

func TestS_FIL_09(t *testing.T) {
	s := withRules(t, host.Retry(nil), func(s *service) []host.Rule {
		return []host.Rule{host.MaxAttempts(2), host.RetryTo(s.in.To("t"))}
	})
	s.Start()
	s.put("k", "x")
	servicetest.Expect(t, "runs", s.Handled(1), "k 1 x")
	servicetest.Expect(t, "file", s.stop(), "k x", copied("t", "x", 1, 1))
}

// replay is a service that replays a key of a file with records.
func replay(t *testing.T, says error, records []string, rules ...host.Rule) *service {
	t.Helper()
	s := newService(t, settings.Settings{Path: written(t, records...)})
	s.Handle(s.read("k", settings.Subscription{Replay: true}), servicetest.Always(says), rules...)
	return s
}

// The end of a replay ends the host, once its copies are written.
func TestS_FIL_10(t *testing.T) {
	s := replay(t, host.Retry(nil), []string{"k x", "other y", "k z"}, host.MaxAttempts(2))
	s.Launch()
	s.Ran(2)
	servicetest.Expect(t, "file", sorted(s.ended()), "k x", copied("k", "x", 1, 1), "k z", copied("k", "z", 2, 1), "other y")
}

func TestS_FIL_11(t *testing.T) {
	s := replay(t, nil, []string{"k 1", "other 2", "k 3"})
	s.Launch()
	servicetest.Expect(t, "runs", s.Handled(2), "k 1 1", "k 1 3")
	servicetest.Expect(t, "file", s.ended(), "k 1", "other 2", "k 3")
	// A host that stays up goes on; a seek is tried where it can be, see
	// TestSeekOfReplay.
	s = newService(t, settings.Settings{Path: s.path}, host.StayUp())
	s.Handle(s.read("k", settings.Subscription{Replay: true}), servicetest.Always(nil))
	s.Start()
	s.Handled(2)
	s.stop()
}

func TestS_FIL_12(t *testing.T) {
	s := newService(t, settings.Settings{})
	s.Handle(s.read("k", settings.Subscription{}), servicetest.Always(nil))
	s.Start()
	w := open(t, settings.Settings{Path: s.path, EndWithEOS: true}, writes("k"))
	w.put("k", "1", "2")
	w.end()
	servicetest.Expect(t, "runs", s.Handled(2), "k 1 1", "k 1 2")
	servicetest.Expect(t, "file", s.ended(), "k 1", "k 2", "END")
}

func TestS_FIL_13(t *testing.T) {
	path := newPath(t)
	w := open(t, settings.Settings{Path: path}, writes("k"))
	w.put("k", "first")
	old := servicetest.Message("k", "x", "Stream-Sequence", "77", "a", "b")
	old.Purpose = pluginapi.PurposeRetry // a copy keeps what it has
	w.publish(old)
	w.end()
	s := newService(t, settings.Settings{Path: path})
	s.Handle(s.read("k", settings.Subscription{Start: settings.Sequence(2)}), func(m *host.Message[[]byte]) error {
		if v, _ := m.Headers().Get("stream-sequence"); string(v) != fmt.Sprint(1+m.Attempt()) {
			t.Errorf("attempt %d has the sequence %s", m.Attempt(), v)
		}
		return host.Retry(nil)
	}, host.MaxAttempts(2))
	s.Start()
	servicetest.Expect(t, "runs", s.Handled(2), "k 1 x", "k 2 x")
	servicetest.Expect(t, "file", s.stop(), "k first", "k x Stream-Sequence=77 a=b", "k x stream-sequence=2 a=b x-ruststream-retry-count=1")
}
