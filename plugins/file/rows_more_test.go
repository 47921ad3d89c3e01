// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/core"
	"github.com/longshore-go/longshore/host"
	"github.com/longshore-go/longshore/internal/memory/memtest"
	memsettings "github.com/longshore-go/longshore/internal/memory/settings"
	"github.com/longshore-go/longshore/internal/servicetest"
	"github.com/longshore-go/longshore/pluginapi"
	"github.com/longshore-go/longshore/plugins/file/settings"
)

// The copy is longer than its original, which fits.
func TestS_FIL_14(t *testing.T) {
	s := newService(t, settings.Settings{MaxBytes: 1024})
	s.publishes("k")
	s.Handle(s.read("k", settings.Subscription{}), servicetest.Always(host.Retry(nil)), host.MaxAttempts(2))
	s.Start()
	payload := strings.Repeat("x", 600)
	s.put("k", payload)
	servicetest.Expect(t, "runs", s.Handled(1), "k 1 "+payload)
	if s.Log.Coded("L-LOST") != 1 || !strings.Contains(s.Log.String(), "max_bytes") {
		t.Errorf("log: %s", s.Log)
	}
	for _, later := range []string{payload, "x"} { // also what would fit
		_, err := s.publishers["k"].Publish(t.Context(), core.Message{Payload: []byte(later)})
		if e, ok := errors.AsType[*host.PublishError](err); !ok || e.MaybeSent {
			t.Errorf("published later with %v", err)
		}
	}
	servicetest.Expect(t, "file", s.stop(), "k "+payload)
}

func TestS_FIL_15(t *testing.T) {
	s := newService(t, settings.Settings{})
	other := s.Endpoint("other", host.Plugin{Name: "file", Path: pluginPath(t)}, settings.Settings{Path: s.path})
	s.publishes("k")
	host.To[[]byte](s.Host, other.To("k"))
	s.Launch()
	err := s.Wait()
	if err == nil {
		t.Fatal("it was not refused")
	}
	for _, text := range []string{"endpoint in", "endpoint other", s.path} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not name %s", err, text)
		}
	}
}

func TestS_FIL_16(t *testing.T) {
	for name, publishes := range map[string]bool{"read": false, "written": true} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, settings.Settings{ExistingOnly: true})
			if publishes {
				s.publishes("k")
			}
			s.Handle(s.read("k", settings.Subscription{}), servicetest.Always(nil))
			s.Launch()
			err := s.Wait()
			if err == nil || !strings.Contains(err.Error(), s.path) || !strings.Contains(err.Error(), "endpoint in") || !strings.Contains(err.Error(), "existing_only") {
				t.Errorf("ended with %v", err)
			}
			if left, err := os.ReadDir(strings.TrimSuffix(s.path, "orders.ss")); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

func TestS_FIL_17(t *testing.T) {
	for _, interval := range []int{1000, 0} {
		path := newPath(t)
		s := newService(t, settings.Settings{Path: path})
		s.Endpoint("wrong", host.Plugin{Name: "file", Path: pluginPath(t)}, map[string]any{"path": path, "beacon_interval": interval})
		s.Launch()
		err := s.Wait()
		e, ok := errors.AsType[*host.StartError](err)
		if !ok || len(e.Findings) != 1 {
			t.Fatalf("ended with %v", err)
		}
		if f := e.Findings[0]; f.Endpoint != "wrong" || f.Option != "settings.beacon_interval" || !strings.Contains(f.String(), "multiple of 1024") {
			t.Errorf("finding %+v", f)
		}
	}
}

func TestS_FIL_18(t *testing.T) {
	for name, key := range map[string]string{"invalid": "a b", "a slash": "a/b", "too long": strings.Repeat("k", 250)} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, settings.Settings{})
			s.Handle(s.read(key, settings.Subscription{}), servicetest.Always(nil))
			s.Refused(key, "name", key)
		})
	}
	t.Run("empty", func(t *testing.T) {
		s := newService(t, settings.Settings{})
		s.Handle(s.read("", settings.Subscription{}), servicetest.Always(nil))
		s.Launch()
		e, ok := errors.AsType[*host.StartError](s.Wait())
		if !ok || len(e.Findings) != 1 {
			t.Errorf("ended with %v", e)
		}
	})
}

// A seek beyond the end is refused and ends a live subscription; a replay stays.
func TestS_FIL_19(t *testing.T) {
	for name, o := range map[string]settings.Subscription{"live": {}, "replay": {Replay: true}} {
		t.Run(name, func(t *testing.T) {
			b := open(t, settings.Settings{Path: written(t, "k 1", "k 2")}, pluginapi.Usage{})
			s := b.subscribe("k", o)
			defer closeSub(t, s)
			err := s.(pluginapi.Seeker).Seek(b.ctx, pluginapi.Position{Kind: pluginapi.PositionExact, Value: []byte("sequence 9")})
			f, ok := errors.AsType[*core.Fault](err)
			if !ok || f.Code != core.FaultInvalid || !strings.Contains(f.Error(), "sequence 9") {
				t.Fatalf("sought with %v", err)
			}
			if o.Replay {
				ds, _ := b.toEnd(s)
				servicetest.Expect(t, "deliveries", servicetest.Texts(ds), "k 1 stream-sequence=1", "k 2 stream-sequence=2")
				return
			}
			_, err = s.Receive(b.ctx, servicetest.Plenty)
			if again, ok := errors.AsType[*core.Fault](err); !ok || again.Message != f.Message {
				t.Errorf("received with %v", err)
			}
		})
	}
}

// A stop waits for the copy, and the end mark stands behind it.
func TestS_FIL_20(t *testing.T) {
	for _, mark := range []bool{false, true} {
		s := newService(t, settings.Settings{EndWithEOS: mark})
		s.publishes("k")
		s.Handle(s.read("k", settings.Subscription{}), servicetest.Always(host.RetryAfter(300*time.Millisecond, nil)))
		s.Start()
		s.put("k", "x")
		s.Ran(1)
		want := []string{"k x", copied("k", "x", 1, 1)}
		if mark {
			want = append(want, "END")
		}
		servicetest.Expect(t, "file", s.stop(), want...)
	}
}

func TestS_FIL_21(t *testing.T) {
	s := live(t, host.Leave())
	s.Start()
	s.put("k", "x")
	servicetest.Expect(t, "runs", s.Ran(1), "k 1 x")
	servicetest.Expect(t, "file", s.stop(), "k x")
	s.Log.Silent(t)
	if s.Log.Coded("L-UNS") > 0 {
		t.Errorf("log: %s", s.Log)
	}
}

var five = []string{"k 1", "k 2", "other 1", "k 3", "k 4", "k 5"}

func TestS_FIL_22(t *testing.T) {
	path := written(t, five...)
	for range 2 { // at every start
		s := newService(t, settings.Settings{Path: path})
		s.Handle(s.read("k", settings.Subscription{Start: settings.Sequence(4)}), servicetest.Always(nil))
		s.Start()
		servicetest.Expect(t, "runs", s.Handled(2), "k 1 4", "k 1 5")
		servicetest.Expect(t, "file", s.stop(), five...)
	}
	s := newService(t, settings.Settings{Path: path})
	s.publishes("k")
	s.Handle(s.read("k", settings.Subscription{Start: settings.Sequence(6)}), servicetest.Always(nil))
	s.Start()
	s.put("k", "6")
	servicetest.Expect(t, "runs", s.Handled(1), "k 1 6")
	s.stop()
}

func TestS_FIL_23(t *testing.T) {
	s := newService(t, settings.Settings{Path: written(t, five...)})
	s.Handle(s.read("k", settings.Subscription{Start: settings.Sequence(9)}), servicetest.Always(nil))
	s.Launch()
	err := s.Wait()
	if err == nil || !strings.Contains(err.Error(), "subscription k") || !strings.Contains(err.Error(), "sequence 9") {
		t.Errorf("ended with %v", err)
	}
}

func TestS_FIL_24(t *testing.T) {
	s := withRules(t, nil, func(s *service) []host.Rule {
		return []host.Rule{host.MaxAttempts(2), host.DeadLetterTo(s.in.To("k"))}
	})
	s.Refused("k", "DeadLetterTo", "k")
}

// The replay has caught up long before its copy is written, and the host ends
// only then. The next one reads the copy as attempt 2.
func TestS_FIL_25(t *testing.T) {
	const d = 300 * time.Millisecond
	s := replay(t, host.RetryAfter(d, nil), []string{"k x"})
	s.Launch()
	servicetest.Expect(t, "runs", s.Ran(1), "k 1 x")
	want := []string{"k x", copied("k", "x", 1, 1)}
	servicetest.Expect(t, "file", s.ended(), want...)
	if took := time.Since(s.Began); took < d {
		t.Errorf("the host ended after %v", took)
	}
	next := newService(t, settings.Settings{Path: s.path})
	next.Handle(next.read("k", settings.Subscription{Replay: true}), servicetest.Always(nil))
	next.Launch()
	servicetest.Expect(t, "runs", next.Ran(2), "k 1 x", "k 2 x")
	servicetest.Expect(t, "file", next.ended(), want...)
}

// Bytes that no text header carries travel encoded to a destination that has
// text headers alone.
func TestS_FIL_26(t *testing.T) {
	b := memtest.Start(t)
	s := newService(t, settings.Settings{})
	other := s.Endpoint("other", host.Plugin{Name: "memory", Path: b.Path},
		b.Settings.WithDestination("q", memsettings.Destination{Headers: "native-text"}))
	s.publishes("k")
	s.Handle(s.read("k", settings.Subscription{}), servicetest.Always(host.Retry(nil)), host.MaxAttempts(1), host.DeadLetterTo(other.To("q")))
	s.Start()
	s.put("k", "x", "x-bin", "\x00\xff")
	s.Handled(1)
	s.stop()
	got := b.Published("q")
	if len(got) != 1 {
		t.Fatalf("the queue holds %v", got)
	}
	if v, _ := got[0].Headers.Get("x-longshore-headers"); string(v) != "AAAABXgtYmluAAAAAgD/" {
		t.Errorf("headers %v", got[0].Headers)
	}
	if s.Log.Coded("L-CAP-DL") != 1 {
		t.Errorf("log: %s", s.Log)
	}
}

func TestS_FIL_27(t *testing.T) {
	s := withRules(t, errHandler, func(s *service) []host.Rule {
		return []host.Rule{host.MaxAttempts(1), host.DeadLetterTo(s.in.To("q"))}
	})
	s.Start()
	s.put("k", "x")
	s.Handled(1)
	servicetest.Expect(t, "file", s.stop(), "k x", copied("q", "x", 1, 1))
	if s.Log.Coded("L-ERR") != 1 || s.Log.Coded("L-CAP-DL") != 1 {
		t.Errorf("log: %s", s.Log)
	}
}

func TestS_FIL_28(t *testing.T) {
	s := newService(t, settings.Settings{})
	s.Handle(s.read("a", settings.Subscription{}), servicetest.Always(nil), host.MaxAttempts(2), host.DeadLetterTo(s.in.To("b")))
	s.Handle(s.read("b", settings.Subscription{}), servicetest.Always(nil), host.MaxAttempts(2), host.DeadLetterTo(s.in.To("a")))
	s.Launch()
	e, ok := errors.AsType[*host.StartError](s.Wait())
	if !ok {
		t.Fatal("it was not refused")
	}
	if len(e.Findings) != 1 || e.Findings[0].Option != "DeadLetterTo" || e.Findings[0].Subscription != "a" ||
		!strings.Contains(e.Findings[0].Message, "dead letters of b") {
		t.Errorf("findings %v", e.Findings)
	}
}

func TestS_FIL_29(t *testing.T) {
	s := newService(t, settings.Settings{})
	s.publishes("a")
	s.Handle(s.read("a", settings.Subscription{}), servicetest.Always(host.Retry(nil)), host.MaxAttempts(2), host.DeadLetterTo(s.in.To("q")))
	s.Handle(s.read("q", settings.Subscription{}), servicetest.Always(nil))
	s.Start()
	s.put("a", "x")
	servicetest.Expect(t, "runs", s.Handled(3), "a 1 x", "a 2 x", "q 3 x")
	servicetest.Expect(t, "file", s.stop(), "a x", copied("a", "x", 1, 1), copied("q", "x", 2, 2))
	if s.Log.Coded("L-CAP-DL") != 1 {
		t.Errorf("log: %s", s.Log)
	}
}

// The cap comes first, at once.
func TestS_FIL_30(t *testing.T) {
	const d = 300 * time.Millisecond
	s := live(t, host.RetryAfter(d, nil), host.MaxAttempts(2))
	s.Start()
	s.put("k", "x")
	servicetest.Expect(t, "runs", s.Ran(2), "k 1 x", "k 2 x")
	began := time.Now()
	for range 2 {
		s.Settlement()
	}
	if took := time.Since(began); took >= d {
		t.Errorf("the last attempt ended after %v", took)
	}
	servicetest.Expect(t, "file", s.stop(), "k x", copied("k", "x", 1, 1))
	if s.Log.Coded("L-CAP-RJ") != 1 {
		t.Errorf("log: %s", s.Log)
	}
}
